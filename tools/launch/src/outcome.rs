// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What came of a job: the exit code, whether Weft was used, the summary for people and the record
//! for scripts.
//!
//! Called by `lib.rs` at the end; pure but for the writing of the record.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};

use serde::Serialize;

use crate::collective_calls;
use crate::command::Launch;
use crate::discover::Installation;
use crate::hung;
use crate::rank_ledger::Failure;
use crate::report::{Report, Summary};
use crate::signals::killed_by;
use crate::supervise::{Ending, GRACE, Reason};
use crate::transport::Transport;

/// Exit code when the time limit ended the job, as timeout(1) has it.
pub const TIMED_OUT: u8 = 124;
/// Exit code when the job was ended because a host was lost.
pub const HOST_LOST: u8 = 4;
/// Exit code when the launcher deadlocked: what a rank wanted it to pass on, nobody knows then.
pub const DEADLOCKED: u8 = 1;
/// Exit code when Weft was required and not used.
pub const WEFT_NOT_USED: u8 = 3;

/// Whether the messages of a job went through Weft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Usage {
    /// Another transport was asked for, or the job had one rank.
    NotExpected,
    /// Every rank said at its end what it had sent, and messages went through.
    Full,
    /// Fewer processes opened an endpoint than there were ranks, or not all of them closed it.
    Partial,
    /// No process opened an endpoint, or none sent a message.
    None,
}

impl Usage {
    /// Judges by the reports.
    #[must_use]
    pub fn of(transport: &Transport, ranks: u32, summary: &Summary) -> Self {
        let complete = summary.processes >= summary.opened;
        // Whose ranks only meet in collectives may send no message.
        let has_carried =
            summary.total().messages > 0 || collective_calls::served(&summary.collectives) > 0;
        if *transport != Transport::Weft || ranks < 2 {
            Self::NotExpected
        } else if summary.opened == 0 || (complete && !has_carried) {
            Self::None
        } else if summary.opened < ranks || !complete {
            Self::Partial
        } else {
            Self::Full
        }
    }
}

/// Whether the program itself ended with success.
#[must_use]
pub fn ended_well(ending: &Ending) -> bool {
    ending.code == Some(0) && ending.reason.is_none() && ending.first.is_none()
}

/// The exit code of `weft run`: that of the rank that failed first, where the launcher's processes
/// told it; launchers pass on other ones. An end that was asked for is never a success, whatever
/// the launcher makes of it.
#[must_use]
pub fn exit_code(ending: &Ending, usage: Usage, weft_is_required: bool) -> u8 {
    let first = ending.first.map(Failure::exit_code);
    let own = match (ending.reason, ending.code, ending.signal) {
        (Some(Reason::Asked(signal)), ..) => killed_by(signal as i32),
        (Some(Reason::Time), ..) => TIMED_OUT,
        (Some(Reason::Host), ..) => HOST_LOST,
        (Some(Reason::Deadlock | Reason::Rank), ..) => first.unwrap_or(DEADLOCKED),
        (None, ..) if first.is_some() => first.unwrap_or(1),
        (None, Some(code), _) => u8::try_from(code & 0xff).unwrap_or(1),
        (None, None, Some(signal)) => killed_by(signal),
        (None, None, None) => 1,
    };
    if own == 0 && weft_is_required && matches!(usage, Usage::None) {
        WEFT_NOT_USED
    } else {
        own
    }
}

/// Whether it was ended for a reason that is told even with --quiet.
#[must_use]
pub fn is_news_to_all(ending: &Ending) -> bool {
    matches!(
        ending.reason,
        Some(Reason::Time | Reason::Deadlock | Reason::Rank)
    )
}

/// Why the job was ended from here, in a sentence; `None` where it ended by itself, or the user
/// knows already.
#[must_use]
pub fn end_in_words(ending: &Ending, limit_seconds: Option<f64>) -> Option<String> {
    let what = match ending.reason? {
        Reason::Time => format!(
            "the job was ended after {} seconds (--timeout)",
            limit_seconds.unwrap_or_default()
        ),
        Reason::Asked(signal) => format!("the job was ended by {signal}"),
        Reason::Rank => {
            let cause = ending
                .first
                .map_or_else(|| "a rank failed".to_owned(), Failure::in_words);
            let patience = hung::PATIENCE_SECONDS;
            format!("the job was ended: {cause}, and {patience} s later it had not ended")
        }
        Reason::Deadlock => {
            "the job was ended: Open MPI's launcher deadlocked, as it sometimes does when \
             ranks fail in MPI_Init; it did not say how the ranks ended"
                .to_owned()
        }
        Reason::Host => return None,
    };
    Some(if ending.forced {
        format!(
            "{what}; what still ran {} s later, or at a second Ctrl-C, was killed",
            GRACE.as_secs()
        )
    } else {
        what
    })
}

