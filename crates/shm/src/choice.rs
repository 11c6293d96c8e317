// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a large message is fetched: a choice by what this machine did lately, for each size class.
//!
//! On bare metal single copy wins for large messages (Vienne 2014); on virtual machines it can be three times
//! slower. A pipelined copy is best stored through the cache where both processors share it and past it where they
//! do not, and a virtual processor that moves can change the answer within one run. So all ways are timed as they
//! are used, and the slower ones are tried again now and then. Asked by rendezvous for every matched offer.

use crate::settings::SingleCopy;

/// One of the ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    /// The receiver reads the sender's memory.
    SingleCopy = 0,
    /// Through a pipe, stored through the sender's cache.
    Pipelined = 1,
    /// Through a pipe, stored past the sender's cache.
    PastCache = 2,
    /// The receiver copies out of the sender's heap, which it has mapped.
    Mapped = 3,
    /// The same, with stores that go past the receiver's cache.
    MappedPastCache = 4,
}

/// The ways that need no permission.
const PIPELINED: [Method; 2] = [Method::Pipelined, Method::PastCache];
/// The ways without single copy.
const UNHELPED: [Method; 4] = [
    Method::Pipelined,
    Method::PastCache,
    Method::Mapped,
    Method::MappedPastCache,
];
/// All ways.
const ALL: [Method; 5] = [
    Method::Pipelined,
    Method::PastCache,
    Method::SingleCopy,
    Method::Mapped,
    Method::MappedPastCache,
];

/// Size classes: one for each power of two. Specified: message lengths have 64 bits.
const CLASSES: usize = 64;

/// Transfers of a class in which each way is tried before the first choice. Chosen: enough to see past one
/// interruption.
const FIRST_TRIALS: u32 = 3;

/// Every so many transfers of a class another way is tried once more. Chosen: costs at most a few percent even
/// where it takes three times as long.
const TRIAL_PERIOD: u32 = 64;

/// How fast an old best time is forgotten, as a part of itself for each new sample. Chosen: a fifth in twenty
/// samples, so that one lucky transfer does not decide for long.
const FORGET_DIVISOR: u64 = 100;

#[derive(Clone, Copy, Default, Debug)]
struct Class {
    /// Best time lately in ns for each KiB, times 1024; by method.
    cost: [u64; 5],
    samples: [u32; 5],
    transfers: u32,
}

/// What was learned so far.
#[derive(Debug)]
pub(crate) struct Choice {
    classes: Box<[Class; CLASSES]>,
}

impl Choice {
    pub(crate) fn new() -> Self {
        Self {
            classes: Box::new([Class::default(); CLASSES]),
        }
    }

    /// The way for the next transfer of `bytes`.
    pub(crate) fn next(&mut self, bytes: u64, may_single_copy: bool, may_map: bool) -> Method {
        let ways: &[Method] = match (may_single_copy, may_map) {
            (true, true) => &ALL,
            (true, false) => &ALL[..3],
            (false, true) => &UNHELPED,
            (false, false) => &PIPELINED,
        };
        let class = &mut self.classes[class_of(bytes)];
        class.transfers = class.transfers.wrapping_add(1);
        let samples = |way: Method| class.samples[way as usize];
        let cost = |way: Method| class.cost[way as usize];
        let mut rarest = ways[0];
        let mut best = ways[0];
        for &way in ways {
            rarest = if samples(way) < samples(rarest) {
                way
            } else {
                rarest
            };
            best = if cost(way) < cost(best) { way } else { best };
        }
        if samples(rarest) < FIRST_TRIALS {
            return rarest;
        }
        if class.transfers % TRIAL_PERIOD != 0 {
            return best;
        }
        let others = ways.len() - 1;
        let turn = (class.transfers / TRIAL_PERIOD) as usize % others;
        ways.iter()
            .copied()
            .filter(|&way| way != best)
            .nth(turn)
            .unwrap_or(best)
    }

    /// The way that is now the fastest for a size class; None before all that are permitted were tried.
    pub(crate) fn settled(&self, class: usize) -> Option<Method> {
        let class = self.classes.get(class)?;
        let tried = |way: &Method| class.samples[*way as usize] >= FIRST_TRIALS;
        let known =
            PIPELINED.iter().all(tried) || tried(&Method::SingleCopy) || tried(&Method::Mapped);
        let ways = ALL.into_iter().filter(tried);
        ways.min_by_key(|&way| class.cost[way as usize])
            .filter(|_| known)
    }

