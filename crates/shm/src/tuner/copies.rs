// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which copy method is fastest: learned from what this machine did lately, for each size class.
//!
//! On bare metal single copy wins for large messages (Vienne 2014); on virtual machines it can be
//! three times slower. A pipelined copy is best made by ordinary stores where both processors share
//! a cache and by non-temporal ones where they do not, and a virtual processor that moves can
//! change the answer within one run. So all methods are timed as they are used, and the slower ones
//! are tried again now and then, the more seldom the slower they are. What a method costs shows in
//! the time from one message's end to the next one's, not in its own time alone: where it leaves
//! lines of both buffers, whoever works on them next has to fetch. So each method is tried in
//! several transfers in a row, the first of which tell of the method before it. Bidirectional
//! traffic is another case than messages that only come, and is learned by itself. Called by copy's
//! methods.

use std::time::Duration;

use crate::protocol::copy_method::{CopyMethod, Open};
use crate::tuner::{self, Costs, Estimate, Rules, Tuner};

/// Size classes: one for each power of two. Specified: message lengths have 64 bits.
const CLASSES: usize = 64;

/// Transfers after a change of the method that tell nothing. Chosen: what the method before it has
/// left in the caches.
const SETTLING: u32 = 1;

/// The same where several are under way, so that the other process follows some transfers later.
/// Chosen: a pipe is lent for so many ahead.
const SETTLING_DEEP: u32 = 5;

/// Transfers for which that holds after the last time that several were. Chosen: windows run empty
/// at their ends.
const DEEP_FOR: u32 = 64;

/// A method that costs so many halves of the best one's time in the next size class is not tried
/// before the first choice. Chosen.
const HOPELESS_HALVES: u64 = 3;

/// The first transfers of a class, which teach nothing: so many bytes of them, and one at least.
/// Chosen: they find buffers that nobody has touched and processors that just woke up.
const WARM_UP_BYTES: u64 = 1 << 20;

/// Most of them.
const WARM_UP_LIMIT: u64 = 4;

/// What is gone by; a sample is one transfer's time for each KiB. All of it is chosen: two
/// transfers of each method before the first choice see past one interruption; of three that tell,
/// one that was interrupted, or helped by what came before it, says nothing, and a processor that
/// moves is noticed after two; with these periods trials of each method cost one or two percent of
/// the time; and methods that were once interrupted come back.
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
    first_period: 256,
    longest_period: 4096,
};

/// What is known of the messages of a size class.
#[derive(Clone, Copy, Debug)]
struct Class {
    methods: Tuner<{ CopyMethod::ALL.len() }>,
    /// For how many transfers several count as under way.
    deep_left: u32,
    /// Whether it was asked for a method, and how many transfers then are still to teach nothing.
    is_asked: bool,
    warm_up: u32,
}

impl Class {
    fn new() -> Self {
        Self {
            methods: Tuner::new(&RULES),
            deep_left: 0,
            is_asked: false,
            warm_up: 0,
        }
    }

    /// Whether enough is known of all methods that are open.
    fn is_known(&self, open: Open) -> bool {
        let mut methods = CopyMethod::ALL.into_iter();
        methods.all(|method| !open.holds(method) || self.knows(method))
    }

    fn knows(&self, method: CopyMethod) -> bool {
        self.methods.knows(&RULES, method as usize)
    }

    /// The method that is now the fastest; None before all that are permitted were tried.
    fn settled(&self) -> Option<CopyMethod> {
        let pipes = [CopyMethod::Pipelined, CopyMethod::PipelinedNonTemporal];
        let is_known = pipes.into_iter().all(|method| self.knows(method))
            || self.knows(CopyMethod::SingleCopy)
            || self.knows(CopyMethod::Mapped);
        let cheapest = self.methods.cheapest(&RULES).filter(|_| is_known);
        cheapest.map(|index| CopyMethod::ALL[index])
    }
}

/// What goes on around a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// Messages of this size only come.
    Unidirectional,
    /// They go, too, one at a time.
    Bidirectional,
    /// They go, too, and several are under way.
    BidirectionalDeep,
}

