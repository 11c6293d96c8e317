// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a process is: its program, and which rank of which job, as its launcher has written it
//! into its environment.
//!
//! Called by `watch.rs`. Source: proc_pid_environ(5); PMIx, Open MPI and Hydra name a rank so;
//! `weft run` names a job by the socket for its reports, which is the same on every host.

use serde::Serialize;
use weft_facts::rank;

/// What `weft run` names a job by, and what comes before the name.
const REPORT: (&str, &str) = ("FI_WEFT_REPORT", "weft-report-");
/// Digits of a job's name that are shown. Chosen: enough to tell jobs of one machine apart.
const JOB_DIGITS: usize = 8;

/// A process's place in a job; nothing where it is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The process's name.
    pub command: String,
    /// Its rank in MPI_COMM_WORLD, where its launcher says so.
    pub rank: Option<u32>,
    /// Its job: the same for all ranks of one `weft run`.
    pub job: Option<String>,
}

impl Place {
    /// Reads its name, and the environment with which it was started.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let read = |what: &str| std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
        let command = String::from_utf8_lossy(&read("comm")).trim().to_owned();
        Self {
            command,
            ..Self::in_environment(&read("environ"))
        }
    }

    fn in_environment(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let value = |name: &str| {
            let mut entries = text.split('\0').filter_map(|entry| entry.split_once('='));
            entries.find_map(|(key, value)| (key == name).then_some(value))
        };
        let report = value(REPORT.0).and_then(|name| name.strip_prefix(REPORT.1));
        let slurm = || value("SLURM_JOB_ID");
        // Another process's words: only what a name is made of goes to the terminal.
        let is_plain = |name: &&str| name.chars().all(|letter| letter.is_ascii_alphanumeric());
        let job = report.or_else(slurm).filter(is_plain);
        Self {
            command: String::new(),
            rank: rank::VARIABLES
                .iter()
                .find_map(|&name| value(name)?.parse().ok()),
            job: job.map(|name| name.chars().take(JOB_DIGITS).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_launcher_names_the_rank_and_weft_run_the_job() {
        let place = |text: &str| Place::in_environment(text.replace(' ', "\0").as_bytes());
        let found = place("A=1 PMI_RANK=3 FI_WEFT_REPORT=weft-report-0123456789abcdef");
        assert_eq!(
            (found.rank, found.job.as_deref()),
            (Some(3), Some("01234567"))
        );
        assert_eq!(place("PMIX_RANK=12 SLURM_JOB_ID=77").rank, Some(12));
        assert_eq!(place("SLURM_JOB_ID=77").job.as_deref(), Some("77"));
        assert_eq!(
            place("PMI_RANK=x FI_WEFT_REPORT=weft-report-\u{1b}[2J"),
            Place::default()
        );
        assert_eq!(place(""), Place::default());
    }
}
