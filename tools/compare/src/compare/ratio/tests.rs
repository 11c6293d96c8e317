// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The laws of ratios, and how often their intervals contain 1 when a configuration is compared
//! with itself.

use super::*;
use crate::compare::place::Place;
use crate::compare::record::tests::{SPEED, configuration, filled, run, turn, workload};
use crate::compare::record::{Entrant, Record};
use weft_statistics::speed::Speed;

fn entrant(mpi: &str, transport: &str) -> Entrant {
    Entrant {
        configuration: configuration(mpi, transport),
        place: Place::default(),
        launch: String::new(),
    }
}

#[test]
fn best_is_the_least_latency_and_the_greatest_bandwidth() {
    let record = filled();
    let analysis = Analysis::of(&record);
    for (benchmark, expected) in [("latency", 1.0 / 1.5), ("bw", 1.5)] {
        let workload = workload(benchmark);
        let ratio = analysis.best_to_best(&workload, 8).expect("both sides");
        assert!(
            (ratio.of_medians.value - expected).abs() < 1e-9,
            "{benchmark}: {ratio:?}"
        );
        let mean = analysis.mean_to_best(&workload).expect("both sides");
        assert!((mean.of_medians.value - expected).abs() < 1e-9);
        assert!((mean.of_means.value - expected).abs() < 1e-9);
        let best = analysis.leader(Side::Rivals, &workload, 8).expect("others");
        assert_eq!(best, &configuration("openmpi", "native"));
    }
}

#[test]
fn plain_and_repeated_configurations_are_no_side_of_the_best() {
    let mut record = filled();
    for (transport, figure) in [("weft+plain", 0.001), ("native+again", 0.002)] {
        record.matrix.entrants.push(entrant("mpich", transport));
        let fast = run("mpich", transport, "latency");
        let turns = (0..7).map(|round| turn(&fast, round, &[(8, figure)]));
        record.turns.extend(turns);
    }
    let analysis = Analysis::of(&record);
    let best = |side| analysis.leader(side, &workload("latency"), 8).cloned();
    assert_eq!(best(Side::Ours), Some(configuration("mpich", "weft")));
    assert_eq!(best(Side::Rivals), Some(configuration("openmpi", "native")));
}

#[test]
fn plain_is_divided_by_native_where_weft_run_sets_nothing_more_for_it() {
    let mut record = filled();
    record.matrix.entrants.push(entrant("mpich", "weft+plain"));
    let plain = run("mpich", "weft+plain", "latency");
    record.turns.push(turn(&plain, 0, &[(8, 0.1)]));
    let of = |record: &Record| {
        let analysis = Analysis::of(record);
        let (latency, ours) = (workload("latency"), &plain.configuration);
        let ratio = analysis.to_native(&latency, ours, 8).expect("measured");
        (analysis.baseline(&latency, ours), ratio.of_medians.value)
    };
    // The first round: 0.4 us native.
    assert_eq!(of(&record), (Some(configuration("mpich", "native")), 0.25));
    let alike = configuration("mpich", "native+plain");
    record
        .matrix
        .entrants
        .push(entrant("mpich", "native+plain"));
    let native = run("mpich", "native+plain", "latency");
    record.turns.push(turn(&native, 0, &[(8, 0.2)]));
    assert_eq!(of(&record), (Some(alike), 0.5));
}

