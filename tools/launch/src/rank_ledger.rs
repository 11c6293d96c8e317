// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which ranks of this host run, and which was the first that failed by itself. Pure.
//!
//! `rank_ends.rs` hears the words; `supervise.rs` asks. Source: wait(2) for the status.

use std::collections::HashMap;

use nix::sys::signal::Signal;

use crate::signals::killed_by;

/// One word of the launcher's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// This process is the rank of this number.
    Rank(u32, u32),
    /// This child of a launcher's process has ended with this status.
    Ended(u32, i32),
    /// A launcher's process sends it this signal.
    Sent(u32, i32),
}

impl Word {
    /// From its text; `None` for another one.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (name, process) = (words.next()?, words.next()?.parse().ok()?);
        let value: i32 = words.next()?.parse().ok()?;
        match name {
            "rank" => Some(Self::Rank(process, value.try_into().ok()?)),
            "ended" => Some(Self::Ended(process, value)),
            "sent" => Some(Self::Sent(process, value)),
            _ => None,
        }
    }
}

/// How a rank failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Its number.
    pub rank: u32,
    /// Its end, as of waitpid(2).
    status: i32,
}

impl Failure {
    fn signal(self) -> i32 {
        self.status & 0x7f
    }

    /// As shells have it.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self.signal() {
            0 => u8::try_from((self.status >> 8) & 0xff).unwrap_or(1),
            signal => killed_by(signal),
        }
    }

    /// In words, as "rank 1 ended with exit code 7".
    #[must_use]
    pub fn in_words(self) -> String {
        let rank = self.rank;
        match self.signal() {
            0 => format!("rank {rank} ended with exit code {}", self.exit_code()),
            signal => match Signal::try_from(signal) {
                Ok(signal) => format!("{signal} ended rank {rank}"),
                Err(_) => format!("signal {signal} ended rank {rank}"),
            },
        }
    }
}

/// A rank that runs.
#[derive(Debug, Clone, Copy)]
struct Rank {
    number: u32,
    /// Which signals the launcher has sent it, a bit for each.
    sent: u64,
}

/// A rank that has ended with 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedWell {
    /// Its number.
    pub rank: u32,
    /// The process that it was.
    pub process: u32,
}

/// All that was heard.
#[derive(Debug, Default)]
pub struct Ledger {
    running: HashMap<u32, Rank>,
    /// The first rank that failed by itself.
    pub first: Option<Failure>,
    /// The first rank that ended with 0.
    pub first_well: Option<EndedWell>,
    /// Whether the launcher has sent KILL to a rank that had not ended: it ends the job.
    pub launcher_kills: bool,
    /// Whether a rank has ended.
    has_ended: bool,
}

impl Ledger {
    /// Adds a word; answers whether the first rank has ended, in whatever way.
    pub fn hear(&mut self, word: Word) -> bool {
        match word {
            Word::Rank(process, number) => {
                self.running.insert(process, Rank { number, sent: 0 });
                false
            }
            Word::Sent(process, signal) => {
                if let Some(rank) = self.running.get_mut(&process) {
                    rank.sent |= bit(signal);
                    self.launcher_kills |= signal == Signal::SIGKILL as i32;
                }
                false
            }
            Word::Ended(process, status) => {
                let Some(Rank { number: rank, sent }) = self.running.remove(&process) else {
                    return false;
                };
                if status == 0 {
                    self.first_well.get_or_insert(EndedWell { rank, process });
                } else if failed_by_itself(sent, status) {
                    self.first.get_or_insert(Failure { rank, status });
                }
                !std::mem::replace(&mut self.has_ended, true)
            }
        }
    }

    /// The processes of the ranks whose end nobody has told, in ascending order.
    #[must_use]
    pub fn running(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.running.keys().copied().collect();
        all.sort_unstable();
        all
    }
}

