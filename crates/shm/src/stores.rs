// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether long payload is read faster when its sender stored it past its own cache: found out by
//! trying.
//!
//! Where two processors share a cache, payload is best left in it. Where they do not (a virtual
//! machine may place its processors anywhere, and move them), fetching dirty lines out of another
//! processor's cache is several times slower than reading memory. The receiver times its copies of
//! both kinds, lane by lane, and tells the sender which it wants. Fed by receive;
//! docs/lab/2026-11-21-stores-past-the-cache.md has the figures.

/// Payload that is timed: from here on senders heed the wish. Specified by ring's lanes.
pub(crate) const TIMED_BYTES: u32 = 6 * 1024;

/// Copies timed in one trial. Chosen: enough for a best time that interruptions do not touch.
const TRIAL_COPIES: u32 = 24;

/// Copies after a change of the wish that may still be of the old kind. Chosen: a lane's worth of
/// pieces.
const UNSURE_COPIES: u32 = 8;

/// Copies between trials of the kind that is not in use. Chosen: a trial then costs a few percent
/// at worst.
const TRIAL_PERIOD: u32 = 1024;

/// What one lane's receiver has found out.
#[derive(Debug, Default)]
pub(crate) struct StoreTrial {
    /// Best time lately, in ticks for each KiB; by kind (0 through the cache, 1 past it).
    cost: [u64; 2],
    /// The kind now in use.
    current: usize,
    /// Whether it is only being tried.
    on_trial: bool,
    /// Copies since the last change.
    copies: u32,
}

impl StoreTrial {
    /// Learns that copying `bytes` took `ticks`; answers a new wish, if there is one.
    pub(crate) fn learn(&mut self, bytes: u32, ticks: u64) -> Option<bool> {
        self.copies += 1;
        if self.copies <= UNSURE_COPIES {
            return None;
        }
        let cost = ticks * 1024 / u64::from(bytes.max(1024));
        let known = &mut self.cost[self.current];
        // Old best times fade by a thousandth for each copy.
        *known = if *known == 0 {
            cost
        } else {
            (*known + *known / 1024 + 1).min(cost)
        };
        let other = 1 - self.current;
        let measured = self.copies - UNSURE_COPIES;
        if self.on_trial || self.cost[other] == 0 {
            if measured < TRIAL_COPIES {
                return None;
            }
            let keep = self.cost[other] != 0 && self.cost[self.current] <= self.cost[other];
            self.on_trial = self.cost[other] == 0;
            return if keep {
                self.settle()
            } else {
                Some(self.change())
            };
        }
        if measured >= TRIAL_PERIOD {
            self.on_trial = true;
            self.cost[other] = u64::MAX;
            return Some(self.change());
        }
        None
    }

    fn settle(&mut self) -> Option<bool> {
        self.copies = UNSURE_COPIES;
        None
    }

    fn change(&mut self) -> bool {
        self.current = 1 - self.current;
        self.copies = 0;
        if self.on_trial {
            self.cost[self.current] = 0;
        }
        self.current == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds copies that take the given ticks by kind; answers how many were past the cache.
    fn feed(trial: &mut StoreTrial, wish: &mut bool, copies: u32, ticks: [u64; 2]) -> u32 {
        let mut past_cache = 0;
        for _ in 0..copies {
            past_cache += u32::from(*wish);
            if let Some(new) = trial.learn(8192, ticks[usize::from(*wish)]) {
                *wish = new;
            }
        }
        past_cache
    }

    #[test]
    fn the_kind_that_is_read_faster_is_asked_for() {
        for (ticks, expected) in [([1000, 4000], 0..400), ([4000, 1000], 9_600..10_001)] {
            let (mut trial, mut wish) = (StoreTrial::default(), false);
            let past_cache = feed(&mut trial, &mut wish, 10_000, ticks);
            assert!(
                expected.contains(&past_cache),
                "{past_cache} of 10,000 past the cache at {ticks:?}"
            );
        }
    }

    #[test]
    fn a_processor_that_moves_changes_the_wish() {
        let (mut trial, mut wish) = (StoreTrial::default(), false);
        feed(&mut trial, &mut wish, 5000, [1000, 2000]);
        let past_cache = feed(&mut trial, &mut wish, 5000, [8000, 2000]);
        assert!(past_cache > 3500, "{past_cache} of 5000");
        let past_cache = feed(&mut trial, &mut wish, 5000, [1000, 2000]);
        assert!(past_cache < 1500, "{past_cache} of 5000");
    }
}
