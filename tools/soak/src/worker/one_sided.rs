// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One-sided operations of a worker: writes a pattern into its part of another's registered memory,
//! reads it back, and adds to a word that nobody else adds to, so that each addition must find what
//! the one before left.
//!
//! Called by the worker in its loop. One operation is under way for each target. Ranks that were
//! killed once are left out.

use std::collections::{HashMap, HashSet};

use fastrand::Rng;

use crate::fabric::{Completion, Ended, Node, Posted, RemotePart};
use crate::finding::{Finding, Kind};
use crate::traffic::Life;

/// Bytes of the part of the memory that belongs to one writer. Chosen: beyond what travels with its
/// request (8000 bytes).
const PART_BYTES: usize = 24 << 10;
/// Where the parts begin; a word for each rank lies before them.
const PARTS_FROM: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Idle,
    /// A pattern of this number and length is being written.
    Writing(u64, usize),
    /// It is there.
    Written(u64, usize),
    Reading(u64, usize),
    Adding,
}

#[derive(Clone, Copy, Debug)]
struct Target {
    step: Step,
    patterns: u64,
    sum: u64,
}

/// The one-sided operations of one process.
pub(super) struct OneSided {
    me: Life,
    targets: HashMap<u8, Target>,
    open: HashMap<u64, u8>,
    left_out: HashSet<u8>,
    /// What failed: findings unless it turns out that somebody was killed.
    suspicions: Vec<Finding>,
    pub(super) ended_count: u64,
}

/// Bytes that each process registers in a job of so many ranks.
pub(super) fn registered_bytes(ranks: u8) -> usize {
    PARTS_FROM + usize::from(ranks) * PART_BYTES
}

impl OneSided {
    pub(super) fn new(me: Life) -> Self {
        Self {
            me,
            targets: HashMap::new(),
            open: HashMap::new(),
            left_out: HashSet::new(),
            suspicions: Vec::new(),
            ended_count: 0,
        }
    }

    /// A rank was killed: what it holds is unknown from now on.
    pub(super) fn gone(&mut self, rank: u8) {
        self.left_out.insert(rank);
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.open.contains_key(&number)
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.open.is_empty()
    }

    /// Starts an operation at a target at which none is under way. True if one was started.
    pub(super) fn advance(
        &mut self,
        node: &mut Node,
        random: &mut Rng,
        names: &HashMap<u8, u64>,
    ) -> bool {
        let mut ranks: Vec<u8> = names.keys().copied().collect();
        ranks.retain(|rank| !self.left_out.contains(rank));
        // A process that was started again finds what its predecessor left: only the first one
        // counts.
        if ranks.is_empty() || self.me.generation > 0 {
            return false;
        }
        ranks.sort_unstable();
        let rank = ranks[random.usize(..ranks.len())];
        let address = names[&rank];
        let target = self.targets.entry(rank).or_insert(Target {
            step: Step::Idle,
            patterns: 0,
            sum: 0,
        });
        let part = (PARTS_FROM + usize::from(self.me.rank) * PART_BYTES) as u64;
        let remote = |offset| RemotePart { address, offset };
        let key = u64::from(self.me.rank) << 8 | u64::from(rank);
        let (posted, step) = match target.step {
            Step::Idle if random.u32(..3) == 0 => {
                let word = 8 * u64::from(self.me.rank);
                (
                    remote(word).fetch_and_add(node, target.sum + 1),
                    Step::Adding,
                )
            }
            Step::Idle => {
                let length = random.usize(1..=PART_BYTES);
                let number = target.patterns + 1;
                let bytes = pattern(key, number, length);
                (
                    remote(part).write(node, bytes),
                    Step::Writing(number, length),
                )
            }
            Step::Written(number, length) => (
                remote(part).read(node, vec![0; length]),
                Step::Reading(number, length),
            ),
            Step::Writing(..) | Step::Reading(..) | Step::Adding => return false,
        };
        match posted {
            Posted::Started(number) => {
                target.step = step;
                self.open.insert(number, rank);
                true
            }
            Posted::Again | Posted::Done => false,
            Posted::Refused(error) => {
                self.left_out.insert(rank);
                self.suspect(rank, format!("{step:?} was refused with error {error}"));
                false
            }
        }
    }

    fn suspect(&mut self, rank: u8, what: String) {
        let text = format!("one-sided, {} at rank {rank}: {what}", self.me);
        self.suspicions.push(Finding::new(Kind::Failed, text));
    }

