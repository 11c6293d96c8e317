// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Medians and percentiles, and the statistics that build on them.
//!
//! Called by the benchmarks for -z (nearest rank, as OSU does) and by compare (interpolated).
//! Source: Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996: types 1 and 7.
//!
//! - [`interval`]: the confidence interval of a median or a ratio
//! - [`spread`]: values far from the rest, and how many repetitions a spread needs
//! - [`speed`]: whether the machine kept its speed
#![forbid(unsafe_code)]

pub mod interval;
pub mod speed;
pub mod spread;

/// Percentile by nearest rank: a value that was really measured. `sorted` ascends; `percent` is 0
/// to 100. NaN when empty.
pub fn nearest_rank(sorted: &[f64], percent: f64) -> f64 {
    let rank = (sorted.len() as f64 * percent / 100.0).round() as usize;
    sorted
        .get(rank.clamp(1, sorted.len().max(1)) - 1)
        .copied()
        .unwrap_or(f64::NAN)
}

/// Percentile by linear interpolation. `sorted` ascends; `percent` is 0 to 100. NaN when empty.
pub fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = percent.clamp(0.0, 100.0) / 100.0 * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// Middle of the values in any order; NaN when empty.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sort(&mut sorted);
    percentile(&sorted, 50.0)
}

/// Sorts in place, ascending.
pub fn sort(values: &mut [f64]) {
    values.sort_by(f64::total_cmp);
}

/// A sample's middle and spread.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// Half lie below.
    pub median: f64,
    /// A tenth lies below.
    pub p10: f64,
    /// A tenth lies above.
    pub p90: f64,
}

impl Summary {
    /// Of the values in any order; `None` when there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let mut sorted = values.to_vec();
        sort(&mut sorted);
        let at = |percent| percentile(&sorted, percent);
        Some(Self {
            count: sorted.len(),
            median: at(50.0),
            p10: at(10.0),
            p90: at(90.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_even_count_lies_between_the_middle_two() {
        assert_eq!(
            Summary::of(&[4.0, 1.0, 3.0, 2.0]).expect("values").median,
            2.5
        );
    }

    #[test]
    fn median_of_an_odd_count_is_the_middle_value() {
        assert_eq!(Summary::of(&[9.0, 1.0, 5.0]).expect("values").median, 5.0);
    }

    #[test]
    fn spread_of_zero_to_hundred_is_ten_to_ninety() {
        let values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let summary = Summary::of(&values).expect("values");
        assert_eq!(
            (summary.count, summary.p10, summary.median, summary.p90),
            (101, 10.0, 50.0, 90.0)
        );
    }

    #[test]
    fn percentile_interpolates_between_neighbours() {
        // numpy.percentile([1, 2, 3, 4], [10, 25, 90]) = [1.3, 1.75, 3.7]
        let sorted = [1.0, 2.0, 3.0, 4.0];
        for (percent, expected) in [
            (10.0, 1.3),
            (25.0, 1.75),
            (90.0, 3.7),
            (0.0, 1.0),
            (100.0, 4.0),
        ] {
            assert!(
                (percentile(&sorted, percent) - expected).abs() < 1e-12,
                "P{percent}"
            );
        }
    }

    #[test]
    fn nearest_rank_is_always_a_measured_value() {
        let sorted: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(
            [50.0, 90.0, 99.0, 99.9, 100.0].map(|percent| nearest_rank(&sorted, percent)),
            [500.0, 900.0, 990.0, 999.0, 1000.0]
        );
        assert_eq!(nearest_rank(&[7.0], 1.0), 7.0);
    }

    #[test]
    fn nothing_measured_is_not_a_number() {
        assert!(nearest_rank(&[], 50.0).is_nan() && percentile(&[], 50.0).is_nan());
        assert_eq!(Summary::of(&[]), None);
    }
}