    /// Learns that a transfer of `bytes` took `elapsed_ns`.
    pub(crate) fn learn(&mut self, method: Method, bytes: u64, elapsed_ns: u64) {
        let class = &mut self.classes[class_of(bytes)];
        let index = method as usize;
        let cost = elapsed_ns.saturating_mul(1024) / (bytes / 1024).max(1);
        let aged = class.cost[index] + class.cost[index] / FORGET_DIVISOR;
        class.cost[index] = if class.samples[index] == 0 {
            cost
        } else {
            aged.min(cost)
        };
        class.samples[index] = class.samples[index].saturating_add(1);
    }
}

fn class_of(bytes: u64) -> usize {
    bytes.max(1).ilog2() as usize
}

/// Whether single copy is taken wherever the kernel permits it, without measuring. Ranks that share processors do so
/// unless told otherwise: a pipe needs both of its ends to run in turns, and every turn is a switch between processes,
/// which no time of a single transfer shows (docs/fast-path.md has what it is worth).
pub(crate) fn prefers_single_copy(asked: SingleCopy, shares_cores: bool) -> bool {
    match asked {
        SingleCopy::Always => true,
        SingleCopy::Auto => shares_cores,
        SingleCopy::Never => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs transfers of a MiB that take the given times; answers how often each way was taken.
    fn run(
        choice: &mut Choice,
        transfers: u32,
        may_single_copy: bool,
        elapsed_ns: [u64; 3],
    ) -> [u32; 3] {
        let mut taken = [0; 3];
        for _ in 0..transfers {
            let method = choice.next(1 << 20, may_single_copy, false);
            taken[method as usize] += 1;
            choice.learn(method, 1 << 20, elapsed_ns[method as usize]);
        }
        taken
    }

    #[test]
    fn the_fastest_way_is_taken_nearly_always() {
        for fastest in 0..3 {
            let mut elapsed_ns = [100_000; 3];
            elapsed_ns[fastest] = 40_000;
            let taken = run(&mut Choice::new(), 1000, true, elapsed_ns);
            assert!(
                taken[fastest] > 960,
                "{taken:?}, where {fastest} is the fastest"
            );
        }
    }

    #[test]
    fn a_change_of_the_machine_changes_the_choice() {
        let mut choice = Choice::new();
        run(&mut choice, 500, true, [100_000, 40_000, 60_000]);
        let taken = run(&mut choice, 1000, true, [150_000, 150_000, 50_000]);
        assert!(taken[2] > 600, "{taken:?}");
    }

    #[test]
    fn single_copy_is_never_taken_where_it_is_not_permitted() {
        let taken = run(&mut Choice::new(), 500, false, [1, 40_000, 60_000]);
        assert_eq!(taken[0], 0);
        assert!(taken[1] > 480);
    }

    #[test]
    fn a_mapped_heap_is_one_way_among_the_others() {
        for (may_single_copy, mapped_ns) in [(true, 20_000), (false, 20_000), (true, 90_000)] {
            let mut choice = Choice::new();
            let elapsed_ns = [50_000, 40_000, 60_000, mapped_ns, 80_000];
            let mut taken = [0; 5];
            for _ in 0..1000 {
                let method = choice.next(1 << 20, may_single_copy, true);
                taken[method as usize] += 1;
                choice.learn(method, 1 << 20, elapsed_ns[method as usize]);
            }
            assert_eq!(taken[3] > 940, mapped_ns == 20_000, "{taken:?}");
            assert_eq!(taken[0] == 0, !may_single_copy, "{taken:?}");
        }
    }

    #[test]
    fn size_classes_do_not_disturb_each_other() {
        let mut choice = Choice::new();
        run(&mut choice, 500, true, [100_000, 40_000, 60_000]);
        for _ in 0..10 {
            choice.learn(Method::SingleCopy, 1 << 26, 1_000_000);
            choice.learn(Method::Pipelined, 1 << 26, 9_000_000);
            choice.learn(Method::PastCache, 1 << 26, 9_000_000);
        }
        assert_eq!(choice.next(1 << 26, true, false), Method::SingleCopy);
    }

    #[test]
    fn ranks_that_share_processors_take_single_copy_unless_told_otherwise() {
        assert!(prefers_single_copy(SingleCopy::Auto, true));
        assert!(!prefers_single_copy(SingleCopy::Auto, false));
        assert!(!prefers_single_copy(SingleCopy::Never, true));
        assert!(prefers_single_copy(SingleCopy::Always, false));
    }
}