/// Weft took its turns in six rounds; the native transport in the first three is twice as slow and
/// in the others excluded, so that the median of all of Weft's rounds is not that of the rounds
/// that the ratio is from.
#[test]
fn figures_beside_a_ratio_are_from_the_same_rounds() {
    let mut record = Record::default();
    record.matrix.workloads = vec![workload("latency")];
    for transport in ["weft", "native"] {
        record.matrix.entrants.push(entrant("mpich", transport));
    }
    let (ours, native) = (
        run("mpich", "weft", "latency"),
        run("mpich", "native", "latency"),
    );
    for (round, figure) in [0.2, 0.2, 0.2, 0.8, 0.8, 0.8, 0.8].into_iter().enumerate() {
        record.turns.push(turn(&ours, round, &[(8, figure)]));
        let mut other = turn(&native, round, &[(8, 0.4)]);
        if round > 3 {
            let slow = Speed {
                copy_ns: SPEED.copy_ns * 2.0,
                ..SPEED
            };
            (other.before, other.after) = (slow, slow);
        }
        record.turns.push(other);
    }
    let analysis = Analysis::of(&record);
    assert_eq!(
        (
            analysis.selection.excluded.len(),
            analysis.selection.run_count
        ),
        (3, 14)
    );
    let latency = workload("latency");
    let ratio = analysis.to_native(&latency, &ours.configuration, 8);
    let ratio = ratio.expect("both");
    assert_eq!((ratio.of_medians.value, ratio.of_medians.rounds), (0.5, 4));
    assert_eq!((ratio.figure.median, ratio.baseline.median), (0.2, 0.4));
    let shown = |configuration| analysis.middle(&latency, configuration, 8);
    assert_eq!(shown(&ours.configuration), Some(ratio.figure));
    assert_eq!(shown(&native.configuration), Some(ratio.baseline));
}

#[test]
fn mean_shows_what_a_median_hides() {
    let mut record = filled();
    for turn in &mut record.turns {
        if turn.configuration.is_ours() {
            for row in &mut turn.rows {
                row.value = row.median * 3.0;
            }
        }
    }
    let analysis = Analysis::of(&record);
    let ours = configuration("mpich", "weft");
    let ratio = analysis.to_native(&workload("latency"), &ours, 8);
    let ratio = ratio.expect("both");
    assert!((ratio.of_medians.value - 0.5).abs() < 1e-9);
    assert!((ratio.of_means.value - 1.5).abs() < 1e-9);
    assert!((ratio.figure.mean - 0.9).abs() < 1e-9 && (ratio.figure.median - 0.3).abs() < 1e-9);
}

/// A seed from the environment, to draw anew.
fn seed() -> u64 {
    let named = std::env::var("WEFT_SEED").ok();
    named.and_then(|text| text.parse().ok()).unwrap_or(11)
}

/// A comparison of the native transport with itself on a machine that is in one of two states in a
/// round, with noise of each run besides and a third of the runs excluded.
fn same_twice(rounds: usize, random: &mut fastrand::Rng) -> Record {
    let mut record = Record::default();
    record.matrix.workloads = vec![workload("latency")];
    for transport in ["native", "native+again"] {
        record.matrix.entrants.push(entrant("mpich", transport));
    }
    for round in 0..rounds {
        let state = if random.bool() { 0.13 } else { 0.25 };
        for transport in ["native", "native+again"] {
            let figure = state * (1.0 - 0.4 * (1.0 - random.f64()).ln());
            let mut turn = turn(&run("mpich", transport, "latency"), round, &[(8, figure)]);
            turn.rows[0].value = figure * (1.0 + random.f64());
            if random.f64() < 0.33 {
                (turn.before.copy_ns, turn.after.copy_ns) = (400_000.0, 400_000.0);
            }
            record.turns.push(turn);
        }
    }
    record
}

#[test]
fn native_against_native_holds_one_as_often_as_its_intervals_say() {
    const COMPARISONS: usize = 2000;
    for rounds in [6, 10, 17] {
        let mut random = fastrand::Rng::with_seed(seed());
        let mut all = Calibration::default();
        for _ in 0..COMPARISONS {
            let record = same_twice(rounds, &mut random);
            // Rarely no round has both.
            let Some(found) = calibration(&Analysis::of(&record)) else {
                continue;
            };
            all.intervals += found.intervals;
            all.hold += found.hold;
            all.expected += found.expected;
        }
        let (held, said) = (all.hold as f64, all.expected);
        // Medians and means of a comparison hang together: count them as one.
        let part = said / all.intervals as f64;
        let deviation = 2.0 * (COMPARISONS as f64 * part * (1.0 - part)).sqrt();
        assert!(
            (held - said).abs() < 4.0 * deviation,
            "{rounds} rounds, seed {}: {held} of {} intervals hold 1, they say {said}",
            seed(),
            all.intervals
        );
    }
}
