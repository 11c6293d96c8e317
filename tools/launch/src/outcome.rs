// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What came of a job: the exit code, whether Weft was used, the summary for people and the record for scripts.
//!
//! Called by `lib.rs` at the end; pure but for the writing of the record.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};

use serde::Serialize;

use crate::command::Launch;
use crate::discover::Installation;
use crate::report::{Report, Summary};
use crate::supervise::Ending;
use crate::transport::Transport;

/// Exit code when the time limit ended the job, as timeout(1) has it.
pub const TIMED_OUT: u8 = 124;
/// Exit code when the job was ended because a host was lost.
pub const HOST_LOST: u8 = 4;
/// Exit code when Weft was required and not used.
pub const WEFT_NOT_USED: u8 = 3;

/// Whether the messages of a job went through Weft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Usage {
    /// Another transport was asked for, or the job had one rank.
    NotExpected,
    /// Every rank reported, and messages went through.
    Full,
    /// Fewer processes reported than there were ranks.
    Partial,
    /// No process reported, or none sent a message.
    None,
}

impl Usage {
    /// Judges by the reports.
    #[must_use]
    pub fn of(transport: &Transport, ranks: u32, summary: &Summary) -> Self {
        if *transport != Transport::Weft || ranks < 2 {
            Self::NotExpected
        } else if summary.processes == 0 || summary.total().messages == 0 {
            Self::None
        } else if summary.processes < ranks {
            Self::Partial
        } else {
            Self::Full
        }
    }
}

/// Whether the program itself ended with success.
#[must_use]
pub fn ended_well(ending: &Ending) -> bool {
    ending.code == Some(0) && !ending.timed_out && !ending.host_lost
}

/// The exit code of `weft run`.
#[must_use]
pub fn exit_code(ending: &Ending, usage: Usage, weft_is_required: bool) -> u8 {
    if ending.timed_out {
        return TIMED_OUT;
    }
    if ending.host_lost {
        return HOST_LOST;
    }
    let own = match (ending.code, ending.signal) {
        (Some(code), _) => u8::try_from(code & 0xff).unwrap_or(1),
        (None, Some(signal)) => u8::try_from(128 + (signal & 0x7f)).unwrap_or(128),
        (None, None) => 1,
    };
    if own == 0 && weft_is_required && matches!(usage, Usage::None) {
        WEFT_NOT_USED
    } else {
        own
    }
}

/// The warning that fits, if one does. Ranks of a job that did not end well were killed, and do not report.
#[must_use]
pub fn warning(usage: Usage, summary: &Summary, ranks: u32, ended_well: bool) -> Option<String> {
    match usage {
        Usage::NotExpected | Usage::Full => None,
        Usage::None if summary.processes == 0 && !ended_well => {
            Some(
                "no rank reported what went through Weft, and the job did not end normally; if its MPI found no provider, pml or mtl (see \
                 above), run `weft doctor`"
                    .into(),
            )
        }
        Usage::None if summary.processes == 0 => Some(
            "Weft was NOT used: no rank reported an endpoint of it. Either the program never called MPI_Init, or its MPI did not take the \
             provider: run again with --env FI_LOG_LEVEL=warn to see libfabric's reasons, and see `weft doctor`"
                .into(),
        ),
        Usage::None => Some(format!(
            "Weft was NOT used: {} processes opened an endpoint of it, but no message went through; the MPI used another way between its \
             ranks, or the ranks sent each other nothing",
            summary.processes
        )),
        Usage::Partial => Some(format!(
            "only {} of {ranks} ranks reported; the others used another way, or ended without MPI_Finalize",
            summary.processes
        )),
    }
}

/// The record that `--json` writes. Durations in seconds.
#[derive(Debug, Serialize)]
pub struct Record<'a> {
    /// The launcher and all its arguments.
    pub command: Vec<String>,
    /// Variables set for the ranks.
    pub environment: std::collections::BTreeMap<String, String>,
    /// The MPI that ran the job.
    pub mpi: &'a Installation,
    /// What was asked to carry the messages.
    pub transport: String,
    /// Number of ranks.
    pub ranks: u32,
    /// Ranks on each host, where hosts were named.
    pub hosts: Vec<(String, u32)>,
    /// Whether each rank had a core of its own.
    pub bound: bool,
    /// Exit code of `weft run`.
    pub exit_code: u8,
    /// The signal that killed the launcher.
    pub signal: Option<i32>,
    /// Whether the time limit ended the job.
    pub timed_out: bool,
    /// Whether it was ended because a host was lost.
    pub host_lost: bool,
    /// Wall-clock time of the launcher.
    pub elapsed_seconds: f64,
    /// Whether Weft was used.
    pub weft: Usage,
    /// The sum of the reports.
    pub summary: &'a Summary,
    /// The reports, one per endpoint.
    pub reports: &'a [Report],
}

