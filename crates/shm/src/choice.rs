// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a large message is fetched: a choice by what this machine did lately, for each size class.
//!
//! On bare metal single copy wins for large messages (Vienne 2014); on virtual machines it can be
//! three times slower. A pipelined copy is best stored through the cache where both processors
//! share it and past it where they do not, and a virtual processor that moves can change the answer
//! within one run. So all ways are timed as they used, and the slower ones are tried again now and
//! then, the more seldom the slower they are. What a way costs shows in the time from one message's
//! end to the next one's, not in its own time alone: where it leaves lines of both buffers, whoever
//! works on them next has to fetch. So each way is tried in several transfers in a row, the first
//! of which tell of the way before it. Messages that go both ways at once are another case than
//! those that only come, and have knowledge of their own. Asked by ways for every matched offer.

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

impl Method {
    /// The way that is published by this number, from 1 on.
    pub(crate) fn numbered(number: u64) -> Option<Self> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        ALL.get(index).copied()
    }
}

impl Open {
    pub(crate) fn holds(self, way: Method) -> bool {
        match way {
            // One copy in user space is the least there is, and trials cost
            // (docs/lab/2026-11-22-mapped-copy.md).
            _ if self.mapped => matches!(way, Method::Mapped | Method::MappedPastCache),
            Method::Pipelined | Method::PastCache => true,
            Method::SingleCopy => self.single_copy,
            Method::Shared => self.shared,
            Method::Mapped | Method::MappedPastCache => self.mapped,
        }
    }
}

/// Size classes: one for each power of two. Specified: message lengths have 64 bits.
const CLASSES: usize = 64;

/// Transfers of a class that tell of each way before the first choice. Chosen: enough to see past
/// one interruption.
const FIRST_TRIALS: u32 = 2;

/// Transfers after a change of the way that tell nothing of it. Chosen: what the way before it has
/// left in the caches.
const SETTLING: u32 = 1;

/// The same where several are under way, so that the other process follows some transfers later.
/// Chosen: a pipe is lent for so many ahead.
const SETTLING_DEEP: u32 = 5;

/// Transfers for which that holds after the last time that several were. Chosen: windows run empty
/// at their ends.
const DEEP_FOR: u32 = 64;

/// A way that costs so many halves of the best one's time in the next size class is not tried
/// before the first choice. Chosen.
const HOPELESS_HALVES: u64 = 3;

/// Transfers of a class after which a way that costs up to twice as much as the best is tried
/// again. One that costs n times as much is tried after n - 1 times as many, so that trials of each
/// way cost one or two percent of the time. Chosen.
const TRIAL_PERIOD: u64 = 256;

/// Transfers of a trial that comes so often.
const TRIAL_TRANSFERS: u64 = RECENT as u64 + SETTLING as u64;

/// Most of that. Chosen: ways that were once interrupted come back.
const TRIAL_PERIOD_LIMIT: u64 = 4096;

/// The first transfers of a class, which teach nothing: so many bytes of them, and one at least.
/// Chosen: they find buffers that nobody has touched and processors that just woke up.
const WARM_UP_BYTES: u64 = 1 << 20;

/// Most of them.
const WARM_UP_LIMIT: u64 = 4;

/// A way that is tried again gets [`RECENT`] transfers in a row that tell; but only while it costs
/// at most so many times as much as the best. Chosen.
const PROMISING: u64 = 2;

/// Transfers of a way that say what it costs: the one in the middle. Chosen: one that was
/// interrupted, or that was helped by what came before it, says nothing, and a processor that moves
/// is noticed after two.
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
        let middle = known.len().saturating_sub(1) / 2;
        known.get(middle).copied().unwrap_or(0)
    }

    /// Whether it is time to try it again, where the best way costs so much.
    fn is_due(&self, best: u64, settling: u32) -> bool {
        let (cost, best) = (self.cost(), best.max(1));
        let tell = if cost > best.saturating_mul(PROMISING) {
            1
        } else {
            RECENT as u64
        };
        let transfers = u64::from(settling) + tell;
        let excess = cost.saturating_sub(best);
        // Where several are under way a change of the way disturbs those besides.
        let weight = transfers * transfers.max(TRIAL_TRANSFERS) / TRIAL_TRANSFERS;
        let shortest = TRIAL_PERIOD * weight / TRIAL_TRANSFERS;
        let period = shortest.saturating_mul(excess) / best;
        self.idle_transfers >= period.clamp(shortest, TRIAL_PERIOD_LIMIT)
    }
}

