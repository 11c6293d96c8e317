// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The laws of the intervals: known confidences, how often they contain the true value, and
//! properties that hold for every input.

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
}

#[test]
fn confidence_is_that_of_the_order_statistics_used() {
    // R: 1 - 2 * pbinom(k - 1, n, 0.5)
    for (count, rank, expected) in [
        (1, 1, 0.0),
        (2, 1, 0.5),
        (3, 1, 0.75),
        (5, 1, 0.9375),
        (6, 1, 0.96875),
        (8, 1, 0.9921875),
        (8, 2, 0.9296875),
        (10, 2, 0.978515625),
        (17, 5, 0.9509582519531),
        (1000, 470, 0.9463221502),
        (3000, 1447, 0.9492628996),
    ] {
        let found = confidence(count, rank);
        assert!(
            (found - expected).abs() < 2e-7,
            "{count} values, rank {rank}: {found}"
        );
    }
    assert_eq!(
        (confidence(0, 1), confidence(5, 0), confidence(5, 4)),
        (0.0, 0.0, 0.0)
    );
    assert_eq!(percent(confidence(17, 5)), "95.1 %");
}

#[test]
fn interval_is_the_shortest_with_the_confidence_that_is_aimed_at_and_all_there_is_before() {
    let ends = |count: u32| {
        let values: Vec<f64> = (1..=count).map(f64::from).collect();
        let interval = of_median(&column(&values)).expect("values");
        (interval.low, interval.high, percent(interval.confidence))
    };
    assert_eq!(ends(1), (1.0, 1.0, "0.0 %".into()));
    assert_eq!(ends(3), (1.0, 3.0, "75.0 %".into()));
    assert_eq!(ends(5), (1.0, 5.0, "93.8 %".into()));
    assert_eq!(ends(6), (1.0, 6.0, "96.9 %".into()));
    assert_eq!(ends(9), (2.0, 8.0, "96.1 %".into()));
    assert_eq!(ends(17), (5.0, 13.0, "95.1 %".into()));
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
    assert!((apart.confidence - 0.984375 * 0.984375).abs() < 1e-12);
}