/// The warning that fits, if one does. A job that was ended from here says nothing about Weft: its
/// ranks were killed, and killed ranks do not say what they sent. Nor does one that failed while it
/// used Weft: its own message says why.
#[must_use]
pub fn warning(usage: Usage, summary: &Summary, ranks: u32, ending: &Ending) -> Option<String> {
    if ending.reason.is_some() {
        return None;
    }
    let failed = !ended_well(ending);
    let Summary {
        opened, processes, ..
    } = *summary;
    match usage {
        Usage::NotExpected | Usage::Full => None,
        Usage::None if opened == 0 && failed => Some(
            "no rank had opened an endpoint of Weft when the job failed. If its MPI could not \
             start (it says so above), `weft doctor` tells why; else the program failed before \
             MPI_Init, and Weft has no part in it"
                .into(),
        ),
        _ if failed => None,
        Usage::None if opened == 0 => Some(
            "Weft was NOT used: no rank opened an endpoint of it. Either the program never called \
             MPI_Init, or its MPI did not take the provider: run again with --env \
             FI_LOG_LEVEL=warn to see libfabric's reasons, and see `weft doctor`"
                .into(),
        ),
        Usage::None => Some(format!(
            "Weft was NOT used: {opened} processes opened an endpoint of it, but no message went \
             through; the MPI used another way between its ranks, or the ranks sent each other \
             nothing"
        )),
        Usage::Partial if opened < ranks => Some(format!(
            "only {opened} of {ranks} ranks opened an endpoint of Weft; the others used another \
             way, or never called MPI_Init"
        )),
        Usage::Partial => Some(format!(
            "only {processes} of {opened} ranks reported their traffic; the others ended without \
             MPI_Finalize, and their traffic is not in the sums"
        )),
    }
}

/// How a job ended, in the record.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct End {
    /// Exit code of `weft run`.
    pub exit_code: u8,
    /// The signal that killed the launcher.
    pub signal: Option<i32>,
    /// Whether the time limit ended the job.
    pub timed_out: bool,
    /// Whether it was ended because a host was lost.
    pub host_lost: bool,
    /// Whether it was ended because its launcher deadlocked.
    pub launcher_deadlocked: bool,
    /// The rank of this host that failed first.
    pub failed_rank: Option<u32>,
    /// The signal by which somebody asked for the end, by its name.
    pub ended_by: Option<&'static str>,
}