#[derive(Clone, Copy, Default, Debug)]
struct Class {
    ways: [Known; WAYS],
    /// The way that is being tried, and how many more transfers it gets.
    trial: Option<(Method, u32)>,
    /// The way of the last transfers that ended, and how many in a row.
    row: Option<(Method, u32)>,
    /// Transfers after a change that tell nothing.
    settling: u32,
    /// For how many transfers several count as under way.
    deep_left: u32,
    /// Whether it was asked for a way, and how many transfers then are still to teach nothing.
    is_asked: bool,
    warm_up: u32,
}

impl Class {
    /// Whether enough is known of all ways that are open.
    fn is_known(&self, open: Open) -> bool {
        let mut ways = ALL.into_iter().filter(|&way| open.holds(way));
        ways.all(|way| self.ways[way as usize].samples >= FIRST_TRIALS)
    }

    /// Takes over which ways are hopeless in the next class.
    fn learn_from(&mut self, next: &Self) {
        let tried = next.ways.iter().filter(|known| known.samples > 0);
        let best = tried.map(Known::cost).min().unwrap_or(0);
        for (known, theirs) in self.ways.iter_mut().zip(&next.ways) {
            if theirs.samples > 0
                && theirs.cost().saturating_mul(2) > best.saturating_mul(HOPELESS_HALVES)
            {
                *known = Known {
                    idle_transfers: 0,
                    samples: RECENT as u32,
                    recent: [theirs.cost(); RECENT],
                };
            }
        }
    }
}

/// What goes on around a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Traffic {
    /// Messages of this size only come.
    OneWay,
    /// They go, too, one at a time.
    BothWays,
    /// They go, too, and several are under way.
    BothWaysDeep,
}

/// What the time of a transfer teaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lesson {
    /// What the way costs where messages only come.
    OneWay,
    /// What it costs where they go both ways.
    BothWays,
    /// Nothing: it was not our choice.
    Nothing,
}

/// What was learned so far.
#[derive(Debug)]
pub(crate) struct Choice {
    one_way: Box<[Class; CLASSES]>,
    both_ways: Box<[Class; CLASSES]>,
    /// What the other process chose for both, lately.
    followed: [Option<Method>; CLASSES],
}

impl Choice {
    pub(crate) fn new() -> Self {
        Self {
            one_way: Box::new([Class::default(); CLASSES]),
            both_ways: Box::new([Class::default(); CLASSES]),
            followed: [None; CLASSES],
        }
    }

    /// The classes of some traffic, that of `bytes` prepared by what is known of its neighbours.
    fn class(&mut self, bytes: u64, open: Open, traffic: Traffic) -> &mut Class {
        let classes = match traffic {
            Traffic::OneWay => &mut self.one_way,
            Traffic::BothWays | Traffic::BothWaysDeep => &mut self.both_ways,
        };
        let index = class_of(bytes);
        if classes[index].ways.iter().all(|known| known.samples == 0) {
            let neighbours = [index.wrapping_sub(1), index + 1];
            let mut neighbours = neighbours.iter().filter_map(|&next| classes.get(next));
            if let Some(&known) = neighbours.find(|next| next.is_known(open)) {
                classes[index].learn_from(&known);
            }
        }
        let class = &mut classes[index];
        class.deep_left = match traffic {
            Traffic::BothWaysDeep => DEEP_FOR,
            _ => class.deep_left.saturating_sub(1),
        };
        class.settling = if class.deep_left > 0 {
            SETTLING_DEEP
        } else {
            SETTLING
        };
        if !std::mem::replace(&mut class.is_asked, true) {
            class.warm_up = (WARM_UP_BYTES / bytes.max(1)).clamp(1, WARM_UP_LIMIT) as u32;
        }
        class
    }