/// Whether a rank that the launcher had sent these signals owes this end to itself, and it is a
/// failure. Who is sent KILL cannot choose an exit code any more, but who is sent TERM can.
fn failed_by_itself(sent: u64, status: i32) -> bool {
    match status & 0x7f {
        0 => status != 0 && sent & !bit(Signal::SIGKILL as i32) == 0,
        signal => sent & bit(signal) == 0,
    }
}

fn bit(signal: i32) -> u64 {
    1_u64.checked_shl(signal.unsigned_abs()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_of(words: &[&str]) -> Option<(u32, u8)> {
        let mut ledger = Ledger::default();
        for text in ["rank 70 0", "rank 71 1"].iter().chain(words) {
            ledger.hear(Word::read(text).unwrap());
        }
        ledger.first.map(|first| (first.rank, first.exit_code()))
    }

    const CODE_7: &str = "ended 71 1792";

    #[test]
    fn the_first_rank_that_fails_counts_whatever_ends_the_others() {
        let others = ["sent 70 15", "ended 70 15"];
        assert_eq!(first_of(&[CODE_7, others[0], others[1]]), Some((1, 7)));
        assert_eq!(first_of(&[CODE_7, "ended 70 768"]), Some((1, 7)));
        assert_eq!(first_of(&["ended 70 0", "ended 71 9"]), Some((1, 137)));
        // With a core (wait(2)).
        assert_eq!(first_of(&["ended 71 139"]), Some((1, 139)));
        assert_eq!(first_of(&["ended 70 0", "ended 71 0"]), None);
        assert_eq!(first_of(&["ended 5 1792"]), None, "that is no rank");
    }

    #[test]
    fn an_end_that_the_launcher_may_have_brought_about_is_no_failure() {
        assert_eq!(first_of(&["sent 71 9", "ended 71 9"]), None);
        assert_eq!(first_of(&["sent 71 15", CODE_7]), None);
        // KILL cannot be answered by an exit code, nor by another signal.
        assert_eq!(first_of(&["sent 71 9", CODE_7]), Some((1, 7)));
        assert_eq!(first_of(&["sent 71 9", "ended 71 11"]), Some((1, 139)));
    }

    #[test]
    fn a_launcher_kills_when_it_sends_kill_to_a_rank_that_runs() {
        let mut ledger = Ledger::default();
        for word in ["rank 70 0", "sent 70 15", "sent 69 9"] {
            ledger.hear(Word::read(word).unwrap());
        }
        assert!(!ledger.launcher_kills);
        ledger.hear(Word::read("sent 70 9").unwrap());
        assert!(ledger.launcher_kills);
        assert_eq!(ledger.running(), [70]);
    }

    #[test]
    fn the_first_rank_that_ends_is_told_once_and_the_first_that_ends_well_is_known() {
        let mut ledger = Ledger::default();
        let mut hear = |word: &str| ledger.hear(Word::read(word).unwrap());
        assert!(!hear("rank 70 4") && !hear("rank 71 5") && !hear("rank 72 6"));
        assert!(!hear("ended 5 0"), "that is no rank");
        assert!(hear("ended 71 9"));
        assert!(!hear("ended 70 0") && !hear("ended 72 0"));
        let first = EndedWell {
            rank: 4,
            process: 70,
        };
        assert_eq!(ledger.first_well, Some(first));
    }

    #[test]
    fn texts_that_are_no_words_are_none() {
        for text in [
            "",
            "rank 70",
            "rank 70 -1",
            "ended x 0",
            "gone 70 0",
            "sent  70 9",
        ] {
            assert_eq!(Word::read(text), None, "{text}");
        }
    }

    #[test]
    fn failures_are_put_into_words() {
        let words = |status| Failure { rank: 3, status }.in_words();
        assert_eq!(words(0x700), "rank 3 ended with exit code 7");
        assert_eq!(words(9), "SIGKILL ended rank 3");
        assert_eq!(words(40), "signal 40 ended rank 3");
    }
}