#[test]
fn round_that_misses_one_side_says_nothing() {
    let figure = vec![Some(1.0), None, Some(1.0)];
    let base = vec![Some(2.0), Some(9.0), None];
    assert_eq!(paired(&figure, &base), [Some(0.5), None, None]);
    let ratio = of_ratio(&figure, &base).expect("a pair");
    assert_eq!((ratio.value, ratio.rounds), (0.5, 1));
    assert_eq!(of_ratio(&vec![None], &vec![Some(1.0)]), None);
    assert_eq!(of_median(&Vec::new()), None);
    let (ours, theirs) = shared(&figure, &base);
    assert_eq!((ours[0], theirs[0]), (Some(1.0), Some(2.0)));
    assert_eq!((&ours[1..], &theirs[1..]), (&[None; 2][..], &[None; 2][..]));
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
fn round_without_the_best_peer_is_not_won_against_the_second_best() {
    let ours = column(&[1.0; 6]);
    let best = vec![Some(1.0), Some(1.0), Some(1.0), None, None, None];
    let second = column(&[5.0; 6]);
    let ratio = of_best_ratio(&[&ours], &[&best, &second], Better::Less).expect("values");
    assert_eq!((ratio.low, ratio.high, ratio.rounds), (1.0, 1.0, 3));
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

#[test]
fn size_that_is_missing_in_a_round_does_not_pull_the_mean_to_the_others() {
    let (one, two, eight) = (column(&[1.0; 3]), column(&[2.0; 3]), column(&[8.0; 3]));
    let partly = vec![Some(8.0), None, None];
    for (short, base) in [(&eight, &one), (&partly, &one)] {
        let sizes = [(vec![&two], vec![&one]), (vec![short], vec![base])];
        let mean = of_geometric_mean(&sizes, Better::Less).expect("values");
        assert!((mean.low - 4.0).abs() < 1e-9 && (mean.high - 4.0).abs() < 1e-9);
    }
}

/// How often intervals hold what is true, from many draws of `rounds` values of a skewed
/// distribution with two humps, as machines have it that change their speed: within four standard
/// deviations of what they say.
fn held_as_often_as_said(
    rounds: usize,
    seed: u64,
    of: impl Fn(&mut fastrand::Rng) -> bool,
    said: f64,
) {
    const DRAWS: u32 = 4000;
    let mut random = fastrand::Rng::with_seed(seed);
    let held = (0..DRAWS).filter(|_| of(&mut random)).count() as f64 / f64::from(DRAWS);
    let deviation = (said * (1.0 - said) / f64::from(DRAWS)).sqrt();
    assert!(
        (held - said).abs() < 4.0 * deviation,
        "{rounds} rounds, seed {seed}: {held:.4} of the intervals hold it, they say {said:.4}"
    );
}

/// A seed from the environment, to draw anew.
fn seed() -> u64 {
    let named = std::env::var("WEFT_SEED").ok();
    named.and_then(|text| text.parse().ok()).unwrap_or(7)
}

fn skewed(random: &mut fastrand::Rng) -> f64 {
    let long = -(1.0 - random.f64()).ln();
    if random.f64() < 0.4 {
        1.0 + long
    } else {
        3.0 + 0.2 * long
    }
}

#[test]
fn intervals_hold_the_true_median_as_often_as_they_say() {
    for rounds in [3, 5, 6, 7, 8, 9, 10, 12, 17, 25] {
        let said = confidence(rounds, rank(rounds, CONFIDENCE));
        let holds = |random: &mut fastrand::Rng| {
            let values: Vec<f64> = (0..rounds).map(|_| -(1.0 - random.f64()).ln()).collect();
            of_median(&column(&values))
                .expect("values")
                .holds(2.0_f64.ln())
        };
        held_as_often_as_said(rounds, seed(), holds, said);
    }
}

#[test]
fn same_against_the_same_holds_one_as_often_as_it_says() {
    for rounds in [3, 6, 8, 10, 17] {
        let said = confidence(rounds, rank(rounds, CONFIDENCE));
        // Neighbours of a round share its noise; each has some of its own.
        let holds = |random: &mut fastrand::Rng| {
            let (one, other): (Vec<f64>, Vec<f64>) = (0..rounds)
                .map(|_| {
                    let round = skewed(random);
                    (
                        round * (1.0 + 0.3 * random.f64()),
                        round * (1.0 + 0.3 * random.f64()),
                    )
                })
                .unzip();
            of_ratio(&column(&one), &column(&other))
                .expect("pairs")
                .holds(1.0)
        };
        held_as_often_as_said(rounds, seed(), holds, said);
    }
}

#[test]
fn best_of_three_against_the_best_of_three_alike_holds_one_as_often_as_it_says() {
    let rounds = 10;
    let said = confidence(rounds, rank(rounds, CONFIDENCE));
    let sides = |random: &mut fastrand::Rng| -> Vec<Column> {
        let draw = |random: &mut fastrand::Rng| (0..rounds).map(|_| Some(skewed(random))).collect();
        (0..6).map(|_| draw(random)).collect()
    };
    let best = |random: &mut fastrand::Rng| {
        let all = sides(random);
        let all: Vec<&Column> = all.iter().collect();
        of_best_ratio(&all[..3], &all[3..], Better::Less)
            .expect("values")
            .holds(1.0)
    };
    held_as_often_as_said(rounds, seed(), best, said);
    let mean = |random: &mut fastrand::Rng| {
        let all = [sides(random), sides(random)];
        let sizes = all
            .each_ref()
            .map(|all| (all[..3].iter().collect(), all[3..].iter().collect()));
        of_geometric_mean(&sizes, Better::Less)
            .expect("values")
            .holds(1.0)
    };
    held_as_often_as_said(rounds, seed(), mean, said);
}

/// These hold more often than they say, never less.
#[test]
fn ratio_of_two_comparisons_holds_the_true_one_at_least_as_often_as_it_says() {
    let mut random = fastrand::Rng::with_seed(seed());
    let mut said = 0.0;
    let held = (0..4000)
        .filter(|_| {
            let mut draw = || -> Column { (0..8).map(|_| Some(skewed(&mut random))).collect() };
            let interval = of_unpaired_ratio(&draw(), &draw()).expect("values");
            said = interval.confidence;
            interval.holds(1.0)
        })
        .count() as f64
        / 4000.0;
    assert!(
        held >= said,
        "seed {}: {held} of the intervals hold it, they say {said}",
        seed()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn interval_holds_its_estimate_and_lies_within_the_values(
        values in prop::collection::vec(0.01_f64..100.0, 1..12),
    ) {
        let interval = of_median(&column(&values)).expect("values");
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(0.0, f64::max);
        prop_assert!(least <= interval.low && interval.low <= interval.value);
        prop_assert!(interval.value <= interval.high && interval.high <= greatest);
    }

    #[test]
    fn scale_does_not_change_a_ratio(
        pairs in prop::collection::vec((0.01_f64..100.0, 0.01_f64..100.0), 1..10),
        scale in 0.1_f64..10.0,
    ) {
        let (figure, base): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let scaled = |values: &[f64]| -> Column {
            values.iter().map(|value| Some(value * scale)).collect()
        };
        let plain = of_ratio(&column(&figure), &column(&base)).expect("pairs");
        let other = of_ratio(&scaled(&figure), &scaled(&base)).expect("pairs");
        let ends = |interval: Interval| [interval.low, interval.value, interval.high];
        for (one, two) in zip(ends(plain), ends(other)) {
            prop_assert!((one / two - 1.0).abs() < 1e-9);
        }
    }
}
