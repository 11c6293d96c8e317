// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The slowest messages: p99 and p99.9 of latencies between hosts, beside those of the same MPI's
//! own transport.
//!
//! Called by table, files and pages; reads analysis. Plan asks the benchmarks for these percentiles
//! ([`WANTED`]) only where reading the clock for each message takes little time compared to the
//! message.

use super::analysis::{Analysis, Figures};
use super::configuration::{Configuration, Workload};
use serde::Serialize;
use std::fmt::Write;
use weft_chart::axis::{bytes, figure};
use weft_statistics::interval::{self, Column, Interval};

/// The benchmarks whose messages are timed one by one.
const BENCHMARKS: [&str; 2] = ["latency", "multi_lat"];
/// What they are told.
pub const WANTED: &str = "-z99,99.9";

/// Percentiles of the iterations of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Tails {
    /// Median over the rounds of the runs' 99th percentiles, in microseconds.
    pub p99: Interval,
    /// The same of one in a thousand.
    pub p999: Interval,
    /// Over those of the baseline, round by round; `None` where there is none.
    pub p99_to_native: Option<Interval>,
    /// Likewise.
    pub p999_to_native: Option<Interval>,
}

/// Whether runs of a workload say them.
pub fn wanted(workload: &Workload) -> bool {
    !workload.place.is_here() && BENCHMARKS.contains(&workload.benchmark.as_str())
}

/// Of a configuration at a size; `None` where they were not measured.
pub fn of(
    analysis: &Analysis<'_>,
    workload: &Workload,
    configuration: &Configuration,
    size: usize,
) -> Option<Tails> {
    let own = analysis.figures(workload, configuration, size)?;
    let baseline = analysis.baseline(workload, configuration);
    let base = baseline.and_then(|base| analysis.figures(workload, &base, size));
    let to_native = |column: fn(&Figures) -> &Column| {
        let (ours, theirs) = interval::shared(column(own), column(base?));
        interval::of_ratio(&ours, &theirs)
    };
    Some(Tails {
        p99: interval::of_median(&own.p99)?,
        p999: interval::of_median(&own.p999)?,
        p99_to_native: to_native(|figures| &figures.p99),
        p999_to_native: to_native(|figures| &figures.p999),
    })
}

/// Whether some runs of these workloads say them.
pub fn are_known(analysis: &Analysis<'_>, group: &[&Workload]) -> bool {
    let known = |workload: &Workload, configuration: &Configuration| {
        let mut sizes = analysis.sizes(workload, configuration).into_iter();
        sizes.any(|size| of(analysis, workload, configuration, size).is_some())
    };
    group.iter().any(|workload| {
        let mut all = analysis.record.configurations(workload).into_iter();
        all.any(|configuration| known(workload, configuration))
    })
}

/// A table for a terminal, empty where they were not measured: p99 and p99.9 of each configuration,
/// and Weft's over its baseline's.
pub fn text(
    analysis: &Analysis<'_>,
    workload: &Workload,
    mine: &[&Configuration],
    sizes: &[usize],
) -> String {
    if !are_known(analysis, &[workload]) {
        return String::new();
    }
    let mut text = format!("  {workload}: p99 and p99.9 (us)\n  {:<8}", "size");
    for configuration in mine {
        let _ = write!(text, " {:>18}", configuration.short());
    }
    let ours = mine.iter().find(|one| one.is_ours());
    if ours.is_some() {
        let _ = write!(text, "  {:>26}", "Weft/native, p99 and p99.9");
    }
    text.push('\n');
    for size in sizes {
        let _ = write!(text, "  {:<8}", bytes(*size as f64));
        for configuration in mine {
            let tails = of(analysis, workload, configuration, *size);
            let cell = tails.map_or("-".to_owned(), |tails| {
                format!("{} {}", figure(tails.p99.value), figure(tails.p999.value))
            });
            let _ = write!(text, " {cell:>18}");
        }
        if let Some(ours) = ours {
            let tails = of(analysis, workload, ours, *size);
            let ratios = tails.and_then(|tails| {
                let (p99, p999) = (tails.p99_to_native?, tails.p999_to_native?);
                Some(format!("{:.2} {:.2}", p99.value, p999.value))
            });
            let _ = write!(text, "  {:>26}", ratios.unwrap_or("-".to_owned()));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::place::Place;
    use crate::compare::record::tests::{configuration, filled, workload};

    #[test]
    fn tails_are_medians_over_rounds_and_ratios_are_paired() {
        let mut record = filled();
        let latency = workload("latency");
        let own = configuration("mpich", "weft");
        let text = |record: &_| {
            let analysis = Analysis::of(record);
            let native = configuration("mpich", "native");
            text(&analysis, &latency, &[&own, &native], &[8])
        };
        assert_eq!(text(&record), "", "these runs say none");
        for row in record.turns.iter_mut().flat_map(|turn| &mut turn.rows) {
            (row.p99, row.p999) = (Some(row.median * 2.0), Some(row.median * 5.0));
        }
        let found = of(&Analysis::of(&record), &latency, &own, 8).expect("measured");
        assert!((found.p99.value - 0.6).abs() < 1e-9 && (found.p999.value - 1.5).abs() < 1e-9);
        assert!((found.p999_to_native.expect("both").value - 0.5).abs() < 1e-9);
        let text = text(&record);
        assert!(
            text.contains("0.60 1.50") && text.contains("0.50 0.50"),
            "{text}"
        );
    }

    #[test]
    fn only_latencies_between_hosts_are_timed_one_by_one() {
        let mut between = workload("latency");
        assert!(!wanted(&between));
        between.place = Place::of_hosts("a,b");
        assert!(wanted(&between));
        between.benchmark = "bw".to_owned();
        assert!(!wanted(&between));
    }
}
