// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether long payload is read faster when its sender wrote it by non-temporal stores: found out
//! by trying.
//!
//! Where two processors share a cache, payload is best left in it. Where they do not (a virtual
//! machine may place its processors anywhere, and move them), fetching dirty lines out of another
//! processor's cache is several times slower than reading memory. The receiver times its copies of
//! both kinds, lane by lane, and tells the sender which it wants. Fed by receive;
//! docs/lab/2026-11-21-stores-past-the-cache.md has the figures.

use crate::tuner::{Costs, Estimate, Open, Rules, Tuner};

/// Payload that is timed: from here on senders follow the choice. Specified by ring's lanes.
pub(crate) const TIMED_BYTES: u32 = 6 * 1024;

/// Copies of a window. Chosen: enough for a best time that interruptions do not touch.
const WINDOW: u32 = 24;

/// Copies after a change of the choice that may still be of the old kind. Chosen: a lane's worth of
/// pieces.
const UNSURE_COPIES: u32 = 8;

/// What is gone by; a sample is the least time of a window, in ticks for each KiB. Chosen: a trial
/// of one window among 43 costs a few percent at worst.
const RULES: Rules = Rules {
    recent: 3,
    estimate: Estimate::Least,
    settling: 0,
    first: 1,
    trial: 1,
    alternates: false,
    hopeless: u64::MAX,
    costs: Costs::Fresh {
        margin: None,
        slower: None,
    },
    shortest_period: 43,
    first_period: 43,
    longest_period: 43,
};

/// What one lane's receiver has found out.
#[derive(Debug)]
pub(crate) struct StoreTuner {
    /// By ordinary and by non-temporal stores.
    tuner: Tuner<2>,
    /// Whether senders are asked for non-temporal stores.
    non_temporal: bool,
    /// Copies since the last change or window, and the least time of a window's.
    copies: u32,
    least: Option<u64>,
}

impl Default for StoreTuner {
    fn default() -> Self {
        Self {
            tuner: Tuner::new(&RULES),
            non_temporal: false,
            copies: 0,
            least: None,
        }
    }
}

impl StoreTuner {
    /// Learns that copying `bytes` took `ticks`; answers a new choice, if there is one.
    pub(crate) fn learn(&mut self, bytes: u32, ticks: u64) -> Option<bool> {
        self.copies += 1;
        if self.copies <= UNSURE_COPIES {
            return None;
        }
        let cost = ticks * 1024 / u64::from(bytes.max(1024));
        let least = self.least.map_or(cost, |least| least.min(cost));
        if self.copies < UNSURE_COPIES + WINDOW {
            self.least = Some(least);
            return None;
        }
        (self.copies, self.least) = (UNSURE_COPIES, None);
        self.tuner.learn(&RULES, self.non_temporal.into(), least);
        let open = Open {
            alternatives: [true; 2],
            default: 0,
            may_try: true,
        };
        let choice = self.tuner.next(&RULES, &open) == 1;
        if choice == self.non_temporal {
            return None;
        }
        (self.non_temporal, self.copies) = (choice, 0);
        Some(choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds copies that take the given ticks by kind; answers how many were non-temporal.
    fn feed(trial: &mut StoreTuner, choice: &mut bool, copies: u32, ticks: [u64; 2]) -> u32 {
        let mut non_temporal = 0;
        for _ in 0..copies {
            non_temporal += u32::from(*choice);
            if let Some(new) = trial.learn(8192, ticks[usize::from(*choice)]) {
                *choice = new;
            }
        }
        non_temporal
    }

    #[test]
    fn the_kind_that_is_read_faster_is_asked_for() {
        for (ticks, expected) in [([1000, 4000], 0..400), ([4000, 1000], 9_600..10_001)] {
            let (mut trial, mut choice) = (StoreTuner::default(), false);
            let non_temporal = feed(&mut trial, &mut choice, 10_000, ticks);
            assert!(
                expected.contains(&non_temporal),
                "{non_temporal} of 10,000 non-temporal at {ticks:?}"
            );
        }
    }

    #[test]
    fn a_processor_that_moves_changes_the_choice() {
        let (mut trial, mut choice) = (StoreTuner::default(), false);
        feed(&mut trial, &mut choice, 5000, [1000, 2000]);
        let non_temporal = feed(&mut trial, &mut choice, 5000, [8000, 2000]);
        assert!(non_temporal > 3500, "{non_temporal} of 5000");
        let non_temporal = feed(&mut trial, &mut choice, 5000, [1000, 2000]);
        assert!(non_temporal < 1500, "{non_temporal} of 5000");
    }
}