    /// An operation has ended. A finding if it did something else than it should.
    pub(super) fn take(&mut self, completion: &Completion) -> Option<Finding> {
        let rank = self.open.remove(&completion.number)?;
        let target = self.targets.get_mut(&rank)?;
        self.ended_count += 1;
        let step = std::mem::replace(&mut target.step, Step::Idle);
        if let Ended::Failed(error) = completion.ended {
            self.left_out.insert(rank);
            self.suspect(rank, format!("{step:?} failed with error {error}"));
            return None;
        }
        let bytes = completion.bytes.as_deref().unwrap_or_default();
        let wrong = |kind, what: String| {
            let text = format!("one-sided, {} at rank {rank}: {what}", self.me);
            Some(Finding::new(kind, text))
        };
        match step {
            Step::Writing(number, length) => {
                target.patterns = number;
                target.step = Step::Written(number, length);
                None
            }
            Step::Reading(number, length) => {
                let key = u64::from(self.me.rank) << 8 | u64::from(rank);
                let should = pattern(key, number, length);
                let first = bytes
                    .iter()
                    .zip(&should)
                    .position(|(is, should)| is != should)?;
                wrong(
                    Kind::Wrong,
                    format!("byte {first} of {length} is not what write {number} left"),
                )
            }
            Step::Adding => {
                let was = bytes
                    .first_chunk::<8>()
                    .map_or(0, |word| u64::from_ne_bytes(*word));
                let should = target.sum * (target.sum + 1) / 2;
                target.sum += 1;
                if was == should {
                    return None;
                }
                let kind = if was > should {
                    Kind::Doubled
                } else {
                    Kind::Lost
                };
                wrong(
                    kind,
                    format!("addition {} found {was}, not {should}", target.sum),
                )
            }
            Step::Idle | Step::Written(..) => None,
        }
    }

    /// What failed since the last time, for the worker to judge.
    pub(super) fn failures(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.suspicions)
    }

    /// What is under way, for a report.
    pub(super) fn describe(&self) -> String {
        let steps = self.open.values().filter_map(|rank| {
            let target = self.targets.get(rank)?;
            Some(format!("{:?} at rank {rank}", target.step))
        });
        format!("one-sided: {:?}", steps.collect::<Vec<_>>())
    }
}

fn pattern(key: u64, number: u64, length: usize) -> Vec<u8> {
    let start = Rng::with_seed(key << 32 ^ number).u64(..);
    (0..length)
        .map(|at| (start.rotate_left((at % 61) as u32) as u8).wrapping_add((at >> 6) as u8))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(number: u64, bytes: Vec<u8>) -> Completion {
        Completion {
            number,
            ended: Ended::Well,
            length_bytes: bytes.len(),
            bytes: Some(bytes),
            tag: 0,
            data: None,
            source: None,
            offset: 0,
            is_last: true,
        }
    }

    fn with(step: Step, sum: u64) -> OneSided {
        let me = Life {
            rank: 1,
            generation: 0,
        };
        let mut all = OneSided::new(me);
        let target = Target {
            step,
            patterns: 5,
            sum,
        };
        all.targets.insert(2, target);
        all.open.insert(9, 2);
        all
    }

    fn kind(finding: Option<Finding>) -> Option<Kind> {
        finding.map(|finding| finding.kind)
    }

    #[test]
    fn a_byte_that_differs_from_what_was_written_is_wrong() {
        let key = 1 << 8 | 2;
        let mut bytes = pattern(key, 5, 1000);
        assert_eq!(
            with(Step::Reading(5, 1000), 0).take(&ended(9, bytes.clone())),
            None
        );
        bytes[999] ^= 1;
        let found = with(Step::Reading(5, 1000), 0).take(&ended(9, bytes));
        assert_eq!(kind(found), Some(Kind::Wrong));
    }

    #[test]
    fn an_addition_carried_out_twice_or_never_is_seen_by_the_next() {
        // Three additions of 1, 2 and 3 leave 6.
        let word = |value: u64| value.to_ne_bytes().to_vec();
        assert_eq!(with(Step::Adding, 3).take(&ended(9, word(6))), None);
        let twice = with(Step::Adding, 3).take(&ended(9, word(9)));
        assert_eq!(kind(twice), Some(Kind::Doubled));
        let never = with(Step::Adding, 3).take(&ended(9, word(3)));
        assert_eq!(kind(never), Some(Kind::Lost));
    }
}
