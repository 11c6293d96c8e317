// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One task of a job; a job that is not an array has one task. This module puts together what
//! Slurm, accounting and the job's own record say about it.
//!
//! Made by `queue.rs`, `accounting.rs` and `record.rs`; shown by `jobs.rs`, waited for by
//! `wait.rs`. Source of the states: squeue(1), "JOB STATE CODES".

use serde::Serialize;

/// How a process ended, as wait(2) has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Status {
    /// Its exit code, 0 to 255.
    pub exit_code: u8,
    /// The signal that ended it; 0 for none.
    pub signal: u8,
}

impl Status {
    /// From the number that wait(2) answers.
    #[must_use]
    pub fn of_wait(number: u32) -> Self {
        Self {
            exit_code: (number >> 8) as u8,
            signal: (number & 0x7f) as u8,
        }
    }

    /// As a shell says it: 128 and the signal, else the exit code.
    #[must_use]
    pub fn as_shell(self) -> u8 {
        match self.signal {
            0 => self.exit_code,
            signal => 128 | signal,
        }
    }
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
// structure: allow struct-fields because each is a column of weft jobs
pub struct Task {
    /// The job's number; of an array, that of the whole.
    pub job: u64,
    /// The task's number in its array.
    pub task: Option<u32>,
    /// The job's name.
    pub name: String,
    /// Slurm's word, as RUNNING.
    pub state: String,
    /// Why it waits, or why it ended so; empty for no reason.
    pub reason: String,
    /// How its script ended, once it has.
    pub status: Status,
    /// How many nodes.
    pub nodes: u32,
    /// Which, as Slurm abbreviates them.
    pub node_list: String,
    /// When it began, in seconds since 1970.
    pub began: Option<u64>,
    /// When it ended.
    pub ended: Option<u64>,
    /// How often it was queued again.
    pub restarts: u32,
}

/// States of jobs that are not over.
const UNDER_WAY: [&str; 14] = [
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "COMPLETING",
    "CONFIGURING",
    "RESIZING",
    "REQUEUED",
    "REQUEUE_HOLD",
    "REQUEUE_FED",
    "RESV_DEL_HOLD",
    "SIGNALING",
    "SPECIAL_EXIT",
    "STAGE_OUT",
    "STOPPED",
];

/// The exit code of what TERM has ended.
const CANCELLED: u8 = 143;

/// Reasons for which a job waits for ever. Of these Slurm itself says so by name.
const NEVER: [&str; 2] = ["DependencyNeverSatisfied", "BadConstraints"];

impl Task {
    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !UNDER_WAY.contains(&self.state.as_str())
    }

    /// Whether it can never begin.
    #[must_use]
    pub fn can_never_begin(&self) -> bool {
        self.state == "PENDING" && NEVER.contains(&self.reason.as_str())
    }

    /// Its exit code, as docs/slurm.md lists them; `None` while it is under way.
    #[must_use]
    pub fn exit_code(&self) -> Option<u8> {
        if !self.is_over() {
            return None;
        }
        Some(match self.state.as_str() {
            "COMPLETED" => 0,
            "TIMEOUT" | "DEADLINE" => 124,
            "NODE_FAIL" | "BOOT_FAIL" => 4,
            "OUT_OF_MEMORY" | "LOST" => 137,
            "CANCELLED" | "PREEMPTED" | "REVOKED" => CANCELLED,
            // A job that failed has not ended with 0, even where its script did.
            _ => self.status.as_shell().max(1),
        })
    }

    /// Takes into account when somebody cancelled it, in seconds since 1970: it is cancelled, if it
    /// ran then and did not end well. In the second in which it ended, only TERM shows that it ran.
    pub fn note_cancelled(&mut self, at: Option<u64>) {
        let (Some(at), Some(began)) = (at, self.began) else {
            return;
        };
        let ended = self.ended.unwrap_or(u64::MAX);
        let failed = match self.state.as_str() {
            "FAILED" if self.status.as_shell() != CANCELLED => at < ended,
            "FAILED" | "LOST" => at <= ended,
            _ => false,
        };
        if failed && began <= at {
            self.state = "CANCELLED".to_owned();
        }
    }

    /// Its number as Slurm writes it: `12`, `12_3`.
    #[must_use]
    pub fn number(&self) -> String {
        match self.task {
            Some(task) => format!("{}_{task}", self.job),
            None => self.job.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(state: &str, exit_code: u8, signal: u8) -> Task {
        Task {
            job: 12,
            state: state.to_owned(),
            status: Status { exit_code, signal },
            ..Task::default()
        }
    }

    #[test]
    fn each_end_has_its_exit_code_and_none_is_success_but_completed() {
        for (state, code, signal, wanted) in [
            ("COMPLETED", 0, 0, Some(0)),
            ("FAILED", 7, 0, Some(7)),
            ("FAILED", 0, 11, Some(139)),
            ("FAILED", 0, 0, Some(1)),
            ("CANCELLED", 0, 0, Some(143)),
            ("TIMEOUT", 0, 0, Some(124)),
            ("NODE_FAIL", 0, 0, Some(4)),
            ("OUT_OF_MEMORY", 0, 0, Some(137)),
            ("A_WORD_OF_NEXT_YEAR", 0, 0, Some(1)),
            ("RUNNING", 0, 0, None),
            ("COMPLETING", 0, 0, None),
            ("REQUEUED", 1, 0, None),
        ] {
            assert_eq!(task(state, code, signal).exit_code(), wanted, "{state}");
        }
    }

    #[test]
    fn wait_statuses_are_taken_apart() {
        assert_eq!(Status::of_wait(36608).as_shell(), 143);
        assert_eq!(Status::of_wait(9).as_shell(), 137);
        assert_eq!(Status::of_wait(0x89).as_shell(), 137, "with a core dump");
    }

    #[test]
    fn only_what_slurm_calls_impossible_waits_for_ever() {
        let mut waits = task("PENDING", 0, 0);
        assert!(!waits.can_never_begin());
        waits.reason = "DependencyNeverSatisfied".into();
        assert!(waits.can_never_begin());
    }
}
