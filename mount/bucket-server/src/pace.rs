// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rates: after some bytes have moved, says when the next ones may move. Method: virtual
//! scheduling. Each byte advances a clock, and whoever is ahead of real time waits.

use std::time::{Duration, Instant};

/// Chosen: timers are good to a millisecond, so what a late timer lost is made up for up to this
/// long.
const MAKE_UP: Duration = Duration::from_millis(10);

/// The clock of one limited direction.
#[derive(Debug)]
pub struct Pace {
    free_at: Instant,
}

impl Pace {
    /// Free from now on.
    pub fn new(now: Instant) -> Self {
        Self { free_at: now }
    }

    /// Takes the time of `bytes` at `rate` bytes per second (0: no time at all) and says when it is
    /// over.
    pub fn spend(&mut self, bytes: usize, rate: u64, now: Instant) -> Instant {
        if rate == 0 {
            self.free_at = now;
            return now;
        }
        let begin = self.free_at.max(now.checked_sub(MAKE_UP).unwrap_or(now));
        self.free_at = begin + Duration::from_secs_f64(bytes as f64 / rate as f64);
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_their_time_at_the_rate() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut now = start;
        for _ in 0..100 {
            now = pace.spend(1000, 100_000, now);
        }
        assert_eq!(now - start, Duration::from_secs(1));
        assert_eq!(pace.spend(1 << 30, 0, now), now);
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let later = start + Duration::from_secs(5);
        let over = pace.spend(1000, 1000, later);
        assert_eq!(over - later, Duration::from_secs(1) - MAKE_UP);
    }
}
