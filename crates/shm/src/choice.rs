// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a large message is fetched: a choice by what this machine did lately, for each size class.
//!
//! On bare metal single copy wins for large messages (Vienne 2014); on virtual machines it can be three times
//! slower. A pipelined copy is best stored through the cache where both processors share it and past it where they
//! do not, and a virtual processor that moves can change the answer within one run. So all ways are timed as they
//! are used, and the slower ones are tried again now and then, the more seldom the slower they are. Asked by fetch and parted for every
//! matched offer.

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
    /// The receiver reads the sender's memory, and the sender writes the receiver's.
    Shared = 5,
}

/// All ways, as they are numbered.
const ALL: [Method; WAYS] = [
    Method::SingleCopy,
    Method::Pipelined,
    Method::PastCache,
    Method::Mapped,
    Method::MappedPastCache,
    Method::Shared,
];

/// How many there are.
const WAYS: usize = 6;

/// Which ways are open to a message, beside pipes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Open {
    /// We may read its sender's memory.
    pub(crate) single_copy: bool,
    /// And its sender may write where it goes.
    pub(crate) shared: bool,
    /// It lies where we have mapped it.
    pub(crate) mapped: bool,
}

impl Open {
    fn holds(self, way: Method) -> bool {
        match way {
            Method::Pipelined | Method::PastCache => true,
            Method::SingleCopy => self.single_copy,
            Method::Shared => self.shared,
            Method::Mapped | Method::MappedPastCache => self.mapped,
        }
    }
}

/// Size classes: one for each power of two. Specified: message lengths have 64 bits.
const CLASSES: usize = 64;

/// Transfers of a class in which each way is tried before the first choice. Chosen: enough to see past one
/// interruption.
const FIRST_TRIALS: u32 = 3;

/// Transfers of a class after which a way that costs up to twice as much as the best is tried again. One that costs n times as much is
/// tried after n - 1 times as many, so that trials of each way cost one or two percent of the time. Chosen.
const TRIAL_PERIOD: u64 = 192;

/// Most of that. Chosen: ways that were once interrupted come back.
const TRIAL_PERIOD_LIMIT: u64 = 4096;

/// A way that is tried again gets [`RECENT`] transfers in a row, since the first one finds other memory in the caches; but only while it costs
/// at most so many times as much as the best. Chosen.
const PROMISING: u64 = 3;

/// Transfers of a way that say what it costs: the one in the middle. Chosen: one that was interrupted, or that was helped by what came before
/// it, says nothing, and a processor that moves is noticed after two.
const RECENT: usize = 3;

/// What is known of a way in a class.
#[derive(Clone, Copy, Default, Debug)]
struct Known {
    /// Times lately in ns for each KiB, times 1024.
    recent: [u64; RECENT],
    samples: u32,
    /// Transfers of the class since its last one.
    idle_transfers: u64,
}

impl Known {
    fn cost(&self) -> u64 {
        let mut recent = self.recent;
        let known = &mut recent[..RECENT.min(self.samples as usize)];
        known.sort_unstable();
        known.get(known.len() / 2).copied().unwrap_or(0)
    }

    /// Whether it is time to try it again, where the best way costs so much.
    fn is_due(&self, best: u64) -> bool {
        let (cost, best) = (self.cost(), best.max(1));
        let transfers = if cost > best.saturating_mul(PROMISING) {
            1
        } else {
            RECENT as u64
        };
        let excess = cost.saturating_sub(best);
        let period = (TRIAL_PERIOD / RECENT as u64 * transfers).saturating_mul(excess) / best;
        self.idle_transfers >= period.clamp(TRIAL_PERIOD, TRIAL_PERIOD_LIMIT)
    }
}