    /// The way for the next transfer of `bytes`.
    pub(crate) fn next(&mut self, bytes: u64, open: Open, traffic: Traffic) -> Method {
        let class = self.class(bytes, open, traffic);
        let first = if open.mapped {
            Method::Mapped
        } else {
            Method::Pipelined
        };
        let (mut rarest, mut best) = (first, first);
        let known = |way: Method| &class.ways[way as usize];
        for way in ALL.into_iter().filter(|&way| open.holds(way)) {
            if known(way).samples < known(rarest).samples {
                rarest = way;
            }
            if known(way).cost() < known(best).cost() {
                best = way;
            }
        }
        let chosen = if let Some((way, left)) = class.trial.filter(|&(way, _)| open.holds(way)) {
            class.trial = (left > 1).then_some((way, left - 1));
            way
        } else if known(rarest).samples < FIRST_TRIALS {
            class.trial = Some((rarest, class.settling + FIRST_TRIALS - 1));
            rarest
        } else {
            let cost = known(best).cost();
            let due = |way: &Method| {
                *way != best && open.holds(*way) && known(*way).is_due(cost, class.settling)
            };
            let tried = ALL.into_iter().find(due);
            class.trial = tried.map(|way| (way, class.settling + RECENT as u32 - 1));
            tried.unwrap_or(best)
        };
        for known in &mut class.ways {
            known.idle_transfers += 1;
        }
        class.ways[chosen as usize].idle_transfers = 0;
        chosen
    }

    /// The other process chose for both.
    pub(crate) fn follow(&mut self, bytes: u64, way: Method) {
        self.followed[class_of(bytes)] = Some(way);
    }

    /// How a size class is fetched now where messages only come, and where they go both ways, by
    /// numbers from 1 on; 0 is not known.
    pub(crate) fn published(&self, class: usize) -> u8 {
        let number = |way: Option<Method>| way.map_or(0, |way| way as u8 + 1);
        let both = Self::settled(&self.both_ways[class]).or(self.followed[class]);
        number(Self::settled(&self.one_way[class])) | number(both) << 4
    }

    /// The way that is now the fastest for a size class; None before all that are permitted were
    /// tried.
    fn settled(class: &Class) -> Option<Method> {
        let tried = |way: &Method| class.ways[*way as usize].samples >= FIRST_TRIALS;
        let pipes = [Method::Pipelined, Method::PastCache];
        let known = pipes.iter().all(tried) || tried(&Method::SingleCopy) || tried(&Method::Mapped);
        let ways = ALL.into_iter().filter(tried);
        ways.min_by_key(|&way| class.ways[way as usize].cost())
            .filter(|_| known)
    }

    /// Learns that a transfer of `bytes` took `elapsed_ns`.
    pub(crate) fn learn(&mut self, method: Method, bytes: u64, elapsed_ns: u64, lesson: Lesson) {
        let classes = match lesson {
            Lesson::OneWay => &mut self.one_way,
            Lesson::BothWays => &mut self.both_ways,
            Lesson::Nothing => return,
        };
        let class = &mut classes[class_of(bytes)];
        if class.warm_up > 0 {
            class.warm_up -= 1;
            return;
        }
        let before = class.row.filter(|&(way, _)| way == method);
        let in_a_row = before.map_or(0, |(_, count)| count.saturating_add(1));
        class.row = Some((method, in_a_row));
        if in_a_row < class.settling {
            return;
        }
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

/// The size class of a message.
pub(crate) fn class_of(bytes: u64) -> usize {
    bytes.max(1).ilog2() as usize
}

/// Whether single copy is taken wherever the kernel permits it, without measuring. Ranks that share
/// processors do so unless told otherwise: a pipe needs both of its ends to run in turns, and every
/// turn is a switch between processes, which no time of a single transfer shows
/// (docs/lab/2026-11-21-long-messages-on-shared-cores.md).
pub(crate) fn prefers_single_copy(asked: SingleCopy, shares_cores: bool) -> bool {
    match asked {
        SingleCopy::Always => true,
        SingleCopy::Auto => shares_cores,
        SingleCopy::Never => false,
    }
}

#[cfg(test)]
mod tests;
