// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a message of middle length leaves that lies in our heap: streamed through the lane, or
//! offered for its receiver to copy. The sender learns it, for each size class, from the time
//! between one send and the next. Called by send; knows nothing of memory or of lanes.
//!
//! Neither is right everywhere, and no time of a single transfer tells. An offer costs one copy
//! instead of two; but its receiver's copy leaves the lines of our buffer in the receiver's cache,
//! and who writes there next, the application, takes them back one by one, at several times what
//! the second copy costs (docs/lab/2026-11-22-what-a-copy-leaves-behind.md). From send to send all
//! of that is counted, whatever the application does in between.
//!
//! So runs of messages, *windows*, are timed whole. Now and then the other manner has two of them,
//! with one of the usual in between, and becomes the usual one if the faster of its two beats the
//! faster of theirs. One class at a time does so: messages of several classes take turns in most
//! collectives.

use std::ops::Range;

/// How a message leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Manner {
    /// In pieces, through the lane; or it begins so.
    #[default]
    Streamed,
    /// Described, for its receiver to copy out of our heap.
    Offered,
}

/// The classes that are learned: a message of class n has more than 2^n bytes and at most twice
/// that. From 16 KiB to 1 MiB.
const CLASSES: Range<usize> = 13..20;

/// Messages of a window. Chosen: a few round trips; interruptions, of which there is one in some
/// hundreds of messages, hit few of them.
const WINDOW: u32 = 8;

/// The same where ranks share processors. Chosen: who runs next counts more there than who copies.
const WINDOW_SHARED: u32 = 16;

/// Messages after a change of manner that are not timed. Chosen: what the manner before it has left
/// in the caches.
const SETTLING: u32 = 2;

/// The first messages of a class, likewise. Chosen: they find cold pages.
const WARM_UP: u32 = 4;

/// Windows between trials: at first, and at most. Each trial that fails doubles them. Chosen: a
/// trial costs two windows.
const PERIOD: u32 = 64;
const PERIOD_LIMIT: u32 = 1024;

/// A trial ends after its first window if that took so many times the usual. Chosen.
const HOPELESS: u64 = 2;

/// By which part of the usual time the other manner must be faster. Chosen: more than windows
/// differ by themselves.
const MARGIN: u64 = 16;

/// The same where ranks share processors. Chosen: windows differ more there.
const MARGIN_SHARED: u64 = 8;

/// Windows that took half as long again as when the usual manner was settled, in a row, after which
/// it is tried again. Chosen: the application does something else, or a processor has moved.
const SLOWER: u32 = 4;

/// Windows after a trial in which there is none for that reason. Chosen.
const REST: u32 = 16;

/// Messages of other classes after which a class no longer keeps them from trials of theirs.
/// Chosen.
const SILENT: u32 = 256;

/// How far a trial has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Trial {
    /// There is none.
    #[default]
    None,
    /// The other manner's first window.
    First,
    /// The usual one again; what the first window took.
    Between(u64),
    /// The other manner's second window.
    Second(u64),
}

/// What is known of a class.
#[derive(Clone, Copy, Default, Debug)]
struct Known {
    /// Whether the usual manner is not the default.
    is_other: bool,
    trial: Trial,
    /// Messages to go before the window begins, and messages of it so far.
    settling: u32,
    counted: u32,
    began_ns: u64,
    /// What the last two windows of the usual manner took.
    usual_ns: [u64; 2],
    /// The same when it became or stayed the usual one, and windows in a row that were much slower.
    settled_ns: u64,
    slower: u32,
    /// Windows to go before a trial, and after how many the next one comes.
    left: u32,
    period: u32,
}

impl Known {
    fn new() -> Self {
        Self {
            settling: WARM_UP,
            left: 2,
            period: PERIOD,
            ..Self::default()
        }
    }

    /// Whether the manner that is taken now is not the default.
    fn takes_other(&self) -> bool {
        self.is_other != matches!(self.trial, Trial::First | Trial::Second(_))
    }

    fn usual(&self) -> u64 {
        self.usual_ns[0].min(self.usual_ns[1])
    }

    /// A window of the usual manner took so long.
    fn note(&mut self, took_ns: u64) {
        self.usual_ns = [self.usual_ns[1], took_ns];
        if self.usual_ns[0] == 0 {
            self.usual_ns[0] = took_ns;
        }
    }

