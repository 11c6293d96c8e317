// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a rank that waits offers its processor to others: it yields, and where that takes long, it
//! naps. Used by waiting.
//!
//! A rank that yields among ranks that only wait, too, has its turn again within microseconds. If
//! somebody computes there, it comes back behind that one's whole share of milliseconds: Linux puts
//! who yields behind all others (sched_yield(2)). Who sleeps has no turn to wait for, and goes
//! before who computes when it wakes. So the time that yields take says which is better.

use std::thread::sleep;
use std::time::Duration;

use weft_os::clock::monotonic_ns;
use weft_os::sleep::yield_now;

/// How long a nap is asked to last. Chosen: the kernel adds fifty microseconds of its own
/// (PR_SET_TIMERSLACK, prctl(2)).
const NAP: Duration = Duration::from_micros(5);

/// A yield that takes longer has found somebody who computes. Chosen: ranks that look for what they
/// wait for take ten microseconds each, those that copy some hundred; who computes takes
/// milliseconds.
const LONG_TURN_NS: u64 = 1_000_000;

/// Naps behind the first yield that takes long, and at most. Chosen: one and fifteen milliseconds.
const FEWEST_NAPS: u32 = 16;
const MOST_NAPS: u32 = 256;

/// How many times more naps follow the next one, if it comes soon.
const FACTOR: u32 = 4;

/// What is soon, in time spent on yields. Chosen: a few shares of one who computes.
const SOON_NS: u64 = 10_000_000;

/// What was found of the processor's other users.
#[derive(Debug)]
pub struct Yielding {
    /// Naps before the next yield.
    naps_left: u32,
    /// Naps behind the last yield that took long.
    naps: u32,
    /// Time spent on yields since then.
    yielded_ns: u64,
}

impl Yielding {
    /// Nothing was found yet.
    pub const NEW: Self = Self {
        naps_left: 0,
        naps: 0,
        yielded_ns: 0,
    };

    /// Offers the processor once.
    pub fn offer(&mut self) {
        if self.naps_left > 0 {
            self.naps_left -= 1;
            sleep(NAP);
            return;
        }
        let before_ns = monotonic_ns();
        yield_now();
        self.found(monotonic_ns().saturating_sub(before_ns));
    }

    /// A yield took so long.
    fn found(&mut self, turn_ns: u64) {
        if turn_ns <= LONG_TURN_NS {
            self.yielded_ns = self.yielded_ns.saturating_add(turn_ns);
            return;
        }
        self.naps = match self.yielded_ns {
            ..SOON_NS => (self.naps * FACTOR).clamp(FEWEST_NAPS, MOST_NAPS),
            _ => FEWEST_NAPS,
        };
        self.naps_left = self.naps;
        self.yielded_ns = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yields_that_take_long_are_followed_by_naps_more_each_time() {
        let mut yielding = Yielding::NEW;
        yielding.found(LONG_TURN_NS);
        assert_eq!(yielding.naps_left, 0);
        let mut naps = Vec::new();
        for _ in 0..5 {
            yielding.found(LONG_TURN_NS + 1);
            naps.push(yielding.naps_left);
            yielding.found(1_000);
        }
        assert_eq!(naps, [16, 64, 256, 256, 256]);
        yielding.found(LONG_TURN_NS);
        for _ in 0..SOON_NS / 1_000 {
            yielding.found(1_000);
        }
        yielding.found(LONG_TURN_NS + 1);
        assert_eq!(yielding.naps_left, 16, "not soon");
    }

    #[test]
    fn an_offer_that_naps_counts_down() {
        let mut yielding = Yielding::NEW;
        yielding.naps_left = 2;
        yielding.offer();
        yielding.offer();
        assert_eq!((yielding.naps_left, yielding.yielded_ns), (0, 0));
    }
}