#[derive(Clone, Copy, Default, Debug)]
struct Class {
    ways: [Known; WAYS],
    /// The way that is being tried again, and how many more transfers it gets.
    trial: Option<(Method, u32)>,
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
    pub(crate) fn next(&mut self, bytes: u64, open: Open) -> Method {
        let class = &mut self.classes[class_of(bytes)];
        let mut rarest = Method::Pipelined;
        let mut best = Method::Pipelined;
        let known = |way: Method| &class.ways[way as usize];
        for way in ALL.into_iter().filter(|&way| open.holds(way)) {
            if known(way).samples < known(rarest).samples {
                rarest = way;
            }
            if known(way).cost() < known(best).cost() {
                best = way;
            }
        }
        let chosen = if known(rarest).samples < FIRST_TRIALS {
            rarest
        } else if let Some((way, left)) = class.trial.filter(|&(way, _)| open.holds(way)) {
            class.trial = (left > 1).then_some((way, left - 1));
            way
        } else {
            let cost = known(best).cost();
            let due = |way: &Method| *way != best && open.holds(*way) && known(*way).is_due(cost);
            let tried = ALL.into_iter().find(due);
            class.trial = tried.map(|way| (way, RECENT as u32 - 1));
            tried.unwrap_or(best)
        };
        for known in &mut class.ways {
            known.idle_transfers += 1;
        }
        class.ways[chosen as usize].idle_transfers = 0;
        chosen
    }

    /// The way that is now the fastest for a size class; None before all that are permitted were tried.
    pub(crate) fn settled(&self, class: usize) -> Option<Method> {
        let class = self.classes.get(class)?;
        let tried = |way: &Method| class.ways[*way as usize].samples >= FIRST_TRIALS;
        let pipes = [Method::Pipelined, Method::PastCache];
        let known = pipes.iter().all(tried) || tried(&Method::SingleCopy) || tried(&Method::Mapped);
        let ways = ALL.into_iter().filter(tried);
        ways.min_by_key(|&way| class.ways[way as usize].cost())
            .filter(|_| known)
    }

    /// Learns that a transfer of `bytes` took `elapsed_ns`.
    pub(crate) fn learn(&mut self, method: Method, bytes: u64, elapsed_ns: u64) {
        let class = &mut self.classes[class_of(bytes)];
        let best = class.ways.iter().filter(|known| known.samples > 0);
        let best = best.map(Known::cost).min().unwrap_or(0);
        let known = &mut class.ways[method as usize];
        let cost = elapsed_ns.saturating_mul(1024) / (bytes / 1024).max(1);
        known.recent[known.samples as usize % RECENT] = cost;
        known.samples = known.samples.saturating_add(1);
        if cost > best.saturating_mul(PROMISING) {
            class.trial = class.trial.filter(|&(way, _)| way != method);
        }
    }
}

fn class_of(bytes: u64) -> usize {
    bytes.max(1).ilog2() as usize
}

/// Whether single copy is taken wherever the kernel permits it, without measuring. Ranks that share processors do so
/// unless told otherwise: a pipe needs both of its ends to run in turns, and every turn is a switch between processes,
/// which no time of a single transfer shows (docs/long-messages.md has what it is worth).
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

    fn open(single_copy: bool, mapped: bool) -> Open {
        Open {
            single_copy,
            shared: false,
            mapped,
        }
    }

    /// Runs transfers of a MiB that take the given times; answers how often each way was taken.
    fn run(
        choice: &mut Choice,
        transfers: u32,
        may_single_copy: bool,
        elapsed_ns: [u64; 3],
    ) -> [u32; 3] {
        let mut taken = [0; 3];
        for _ in 0..transfers {
            let method = choice.next(1 << 20, open(may_single_copy, false));
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
                let method = choice.next(1 << 20, open(may_single_copy, true));
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
        assert_eq!(choice.next(1 << 26, open(true, false)), Method::SingleCopy);
    }

    #[test]
    fn ranks_that_share_processors_take_single_copy_unless_told_otherwise() {
        assert!(prefers_single_copy(SingleCopy::Auto, true));
        assert!(!prefers_single_copy(SingleCopy::Auto, false));
        assert!(!prefers_single_copy(SingleCopy::Never, true));
        assert!(prefers_single_copy(SingleCopy::Always, false));
    }
}
