// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which of two send protocols is faster for a message of middle length that its receiver can copy
//! out of memory that we share: to send it through the lane, or to describe it. Learned for each
//! size class from the time between one send and the next. Called by send; knows nothing of memory
//! or of lanes.
//!
//! Neither is right everywhere, and no time of a single transfer tells. A rendezvous costs one copy
//! instead of two; but its receiver's copy leaves the lines of our buffer in the receiver's cache,
//! and who writes there next, the application, takes them back one by one, at several times what
//! the second copy costs (docs/lab/2026-11-22-what-a-copy-leaves-behind.md). From send to send all
//! of that is counted, whatever the application does in between.
//!
//! So runs of messages, *windows*, are timed whole. Now and then the other protocol has two of
//! them, with one of the usual in between, and becomes the usual one if the faster of its two beats
//! the faster of theirs. One class at a time does so: messages of several classes take turns in
//! most collectives.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::protocol::send_protocol::SendProtocol;
use crate::tuner::{Costs, Estimate, Open, Rules, Tuner};

/// The classes that are learned: a message of class n has more than 2^n bytes and at most twice
/// that. From 16 KiB to 1 MiB.
const CLASSES: Range<usize> = 13..20;

/// Messages of a window. Chosen: a few round trips; interruptions, of which there is one in some
/// hundreds of messages, hit few of them.
const WINDOW: u32 = 8;

/// The same where ranks share processors. Chosen: who runs next counts more there than who copies.
const WINDOW_SHARED: u32 = 16;

/// Messages after a change of protocol that are not timed. Chosen: what the protocol before it has
/// left in the caches.
const SETTLING: u32 = 2;

/// The first messages of a class, likewise. Chosen: they find cold pages.
const WARM_UP: u32 = 4;

/// What is gone by; a sample is the time of a window. All of it is chosen: the faster of two
/// windows was not interrupted; a sixteenth is more than windows differ by themselves; a trial
/// costs two windows, and those that fail become rare, the first of them after some more; windows
/// that took half as long again, in a row, say that the application does something else, or that a
/// processor has moved.
const RULES: Rules = Rules {
    recent: 2,
    estimate: Estimate::Least,
    settling: 0,
    first: 2,
    trial: 2,
    alternates: true,
    hopeless: 2,
    costs: Costs::Fresh {
        margin: Some(16),
        slower: Some((4, 16)),
    },
    shortest_period: 64,
    first_period: 8,
    longest_period: 1024,
};

/// The same where ranks share processors: windows differ more there.
const RULES_SHARED: Rules = Rules {
    costs: Costs::Fresh {
        margin: Some(8),
        slower: Some((4, 16)),
    },
    ..RULES
};

/// Messages of other classes after which a class no longer keeps them from trials of theirs.
/// Chosen.
const SILENT: u32 = 256;

/// What is known of a size class. The first alternative is the default protocol, whichever that is.
#[derive(Clone, Copy, Debug)]
struct Class {
    tuner: Tuner<2>,
    /// Whether the protocol that is taken now is not the default.
    takes_other: bool,
    /// Messages to go before the window begins, and messages of it so far.
    settling: u32,
    counted: u32,
    began: Option<Instant>,
}

impl Class {
    fn new() -> Self {
        Self {
            tuner: Tuner::new(&RULES),
            takes_other: false,
            settling: WARM_UP,
            counted: 0,
            began: None,
        }
    }

    /// A window is over; `may_try` if no other class has a trial.
    fn end_window(&mut self, rules: &Rules, took: Duration, may_try: bool) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.tuner.learn(rules, self.takes_other.into(), took_ns);
        let before = self.takes_other;
        self.take_next(rules, may_try);
        if self.takes_other != before {
            self.settling = SETTLING;
        }
    }

    fn take_next(&mut self, rules: &Rules, may_try: bool) {
        let open = Open {
            alternatives: [true; 2],
            default: 0,
            may_try,
        };
        self.takes_other = self.tuner.next(rules, &open) == 1;
    }

    /// A trial that is under way is not to go on.
    fn give_up(&mut self) {
        self.tuner.give_up(&RULES);
        self.take_next(&RULES, false);
        self.counted = 0;
    }
}

/// What is known of all classes.
#[derive(Debug)]
pub(crate) struct SendTuner {
    classes: [Class; CLASSES.end - CLASSES.start],
    /// The class that has a trial, and messages of others since its last one.
    trying: Option<usize>,
    others: u32,
}

impl SendTuner {
    pub(crate) fn new() -> Self {
        Self {
            classes: [Class::new(); CLASSES.end - CLASSES.start],
            trying: None,
            others: 0,
        }
    }

    /// As if the default, or the `other` protocol, had been found to be the faster one long ago,
    /// and the one that was not were not to be tried soon.
    #[cfg(test)]
    pub(crate) fn found(other: bool) -> Self {
        let mut found = Self::new();
        for known in &mut found.classes {
            known.tuner = Tuner::found(&RULES, other.into());
            known.takes_other = other;
        }
        found
    }

    /// By which of two protocols the next message of `bytes` leaves, of which the first one is the
    /// default. To be asked once for each, as it is sent. The clock is asked at the ends of
    /// windows only.
    pub(crate) fn next(
        &mut self,
        bytes: usize,
        protocols: [SendProtocol; 2],
        shares_cores: bool,
        clock: impl FnOnce() -> Instant,
    ) -> SendProtocol {
        let class = (bytes.max(2) - 1).ilog2() as usize;
        if !CLASSES.contains(&class) {
            return protocols[0];
        }
        let index = class - CLASSES.start;
        self.yield_to(index);
        let (window, rules) = if shares_cores {
            (WINDOW_SHARED, &RULES_SHARED)
        } else {
            (WINDOW, &RULES)
        };
        let may_try = self.trying.is_none();
        let known = &mut self.classes[index];
        if known.settling > 0 {
            known.settling -= 1;
        } else {
            if known.counted == 0 {
                known.began = Some(clock());
            } else if known.counted == window {
                let now = clock();
                if let Some(began) = known.began.replace(now) {
                    known.end_window(rules, now.saturating_duration_since(began), may_try);
                }
                known.counted = 0;
                if known.tuner.is_trying() {
                    self.trying = Some(index);
                } else if self.trying == Some(index) {
                    self.trying = None;
                }
            }
            if known.settling > 0 {
                known.settling -= 1;
            } else {
                known.counted += 1;
            }
        }
        protocols[usize::from(known.takes_other)]
    }

    /// A message of this class left by a protocol that was not chosen here: the window that it
    /// falls into says nothing.
    pub(crate) fn disturb(&mut self, bytes: usize) {
        let class = (bytes.max(2) - 1).ilog2() as usize;
        if CLASSES.contains(&class) {
            self.classes[class - CLASSES.start].counted = 0;
        }
    }

    /// A class that has a trial and no messages any more gives it up.
    fn yield_to(&mut self, index: usize) {
        match self.trying {
            Some(trying) if trying != index => {
                self.others += 1;
                if self.others >= SILENT {
                    self.classes[trying].give_up();
                    self.trying = None;
                }
            }
            _ => self.others = 0,
        }
    }
}

#[cfg(test)]
mod tests;