/// What the time of a transfer teaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lesson {
    /// What the method costs where messages only come.
    Unidirectional,
    /// What it costs where they go, too.
    Bidirectional,
    /// Nothing: it was not our choice.
    Nothing,
}

/// What was learned so far.
#[derive(Debug)]
pub(crate) struct CopyTuner {
    unidirectional: Box<[Class; CLASSES]>,
    bidirectional: Box<[Class; CLASSES]>,
    /// What the other process chose for both, lately.
    followed: [Option<CopyMethod>; CLASSES],
}

impl CopyTuner {
    pub(crate) fn new() -> Self {
        Self {
            unidirectional: Box::new([Class::new(); CLASSES]),
            bidirectional: Box::new([Class::new(); CLASSES]),
            followed: [None; CLASSES],
        }
    }

    /// The classes of a direction, that of `bytes` prepared by what is known of its neighbours.
    fn class(&mut self, bytes: u64, open: Open, direction: Direction) -> &mut Class {
        let classes = match direction {
            Direction::Unidirectional => &mut self.unidirectional,
            Direction::Bidirectional | Direction::BidirectionalDeep => &mut self.bidirectional,
        };
        let index = class_of(bytes);
        if classes[index].methods.is_new() {
            let neighbours = [index.wrapping_sub(1), index + 1];
            let mut neighbours = neighbours.iter().filter_map(|&next| classes.get(next));
            if let Some(&known) = neighbours.find(|next| next.is_known(open)) {
                let methods = &mut classes[index].methods;
                methods.learn_from(&RULES, &known.methods, HOPELESS_HALVES);
            }
        }
        let class = &mut classes[index];
        class.deep_left = match direction {
            Direction::BidirectionalDeep => DEEP_FOR,
            _ => class.deep_left.saturating_sub(1),
        };
        class.methods.settle_for(if class.deep_left > 0 {
            SETTLING_DEEP
        } else {
            SETTLING
        });
        if !std::mem::replace(&mut class.is_asked, true) {
            class.warm_up = (WARM_UP_BYTES / bytes.max(1)).clamp(1, WARM_UP_LIMIT) as u32;
        }
        class
    }

    /// The method for the next transfer of `bytes`.
    pub(crate) fn next(&mut self, bytes: u64, open: Open, direction: Direction) -> CopyMethod {
        let class = self.class(bytes, open, direction);
        let open = tuner::Open {
            alternatives: CopyMethod::ALL.map(|method| open.holds(method)),
            default: open.default() as usize,
            may_try: true,
        };
        CopyMethod::ALL[class.methods.next(&RULES, &open)]
    }

    /// The other process chose for both.
    pub(crate) fn follow(&mut self, bytes: u64, method: CopyMethod) {
        self.followed[class_of(bytes)] = Some(method);
    }

    /// How a size class is copied now where messages only come, and where they go, too, by numbers
    /// from 1 on; 0 is not known.
    pub(crate) fn published(&self, class: usize) -> u8 {
        let number = |method: Option<CopyMethod>| method.map_or(0, CopyMethod::number);
        let both = self.bidirectional[class].settled().or(self.followed[class]);
        number(self.unidirectional[class].settled()) | number(both) << 4
    }

    /// Learns that a transfer of `bytes` took so long.
    pub(crate) fn learn(
        &mut self,
        method: CopyMethod,
        bytes: u64,
        elapsed: Duration,
        lesson: Lesson,
    ) {
        let classes = match lesson {
            Lesson::Unidirectional => &mut self.unidirectional,
            Lesson::Bidirectional => &mut self.bidirectional,
            Lesson::Nothing => return,
        };
        let class = &mut classes[class_of(bytes)];
        if class.warm_up > 0 {
            class.warm_up -= 1;
            return;
        }
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let cost = elapsed_ns.saturating_mul(1024) / (bytes / 1024).max(1);
        class.methods.learn(&RULES, method as usize, cost);
    }
}

/// The size class of a message.
pub(crate) fn class_of(bytes: u64) -> usize {
    bytes.max(1).ilog2() as usize
}

#[cfg(test)]
mod tests;