/// The command of a launch as text; bytes that are no UTF-8 are replaced.
#[must_use]
pub fn command_words(launch: &Launch) -> Vec<String> {
    let text = |word: &OsStr| word.to_string_lossy().into_owned();
    std::iter::once(text(launch.mpiexec.as_os_str()))
        .chain(launch.arguments.iter().map(|word| text(word)))
        .collect()
}

/// Writes the record, one JSON object and a newline.
///
/// # Errors
/// When the file cannot be written.
pub fn write_record(file: &mut File, record: &Record<'_>) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *file, record)?;
    file.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Traffic;
    use std::time::Duration;

    fn ending(code: Option<i32>, signal: Option<i32>, timed_out: bool) -> Ending {
        Ending {
            code,
            signal,
            timed_out,
            host_lost: false,
            elapsed: Duration::ZERO,
        }
    }

    fn summary(processes: u32, messages: u64) -> Summary {
        Summary {
            processes,
            sent: [("inline".to_owned(), Traffic { messages, bytes: 0 })].into(),
            ..Summary::default()
        }
    }

    #[test]
    fn exit_codes_are_the_programs_own_unless_it_was_killed_or_timed_out() {
        assert_eq!(
            exit_code(&ending(Some(7), None, false), Usage::None, true),
            7
        );
        assert_eq!(
            exit_code(&ending(None, Some(15), false), Usage::Full, false),
            143
        );
        assert_eq!(
            exit_code(&ending(Some(0), None, true), Usage::Full, false),
            124
        );
        assert_eq!(
            exit_code(&ending(None, Some(9), true), Usage::Full, false),
            124
        );
    }

    #[test]
    fn a_lost_host_counts_even_where_the_launcher_ended_well() {
        let lost = Ending {
            host_lost: true,
            ..ending(Some(0), None, false)
        };
        assert_eq!(exit_code(&lost, Usage::Full, false), HOST_LOST);
        assert!(!ended_well(&lost));
    }

    #[test]
    fn unused_weft_fails_the_job_only_where_it_is_required() {
        assert_eq!(
            exit_code(&ending(Some(0), None, false), Usage::None, true),
            3
        );
        assert_eq!(
            exit_code(&ending(Some(0), None, false), Usage::None, false),
            0
        );
        assert_eq!(
            exit_code(&ending(Some(0), None, false), Usage::Partial, true),
            0
        );
    }

    #[test]
    fn use_is_judged_by_who_reported_and_what() {
        assert_eq!(Usage::of(&Transport::Weft, 4, &summary(4, 9)), Usage::Full);
        assert_eq!(
            Usage::of(&Transport::Weft, 4, &summary(3, 9)),
            Usage::Partial
        );
        assert_eq!(Usage::of(&Transport::Weft, 4, &summary(4, 0)), Usage::None);
        assert_eq!(Usage::of(&Transport::Weft, 4, &summary(0, 0)), Usage::None);
        assert_eq!(
            Usage::of(&Transport::Weft, 1, &summary(0, 0)),
            Usage::NotExpected
        );
        assert_eq!(
            Usage::of(&Transport::Native, 4, &summary(0, 0)),
            Usage::NotExpected
        );
    }

    #[test]
    fn warnings_tell_the_cases_apart() {
        assert!(
            warning(Usage::None, &summary(0, 0), 4, true)
                .unwrap()
                .contains("no rank reported an endpoint")
        );
        assert!(
            warning(Usage::None, &summary(0, 0), 4, false)
                .unwrap()
                .contains("did not end normally")
        );
        assert!(
            warning(Usage::None, &summary(2, 0), 4, true)
                .unwrap()
                .contains("no message went through")
        );
        assert!(
            warning(Usage::Partial, &summary(3, 1), 4, true)
                .unwrap()
                .contains("3 of 4")
        );
        assert_eq!(warning(Usage::Full, &summary(4, 1), 4, true), None);
    }
}
