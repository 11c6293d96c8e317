// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All measurements of a comparison, and what they come to.
//!
//! Filled by compare; read by table, plot and files.

use super::leg::Outcome;
use super::plan::{Contender, Leg};
use crate::catalogue::{self, Measure};
use crate::statistics::Summary;
use std::collections::BTreeMap;

/// Runs of one leg that may fail before it is left alone (chosen: one accident is forgiven).
const FAILURES_FORGIVEN: usize = 1;

/// A benchmark of a contender.
type Series = (&'static str, Contender);

/// One row of one run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Sample {
    /// The benchmark.
    pub benchmark: &'static str,
    /// Who ran it.
    #[serde(flatten)]
    pub contender: Contender,
    /// Round, from 0.
    pub round: usize,
    /// Message size.
    pub size_bytes: usize,
    /// Microseconds or MB/s.
    pub value: f64,
}

/// Everything measured.
#[derive(Default)]
pub struct Record {
    samples: Vec<Sample>,
    failures: Vec<(Series, usize, String)>,
    versions: BTreeMap<String, (String, String)>,
}

/// Whether a small figure is the good one.
pub fn small_is_good(benchmark: &str) -> bool {
    catalogue::find(benchmark).is_none_or(|description| description.measure == Measure::Latency)
}

/// Unit of a benchmark's figure.
pub fn unit(benchmark: &str) -> &'static str {
    if small_is_good(benchmark) {
        "us"
    } else {
        "MB/s"
    }
}

impl Record {
    /// Adds a run.
    pub fn add(&mut self, leg: &Leg, round: usize, outcome: Outcome) {
        let benchmark = leg.benchmark.name;
        let sample = |(size_bytes, value)| Sample {
            benchmark,
            contender: leg.contender.clone(),
            round,
            size_bytes,
            value,
        };
        self.samples.extend(outcome.rows.into_iter().map(sample));
        self.versions
            .insert(leg.contender.mpi.clone(), (outcome.mpi, outcome.library));
    }

    /// Adds a run that failed.
    pub fn add_failure(&mut self, leg: &Leg, round: usize, reason: String) {
        self.failures
            .push(((leg.benchmark.name, leg.contender.clone()), round, reason));
    }

    /// Whether a leg has failed too often to try it again.
    pub fn gave_up_on(&self, leg: &Leg) -> bool {
        let is_this = |series: &Series| series.0 == leg.benchmark.name && series.1 == leg.contender;
        self.failures
            .iter()
            .filter(|(series, _, _)| is_this(series))
            .count()
            > FAILURES_FORGIVEN
    }

    /// One sentence for each benchmark of a contender that failed: the rounds, and the last reason.
    pub fn failures(&self) -> Vec<String> {
        let mut by_series: BTreeMap<&Series, (Vec<String>, &str)> = BTreeMap::new();
        for (series, round, reason) in &self.failures {
            let entry = by_series.entry(series).or_default();
            entry.0.push((round + 1).to_string());
            entry.1 = reason;
        }
        let sentence =
            |((benchmark, contender), (rounds, reason)): (&Series, (Vec<String>, &str))| {
                format!(
                    "{contender} {benchmark}, round {}: {reason}",
                    rounds.join(" and ")
                )
            };
        by_series.into_iter().map(sentence).collect()
    }

    /// All rows, in the order they were measured.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Version and library file of an MPI, once one of its runs has worked.
    pub fn version(&self, mpi: &str) -> Option<&(String, String)> {
        self.versions.get(mpi)
    }

    /// Median and spread over the rounds, by size; empty when nothing was measured.
    pub fn summary(&self, benchmark: &str, contender: &Contender) -> BTreeMap<usize, Summary> {
        let mut by_size: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for sample in &self.samples {
            if sample.benchmark == benchmark && sample.contender == *contender {
                by_size
                    .entry(sample.size_bytes)
                    .or_default()
                    .push(sample.value);
            }
        }
        by_size
            .into_iter()
            .filter_map(|(size, values)| Some((size, Summary::of(&values)?)))
            .collect()
    }

    /// The best median of all contenders but Weft, by size.
    pub fn best_without_weft(
        &self,
        benchmark: &str,
        contenders: &[Contender],
    ) -> BTreeMap<usize, f64> {
        let mut best: BTreeMap<usize, f64> = BTreeMap::new();
        for contender in contenders
            .iter()
            .filter(|contender| contender.transport != "weft")
        {
            for (size, summary) in self.summary(benchmark, contender) {
                let known = best.entry(size).or_insert(summary.median);
                *known = if small_is_good(benchmark) {
                    known.min(summary.median)
                } else {
                    known.max(summary.median)
                };
            }
        }
        best
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::time::Duration;

    pub fn contender(mpi: &str, transport: &str) -> Contender {
        Contender {
            mpi: mpi.into(),
            transport: transport.into(),
        }
    }

    pub fn leg(mpi: &str, transport: &str, benchmark: &str) -> Leg {
        let benchmark = catalogue::find(benchmark).expect("listed");
        Leg {
            contender: contender(mpi, transport),
            benchmark,
            command: Vec::new(),
            limit: Duration::ZERO,
        }
    }

    pub fn filled() -> Record {
        let mut record = Record::default();
        for (round, figure) in [0.2, 0.4, 0.3].into_iter().enumerate() {
            let outcome = |figure| Outcome {
                rows: vec![(8, figure), (4096, figure * 4.0)],
                ..Outcome::default()
            };
            record.add(&leg("mpich", "weft", "latency"), round, outcome(figure));
            record.add(
                &leg("mpich", "native", "latency"),
                round,
                outcome(figure * 2.0),
            );
            record.add(
                &leg("openmpi", "native", "latency"),
                round,
                outcome(figure * 1.5),
            );
            record.add(
                &leg("mpich", "native", "bw"),
                round,
                outcome(figure * 1000.0),
            );
            record.add(
                &leg("openmpi", "native", "bw"),
                round,
                outcome(figure * 2000.0),
            );
        }
        record
    }

    #[test]
    fn figures_are_medians_over_rounds() {
        let summary = filled().summary("latency", &contender("mpich", "weft"));
        assert_eq!((summary[&8].median, summary[&8].count), (0.3, 3));
        assert!(
            filled()
                .summary("latency", &contender("intel", "weft"))
                .is_empty()
        );
    }

    #[test]
    fn best_is_the_least_latency_and_the_greatest_bandwidth_without_weft() {
        let all = [
            contender("mpich", "weft"),
            contender("mpich", "native"),
            contender("openmpi", "native"),
        ];
        assert!((filled().best_without_weft("latency", &all)[&8] - 0.45).abs() < 1e-12);
        assert!((filled().best_without_weft("bw", &all)[&8] - 600.0).abs() < 1e-9);
    }

    #[test]
    fn leg_is_given_up_after_its_second_failure() {
        let (mut record, leg) = (Record::default(), leg("mpich", "weft", "bw"));
        record.add_failure(&leg, 0, "died".into());
        assert!(!record.gave_up_on(&leg));
        record.add_failure(&leg, 1, "died".into());
        assert!(record.gave_up_on(&leg));
        assert_eq!(
            record.failures()[0],
            "mpich over weft bw, round 1 and 2: died"
        );
    }
}
