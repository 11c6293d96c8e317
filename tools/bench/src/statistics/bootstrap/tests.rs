// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The laws of the bootstrap: known intervals, and properties that hold for every input.

use super::*;
use proptest::prelude::*;

fn column(values: &[f64]) -> Column {
    values.iter().copied().map(Some).collect()
}

#[test]
fn figure_that_never_changes_has_no_width() {
    let interval = of_median(&column(&[3.0; 9])).expect("values");
    assert_eq!(
        (interval.low, interval.value, interval.high),
        (3.0, 3.0, 3.0)
    );
    assert_eq!(interval.confidence, 0.95);
}

#[test]
fn few_rounds_promise_less() {
    assert_eq!(attainable(1), 0.0);
    assert_eq!(attainable(3), 0.75);
    assert_eq!(attainable(5), 0.9375);
    assert_eq!(attainable(6), 0.95);
    assert_eq!(
        of_median(&column(&[1.0, 2.0, 3.0]))
            .expect("values")
            .confidence,
        0.75
    );
}

#[test]
fn noise_that_both_share_leaves_the_paired_ratio_sharp() {
    let base = column(&[1.0, 2.0, 5.0, 3.0, 9.0, 4.0, 1.5]);
    let half: Column = base
        .iter()
        .map(|value| value.map(|value| value / 2.0))
        .collect();
    let ratio = of_ratio(&half, &base).expect("pairs");
    assert_eq!((ratio.low, ratio.value, ratio.high), (0.5, 0.5, 0.5));
    let apart = of_unpaired_ratio(&half, &base).expect("values");
    assert!(apart.high > 0.6 && apart.low < 0.4, "{apart:?}");
}

#[test]
fn round_that_misses_one_side_says_nothing() {
    let figure = vec![Some(1.0), None, Some(1.0)];
    let base = vec![Some(2.0), Some(9.0), None];
    assert_eq!(paired(&figure, &base), [Some(0.5), None, None]);
    assert_eq!(of_ratio(&figure, &base).expect("a pair").value, 0.5);
    assert_eq!(of_ratio(&vec![None], &vec![Some(1.0)]), None);
    assert_eq!(of_median(&Vec::new()), None);
}

#[test]
fn best_of_several_is_the_least_time_and_the_greatest_bandwidth() {
    let (slow, fast, ours) = (column(&[4.0; 7]), column(&[2.0; 7]), column(&[1.0; 7]));
    let value = |better| {
        of_best_ratio(&[&ours], &[&slow, &fast], better)
            .expect("values")
            .value
    };
    assert_eq!((value(Better::Less), value(Better::More)), (0.5, 0.25));
}

#[test]
fn doubt_about_which_peer_is_best_widens_the_interval() {
    let ours = column(&[1.0; 7]);
    let one = column(&[1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 2.0]);
    let other = column(&[3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 2.0]);
    let interval = of_best_ratio(&[&ours], &[&one, &other], Better::Less).expect("values");
    assert!(interval.low <= 0.5 && interval.high >= 0.99, "{interval:?}");
}

#[test]
fn geometric_mean_of_half_and_double_is_one() {
    let (one, two) = (column(&[1.0; 6]), column(&[2.0; 6]));
    let sizes = [(vec![&one], vec![&two]), (vec![&two], vec![&one])];
    let mean = of_geometric_mean(&sizes, Better::Less).expect("values");
    assert!((mean.value - 1.0).abs() < 1e-12);
    assert_eq!(of_geometric_mean(&[], Better::Less), None);
}

/// Draws of 7 values from a skewed distribution with a known median; the interval must hold it about as often as it promises.
#[test]
fn intervals_hold_the_true_median_about_as_often_as_promised() {
    let mut random = fastrand::Rng::with_seed(7);
    let held = (0..400)
        .filter(|_| {
            let values: Vec<f64> = (0..7).map(|_| -(1.0 - random.f64()).ln()).collect();
            let interval = of_median(&column(&values)).expect("values");
            interval.low <= 2.0_f64.ln() && 2.0_f64.ln() <= interval.high
        })
        .count();
    assert!((340..=400).contains(&held), "{held} of 400");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn interval_holds_its_estimate_and_lies_within_the_values(values in prop::collection::vec(0.01_f64..100.0, 1..12)) {
        let interval = of_median(&column(&values)).expect("values");
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(0.0, f64::max);
        prop_assert!(least <= interval.low && interval.low <= interval.value);
        prop_assert!(interval.value <= interval.high && interval.high <= greatest);
    }

    #[test]
    fn scale_does_not_change_a_ratio(
        pairs in prop::collection::vec((0.01_f64..100.0, 0.01_f64..100.0), 1..10), scale in 0.1_f64..10.0,
    ) {
        let (figure, base): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let scaled = |values: &[f64]| column(&values.iter().map(|value| value * scale).collect::<Vec<_>>());
        let plain = of_ratio(&column(&figure), &column(&base)).expect("pairs");
        let other = of_ratio(&scaled(&figure), &scaled(&base)).expect("pairs");
        for (one, two) in [(plain.low, other.low), (plain.value, other.value), (plain.high, other.high)] {
            prop_assert!((one / two - 1.0).abs() < 1e-9);
        }
    }
}
