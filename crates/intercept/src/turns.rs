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

/// Yields that take longer on average find somebody who computes. Chosen: ranks that look for what
/// they wait for take ten microseconds each; who computes takes milliseconds.
const LONG_TURN_NS: u64 = 100_000;

/// The most that one yield counts for. Chosen: one that found somebody who computes counts for the
/// next five or ten.
const MOST_TURN_NS: u64 = 2_000_000;

/// How much of the average the last yield is: a part of so many.
const PARTS: u64 = 4;

/// How long a nap is asked to last. Chosen: the kernel adds fifty microseconds of its own
/// (PR_SET_TIMERSLACK, prctl(2)).
const NAP: Duration = Duration::from_micros(5);

/// Naps before a yield is tried again. Chosen: some fifteen milliseconds.
const NAPS: u32 = 256;

/// What was found of the processor's other users.
#[derive(Debug)]
pub struct Turns {
    /// What a yield takes, an average of the last ones.
    turn_ns: u64,
    /// Naps before the next yield.
    naps_left: u32,
}

impl Turns {
    /// Nothing was found yet.
    pub const NEW: Self = Self {
        turn_ns: 0,
        naps_left: 0,
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
        let counted_ns = turn_ns.min(MOST_TURN_NS);
        self.turn_ns = (self.turn_ns * (PARTS - 1) + counted_ns) / PARTS;
        if self.turn_ns > LONG_TURN_NS {
            self.naps_left = NAPS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yields_that_take_long_make_way_for_naps_until_some_are_short() {
        let mut turns = Turns::NEW;
        for _ in 0..100 {
            turns.found(LONG_TURN_NS);
        }
        assert_eq!(turns.naps_left, 0, "short ones");
        turns.found(10 * MOST_TURN_NS);
        let mut tries = 0;
        while turns.naps_left > 0 {
            assert_eq!(turns.naps_left, NAPS);
            turns.naps_left = 0;
            turns.found(1_000);
            tries += 1;
        }
        assert!((5..=12).contains(&tries), "{tries} short yields");
    }

    #[test]
    fn an_offer_that_naps_counts_down() {
        let mut turns = Turns::NEW;
        turns.naps_left = 2;
        turns.offer();
        turns.offer();
        assert_eq!((turns.naps_left, turns.turn_ns), (0, 0));
    }
}
