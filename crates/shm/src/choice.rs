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
use crate::tuner::{self, Costs, Estimate, Rules, Tuner};

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

/// The first transfers of a class, which teach nothing: so many bytes of them, and one at least.
/// Chosen: they find buffers that nobody has touched and processors that just woke up.
const WARM_UP_BYTES: u64 = 1 << 20;

/// Most of them.
const WARM_UP_LIMIT: u64 = 4;

/// What the choice goes by; a sample is one transfer's time for each KiB. All of it is chosen: two
/// transfers of each way before the first choice see past one interruption; of three that tell, one
/// that was interrupted, or helped by what came before it, says nothing, and a processor that moves
/// is noticed after two; with these periods trials of each way cost one or two percent of the time;
/// and ways that were once interrupted come back.
const RULES: Rules = Rules {
    recent: 3,
    estimate: Estimate::Median,
    settling: SETTLING,
    first: 2,
    trial: 3,
    alternates: false,
    hopeless: 2,
    costs: Costs::Kept,
    shortest_period: 256,
    longest_period: 4096,
};

/// What is known of the messages of a size class.
#[derive(Clone, Copy, Debug)]
struct Class {
    ways: Tuner<WAYS>,
    /// For how many transfers several count as under way.
    deep_left: u32,
    /// Whether it was asked for a way, and how many transfers then are still to teach nothing.
    is_asked: bool,
    warm_up: u32,
}

impl Class {
    fn new() -> Self {
        Self {
            ways: Tuner::new(&RULES),
            deep_left: 0,
            is_asked: false,
            warm_up: 0,
        }
    }

    /// Whether enough is known of all ways that are open.
    fn is_known(&self, open: Open) -> bool {
        let mut ways = ALL.into_iter().filter(|&way| open.holds(way));
        ways.all(|way| self.knows(way))
    }

    fn knows(&self, way: Method) -> bool {
        self.ways.knows(&RULES, way as usize)
    }

    /// The way that is now the fastest; None before all that are permitted were tried.
    fn settled(&self) -> Option<Method> {
        let pipes = [Method::Pipelined, Method::PastCache];
        let is_known = pipes.into_iter().all(|way| self.knows(way))
            || self.knows(Method::SingleCopy)
            || self.knows(Method::Mapped);
        let cheapest = self.ways.cheapest(&RULES).filter(|_| is_known);
        cheapest.map(|index| ALL[index])
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
            one_way: Box::new([Class::new(); CLASSES]),
            both_ways: Box::new([Class::new(); CLASSES]),
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
        if classes[index].ways.is_new() {
            let neighbours = [index.wrapping_sub(1), index + 1];
            let mut neighbours = neighbours.iter().filter_map(|&next| classes.get(next));
            if let Some(&known) = neighbours.find(|next| next.is_known(open)) {
                let ways = &mut classes[index].ways;
                ways.learn_from(&RULES, &known.ways, HOPELESS_HALVES);
            }
        }
        let class = &mut classes[index];
        class.deep_left = match traffic {
            Traffic::BothWaysDeep => DEEP_FOR,
            _ => class.deep_left.saturating_sub(1),
        };
        class.ways.settle_for(if class.deep_left > 0 {
            SETTLING_DEEP
        } else {
            SETTLING
        });
        if !std::mem::replace(&mut class.is_asked, true) {
            class.warm_up = (WARM_UP_BYTES / bytes.max(1)).clamp(1, WARM_UP_LIMIT) as u32;
        }
        class
    }

    /// The way for the next transfer of `bytes`.
    pub(crate) fn next(&mut self, bytes: u64, open: Open, traffic: Traffic) -> Method {
        let class = self.class(bytes, open, traffic);
        let default = if open.mapped {
            Method::Mapped
        } else {
            Method::Pipelined
        };
        let open = tuner::Open {
            alternatives: ALL.map(|way| open.holds(way)),
            default: default as usize,
            may_try: true,
        };
        ALL[class.ways.next(&RULES, &open)]
    }

    /// The other process chose for both.
    pub(crate) fn follow(&mut self, bytes: u64, way: Method) {
        self.followed[class_of(bytes)] = Some(way);
    }

    /// How a size class is fetched now where messages only come, and where they go both ways, by
    /// numbers from 1 on; 0 is not known.
    pub(crate) fn published(&self, class: usize) -> u8 {
        let number = |way: Option<Method>| way.map_or(0, |way| way as u8 + 1);
        let both = self.both_ways[class].settled().or(self.followed[class]);
        number(self.one_way[class].settled()) | number(both) << 4
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
        let cost = elapsed_ns.saturating_mul(1024) / (bytes / 1024).max(1);
        class.ways.learn(&RULES, method as usize, cost);
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
