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

/// What a nap takes. Yields that take less on average are better.
const NAP_NS: u64 = 60_000;

/// The most that one yield counts for. Chosen: one that takes long by chance changes little.
const MOST_TURN_NS: u64 = 1_000_000;

/// One yield's part of the average if it takes longer than that, and if it does not. Chosen: some
/// two of a hundred that take milliseconds make the average long.
const RISE: u64 = 16;
const FALL: u64 = 8;

/// Naps before the next yield, for each of [`NAP_NS`] in the average. Chosen: a millisecond at
/// least, and some fifteen where each yield takes long, so that those that try take a small part.
const NAPS: u64 = 16;

/// What was found of the processor's other users.
#[derive(Debug)]
pub struct Turns {
    /// What a yield takes, on average of the last ones.
    turn_ns: u64,
    /// Naps before the next yield.
    naps_left: u64,
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
        self.turn_ns = match counted_ns.checked_sub(self.turn_ns) {
            Some(more_ns) => self.turn_ns + more_ns / RISE,
            None => self.turn_ns - (self.turn_ns - counted_ns) / FALL,
        };
        if self.turn_ns > NAP_NS {
            self.naps_left = NAPS * self.turn_ns / NAP_NS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many yields of that length it takes until their naps are as wanted.
    fn yields_until(turns: &mut Turns, turn_ns: u64, is_wanted: impl Fn(u64) -> bool) -> u32 {
        let mut count = 0;
        while !is_wanted(turns.naps_left) {
            turns.naps_left = 0;
            turns.found(turn_ns);
            count += 1;
            assert!(count < 1_000);
        }
        count
    }

    #[test]
    fn yields_that_take_long_make_way_for_naps_until_many_are_short() {
        let mut turns = Turns::NEW;
        for _ in 0..1_000 {
            turns.found(NAP_NS);
        }
        assert_eq!(turns.naps_left, 0, "as good as naps");
        let mut turns = Turns::NEW;
        turns.found(100 * MOST_TURN_NS);
        assert!((1..20).contains(&turns.naps_left), "one long one");
        assert_eq!(yields_until(&mut turns, 1_000, |naps| naps == 0), 1);
        let rise = yields_until(&mut turns, 3_000_000, |naps| naps > 200);
        assert!((5..60).contains(&rise), "{rise} long ones");
        let fall = yields_until(&mut turns, 1_000, |naps| naps == 0);
        assert!((10..40).contains(&fall), "{fall} short ones");
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
