// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The number of a job or of one task of an array, as Slurm writes it: `12`, `12_3`.
//!
//! An argument of every command but `weft submit`.

use std::fmt;
use std::str::FromStr;

/// A job, or one of its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobId {
    /// The job; of an array, the whole.
    pub job: u64,
    /// The task of the array.
    pub task: Option<u32>,
}

impl FromStr for JobId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (job, task) = match text.split_once('_') {
                Some((job, task)) => (job, Some(task.parse().ok()?)),
                None => (text, None),
            };
            let job = job.parse().ok().filter(|&job| job > 0)?;
            Some(Self { job, task })
        };
        read().ok_or_else(|| "it must be the number of a job, as 12, or of a task, as 12_3".into())
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task {
            Some(task) => write!(f, "{}_{task}", self.job),
            None => write!(f, "{}", self.job),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_jobs_and_tasks_are_read_and_nothing_else() {
        for text in ["12", "12_3"] {
            assert_eq!(text.parse::<JobId>().unwrap().to_string(), text);
        }
        for text in [
            "", "0", "-1", "12_", "_3", "12.0", "12_[0-3]", "a", "12_3_4",
        ] {
            assert!(text.parse::<JobId>().is_err(), "{text}");
        }
    }
}