    /// The trial is over, and the usual manner has changed if it `won`.
    fn settle(&mut self, won: bool) {
        self.is_other ^= won;
        self.period = if won {
            PERIOD
        } else {
            (self.period * 2).min(PERIOD_LIMIT)
        };
        (self.trial, self.left, self.slower) = (Trial::None, self.period, 0);
        self.settled_ns = self.usual();
    }

    /// A window is over; `may_try` if no other class has a trial.
    fn end_window(&mut self, took_ns: u64, margin: u64, may_try: bool) {
        let before = self.takes_other();
        match self.trial {
            Trial::None => {
                self.note(took_ns);
                self.watch(took_ns);
                self.left = self.left.saturating_sub(1);
                if self.left == 0 && may_try {
                    self.trial = Trial::First;
                }
            }
            Trial::First if took_ns > self.usual().saturating_mul(HOPELESS) => self.settle(false),
            Trial::First => self.trial = Trial::Between(took_ns),
            Trial::Between(first_ns) => {
                self.note(took_ns);
                self.trial = Trial::Second(first_ns);
            }
            Trial::Second(first_ns) => {
                let usual_ns = self.usual();
                let won = first_ns.min(took_ns) < usual_ns - usual_ns / margin;
                if won {
                    self.usual_ns = [first_ns, took_ns];
                }
                self.settle(won);
            }
        }
        if self.takes_other() != before {
            self.settling = SETTLING;
        }
    }

    /// Has the other manner tried soon if the usual one has become slower.
    fn watch(&mut self, took_ns: u64) {
        let is_slower = self.settled_ns != 0 && took_ns > self.settled_ns + self.settled_ns / 2;
        self.slower = if is_slower { self.slower + 1 } else { 0 };
        let since_trial = self.period.saturating_sub(self.left);
        if self.slower >= SLOWER && since_trial >= REST {
            (self.slower, self.settled_ns) = (0, self.usual());
            (self.left, self.period) = (1, PERIOD);
        }
    }
}

/// What is known of all classes.
#[derive(Debug)]
pub(crate) struct Manners {
    classes: [Known; CLASSES.end - CLASSES.start],
    /// The class that has a trial, and messages of others since its last one.
    trying: Option<usize>,
    others: u32,
}

impl Manners {
    pub(crate) fn new() -> Self {
        Self {
            classes: [Known::new(); CLASSES.end - CLASSES.start],
            trying: None,
            others: 0,
        }
    }

    /// As if the default, or the `other` manner, had been found to be the faster one long ago, and
    /// were not to be tried again soon.
    #[cfg(test)]
    pub(crate) fn found(other: bool) -> Self {
        let mut found = Self::new();
        for known in &mut found.classes {
            (known.is_other, known.left) = (other, u32::MAX);
        }
        found
    }

    /// How the next message of `bytes` leaves, where both manners are open to it. To be asked once
    /// for each, as it is sent. The clock, in ns, is asked at the ends of windows only.
    pub(crate) fn next(
        &mut self,
        bytes: usize,
        default: Manner,
        shares_cores: bool,
        clock: impl FnOnce() -> u64,
    ) -> Manner {
        let class = (bytes.max(2) - 1).ilog2() as usize;
        if !CLASSES.contains(&class) {
            return default;
        }
        let index = class - CLASSES.start;
        self.yield_to(index);
        let (window, margin) = if shares_cores {
            (WINDOW_SHARED, MARGIN_SHARED)
        } else {
            (WINDOW, MARGIN)
        };
        let may_try = self.trying.is_none();
        let known = &mut self.classes[index];
        if known.settling > 0 {
            known.settling -= 1;
        } else {
            if known.counted == 0 {
                known.began_ns = clock();
            } else if known.counted == window {
                let now_ns = clock();
                known.end_window(now_ns.saturating_sub(known.began_ns), margin, may_try);
                (known.counted, known.began_ns) = (0, now_ns);
                if known.trial != Trial::None {
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
        match (known.takes_other(), default) {
            (false, default) => default,
            (true, Manner::Streamed) => Manner::Offered,
            (true, Manner::Offered) => Manner::Streamed,
        }
    }

    /// A message of this class left in a manner that was not chosen here: the window that it falls
    /// into says nothing.
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
                    self.classes[trying].settle(false);
                    self.classes[trying].counted = 0;
                    self.trying = None;
                }
            }
            _ => self.others = 0,
        }
    }
}
