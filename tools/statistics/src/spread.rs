// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values far from the rest (outliers), and how many repetitions a spread needs.
//!
//! Called by compare. Outliers are counted and shown, never dropped. Medians do not need it, and a
//! rule that looks at a figure to decide whether it counts could favour one side. Source: Iglewicz
//! and Hoaglin, "How to Detect and Handle Outliers", 1993; Kenney and Keeping, "Mathematics of
//! Statistics", 1962, 14.7 for the deviation of a median.

use super::median;

/// Makes the median absolute deviation of normal values their standard deviation: 1 / 0.6745.
const NORMAL: f64 = 1.4826;
/// A value this many deviations away counts as far (specified by Iglewicz and Hoaglin).
const FAR: f64 = 3.5;
/// Standard deviation of a median over that of a mean, for normal values: sqrt(pi / 2).
const MEDIAN_OVER_MEAN: f64 = 1.2533;
/// Deviations that hold 95 % of normal values.
const DEVIATIONS: f64 = 1.96;
/// Fewer rounds cannot carry 95 % confidence for a median.
pub const FEWEST_ROUNDS: usize = 6;
/// More rounds than this are recommended to nobody (chosen): then the machine wants quieting
/// instead.
pub const MOST_ROUNDS: usize = 200;

/// Spread by the median absolute deviation, scaled so that it is the standard deviation for normal
/// values.
pub fn deviation(values: &[f64]) -> f64 {
    let middle = median(values);
    let away: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&away) * NORMAL
}

/// How many values lie far from the rest. When more than half are equal nothing can be said, and
/// none does.
pub fn far_count(values: &[f64]) -> usize {
    let (middle, deviation) = (median(values), deviation(values));
    if deviation > 0.0 {
        values
            .iter()
            .filter(|value| (*value - middle).abs() > FAR * deviation)
            .count()
    } else {
        0
    }
}

/// Rounds after which the interval of the median is about `wanted` (0.05: plus or minus 5 %) wide
/// to each side. [`FEWEST_ROUNDS`] to [`MOST_ROUNDS`].
pub fn rounds_wanted(values: &[f64], wanted: f64) -> usize {
    let relative = deviation(values) / median(values);
    let rounds = (DEVIATIONS * MEDIAN_OVER_MEAN * relative / wanted)
        .powi(2)
        .ceil();
    if rounds.is_finite() {
        (rounds as usize).clamp(FEWEST_ROUNDS, MOST_ROUNDS)
    } else {
        FEWEST_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_far_value_neither_moves_the_deviation_nor_hides() {
        let values = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 50.0];
        assert!(deviation(&values) < 0.2);
        assert_eq!(far_count(&values), 1);
        assert_eq!(far_count(&values[..6]), 0);
        assert_eq!(far_count(&[1.0, 1.0, 1.0, 2.0]), 0);
    }

    #[test]
    fn steady_figures_need_the_fewest_rounds_and_wild_ones_many() {
        assert_eq!(rounds_wanted(&[1.0; 5], 0.05), FEWEST_ROUNDS);
        // Deviation 20 %: (1.96 * 1.2533 * 0.2 / 0.05)^2 = 96.5
        let wild = [
            1.0,
            1.0 + 0.2 / NORMAL,
            1.0 - 0.2 / NORMAL,
            1.0 + 0.2 / NORMAL,
            1.0 - 0.2 / NORMAL,
        ];
        assert_eq!(rounds_wanted(&wild, 0.05), 97);
        assert_eq!(rounds_wanted(&[1.0, 100.0, 10_000.0], 0.01), MOST_ROUNDS);
        assert_eq!(rounds_wanted(&[], 0.05), FEWEST_ROUNDS);
    }

    proptest! {
        #[test]
        fn scale_and_order_do_not_matter(
            mut values in prop::collection::vec(0.1_f64..10.0, 2..15),
        ) {
            let (far, rounds) = (far_count(&values), rounds_wanted(&values, 0.05));
            values.reverse();
            let scaled: Vec<f64> = values.iter().map(|value| value * 4.0).collect();
            prop_assert_eq!(far_count(&scaled), far);
            prop_assert_eq!(rounds_wanted(&scaled, 0.05), rounds);
        }
    }
}