impl End {
    /// From the ending, with the exit code of `weft run`.
    #[must_use]
    pub fn of(ending: &Ending, exit_code: u8) -> Self {
        Self {
            exit_code,
            signal: ending.signal,
            timed_out: ending.reason == Some(Reason::Time),
            host_lost: ending.reason == Some(Reason::Host),
            launcher_deadlocked: ending.reason == Some(Reason::Deadlock),
            failed_rank: ending.first.map(|first| first.rank),
            ended_by: match ending.reason {
                Some(Reason::Asked(signal)) => Some(signal.as_str()),
                _ => None,
            },
        }
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
    /// How it ended; its members stand beside the others.
    #[serde(flatten)]
    pub end: End,
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
    use crate::collective_calls::Collective;
    use crate::report::Traffic;
    use nix::sys::signal::Signal;
    use std::time::Duration;

    fn ending(code: Option<i32>, signal: Option<i32>, reason: Option<Reason>) -> Ending {
        Ending {
            code,
            signal,
            reason,
            first: None,
            forced: false,
            launcher: 1,
            elapsed: Duration::ZERO,
        }
    }

    fn well() -> Ending {
        ending(Some(0), None, None)
    }

    fn failed() -> Ending {
        ending(Some(7), None, None)
    }

    fn summary(opened: u32, processes: u32, messages: u64) -> Summary {
        Summary {
            opened,
            processes,
            sent: [("inline".to_owned(), Traffic { messages, bytes: 0 })].into(),
            ..Summary::default()
        }
    }

    #[test]
    fn exit_codes_are_the_programs_own_unless_it_was_killed_or_timed_out() {
        let time = Some(Reason::Time);
        for (end, code) in [
            (failed(), 7),
            (ending(None, Some(15), None), 143),
            (ending(Some(0), None, time), TIMED_OUT),
            (ending(None, Some(9), time), TIMED_OUT),
            (ending(Some(0), None, Some(Reason::Host)), HOST_LOST),
            (ending(None, Some(9), Some(Reason::Deadlock)), DEADLOCKED),
        ] {
            assert_eq!(exit_code(&end, Usage::Full, false), code, "{end:?}");
        }
        assert!(!ended_well(&ending(Some(0), None, Some(Reason::Host))));
    }

    #[test]
    fn an_end_that_was_asked_for_is_never_a_success() {
        for (signal, code) in [
            (Signal::SIGINT, 130),
            (Signal::SIGTERM, 143),
            (Signal::SIGHUP, 129),
            (Signal::SIGQUIT, 131),
        ] {
            for own in [Some(0), Some(9), None] {
                let end = ending(own, None, Some(Reason::Asked(signal)));
                assert_eq!(exit_code(&end, Usage::Full, true), code);
                assert!(!ended_well(&end));
            }
        }
    }

    #[test]
    fn an_end_from_here_is_put_into_words_once() {
        let asked = ending(Some(0), None, Some(Reason::Asked(Signal::SIGTERM)));
        assert_eq!(
            end_in_words(&asked, None).unwrap(),
            "the job was ended by SIGTERM"
        );
        let deadlocked = ending(None, Some(9), Some(Reason::Deadlock));
        let words = end_in_words(&deadlocked, None).unwrap();
        assert!(words.contains("launcher deadlocked"), "{words}");
        let forced = Ending {
            forced: true,
            ..ending(None, Some(9), Some(Reason::Time))
        };
        let words = end_in_words(&forced, Some(2.5)).unwrap();
        assert!(
            words.contains("after 2.5 seconds") && words.contains("was killed"),
            "{words}"
        );
        assert_eq!(end_in_words(&failed(), Some(1.0)), None);
    }

    #[test]
    fn unused_weft_fails_the_job_only_where_it_is_required() {
        assert_eq!(exit_code(&well(), Usage::None, true), WEFT_NOT_USED);
        assert_eq!(exit_code(&well(), Usage::None, false), 0);
        assert_eq!(exit_code(&well(), Usage::Partial, true), 0);
        assert_eq!(exit_code(&failed(), Usage::None, true), 7);
    }

    #[test]
    fn use_is_judged_by_who_reported_and_what() {
        for (summary, ranks, usage) in [
            (summary(4, 4, 9), 4, Usage::Full),
            (summary(3, 3, 9), 4, Usage::Partial),
            (summary(4, 3, 9), 4, Usage::Partial),
            (summary(4, 4, 0), 4, Usage::None),
            // Nobody has said that nothing was sent.
            (summary(4, 0, 0), 4, Usage::Partial),
            (summary(0, 0, 0), 4, Usage::None),
            (summary(0, 0, 0), 1, Usage::NotExpected),
        ] {
            assert_eq!(
                Usage::of(&Transport::Weft, ranks, &summary),
                usage,
                "{summary:?}"
            );
        }
        let mut met = summary(4, 4, 0);
        let barrier = Collective { weft: 4, mpi: 0 };
        met.collectives.insert("barrier".into(), barrier);
        assert_eq!(Usage::of(&Transport::Weft, 4, &met), Usage::Full);
        let none = summary(0, 0, 0);
        assert_eq!(Usage::of(&Transport::Native, 4, &none), Usage::NotExpected);
    }

    #[test]
    fn warnings_tell_the_cases_apart() {
        for (usage, found, end, words) in [
            (
                Usage::None,
                summary(0, 0, 0),
                well(),
                "no rank opened an endpoint",
            ),
            (
                Usage::None,
                summary(0, 0, 0),
                failed(),
                "when the job failed",
            ),
            (
                Usage::None,
                summary(2, 2, 0),
                well(),
                "no message went through",
            ),
            (
                Usage::Partial,
                summary(3, 3, 1),
                well(),
                "only 3 of 4 ranks opened",
            ),
            (
                Usage::Partial,
                summary(4, 3, 1),
                well(),
                "only 3 of 4 ranks reported their traffic; the others ended without MPI_Finalize",
            ),
        ] {
            let text = warning(usage, &found, 4, &end).unwrap();
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(warning(Usage::Full, &summary(4, 4, 1), 4, &well()), None);
    }

    #[test]
    fn a_crash_a_time_limit_and_ctrl_c_are_not_blamed_on_weft() {
        for found in [summary(4, 0, 0), summary(4, 1, 3)] {
            assert_eq!(warning(Usage::Partial, &found, 4, &failed()), None);
        }
        for reason in [Reason::Time, Reason::Host, Reason::Asked(Signal::SIGINT)] {
            let end = ending(Some(0), None, Some(reason));
            for found in [summary(0, 0, 0), summary(4, 0, 0)] {
                let usage = Usage::of(&Transport::Weft, 4, &found);
                assert_eq!(warning(usage, &found, 4, &end), None, "{reason:?}");
            }
        }
    }
}
