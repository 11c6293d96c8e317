// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether the machine kept its speed: small known tasks are timed beside every run, and their
//! times show which runs are doubtful.
//!
//! Called by compare with the times of its calibration. A virtual core that moves, a frequency that
//! drops, or a neighbour that wakes up changes the time of copying memory, or of handing a cache
//! line to another core. This affects whichever run is being measured. Only these times decide
//! whether a run counts; the figure that the run measured is not looked at.

use super::{Summary, median};
use serde::{Deserialize, Serialize};

/// A task may take this much longer or shorter than its median over the comparison (chosen: above
/// the jitter of a quiet virtual machine, below the factor of two and more between cores that share
/// a cache and cores that do not).
pub const TOLERANCE: f64 = 1.25;

/// Times of the known tasks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Copying 4 MiB, in nanoseconds.
    pub copy_ns: f64,
    /// Handing a cache line to the next core and no further, in nanoseconds; `None` with a single
    /// core.
    pub handover_ns: Option<f64>,
}

/// The usual times, from many.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Usual {
    /// Of copying.
    pub copy_ns: Summary,
    /// Of handing over.
    pub handover_ns: Option<Summary>,
}

impl Usual {
    /// `None` without any.
    pub fn of(speeds: &[Speed]) -> Option<Self> {
        let copies: Vec<f64> = speeds.iter().map(|speed| speed.copy_ns).collect();
        let handovers: Vec<f64> = speeds
            .iter()
            .filter_map(|speed| speed.handover_ns)
            .collect();
        Some(Self {
            copy_ns: Summary::of(&copies)?,
            handover_ns: Summary::of(&handovers),
        })
    }

    /// Whether a speed is another than the usual one.
    pub fn differs(&self, speed: &Speed) -> bool {
        let far = |time: f64, usual: f64| time > usual * TOLERANCE || time * TOLERANCE < usual;
        far(speed.copy_ns, self.copy_ns.median)
            || match (speed.handover_ns, self.handover_ns) {
                (Some(time), Some(usual)) => far(time, usual.median),
                _ => false,
            }
    }

    /// How much slower the machine was than usual: the greater of the two factors, each above 1
    /// when slower.
    pub fn slowdown(&self, speed: &Speed) -> f64 {
        let copy = speed.copy_ns / self.copy_ns.median;
        match (speed.handover_ns, self.handover_ns) {
            (Some(time), Some(usual)) => copy.max(time / usual.median),
            _ => copy,
        }
    }
}

/// Speed around a run: the mean of before and after.
pub fn around(before: Speed, after: Speed) -> Speed {
    Speed {
        copy_ns: median(&[before.copy_ns, after.copy_ns]),
        handover_ns: match (before.handover_ns, after.handover_ns) {
            (Some(before), Some(after)) => Some(median(&[before, after])),
            (before, after) => before.or(after),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn speed(copy_ns: f64, handover_ns: f64) -> Speed {
        Speed {
            copy_ns,
            handover_ns: Some(handover_ns),
        }
    }

    #[test]
    fn machine_that_slows_down_for_a_while_is_noticed() {
        let mut speeds = vec![speed(130_000.0, 80.0); 20];
        speeds[7] = speed(131_000.0, 240.0);
        speeds[8] = speed(170_000.0, 82.0);
        speeds[9] = speed(90_000.0, 82.0);
        let usual = Usual::of(&speeds).expect("speeds");
        let found: Vec<usize> = (0..20).filter(|at| usual.differs(&speeds[*at])).collect();
        assert_eq!(found, [7, 8, 9]);
        assert_eq!(usual.slowdown(&speeds[7]), 3.0);
    }

    #[test]
    fn single_core_is_judged_by_copying_alone() {
        let alone = |copy_ns| Speed {
            copy_ns,
            handover_ns: None,
        };
        let usual = Usual::of(&[alone(1.0), alone(1.0), alone(2.0)]).expect("speeds");
        assert!(usual.differs(&alone(2.0)) && !usual.differs(&alone(1.1)));
        assert_eq!(Usual::of(&[]), None);
        assert_eq!(around(speed(1.0, 2.0), alone(3.0)), speed(2.0, 2.0));
    }

    proptest! {
        #[test]
        fn jitter_within_the_tolerance_excludes_nothing(
            times in prop::collection::vec((1.0_f64..1.1, 1.0_f64..1.1), 1..30),
            scale in 1.0_f64..1e6,
        ) {
            let scaled = times.iter().map(|(copy, hand)| speed(copy * scale, hand * scale));
            let speeds: Vec<Speed> = scaled.collect();
            let usual = Usual::of(&speeds).expect("speeds");
            prop_assert!(speeds.iter().all(|speed| !usual.differs(speed)));
        }
    }
}
