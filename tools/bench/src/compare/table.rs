// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The comparison as a table for people: for each MPI and benchmark, Weft against the MPI's own transport.
//!
//! Called by compare; reads record. All sizes are in the summary file; the table shows a choice of them.

use super::plan::{Contender, Plan};
use super::record::{self, Record};
use crate::statistics::Summary;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Sizes are shown in steps of this factor, and the largest (chosen: a screenful per MPI).
const STEP: usize = 8;

/// The whole text.
pub fn all(plan: &Plan, record: &Record) -> String {
    let contenders: Vec<Contender> = plan
        .contenders
        .iter()
        .map(|(contender, _)| contender.clone())
        .collect();
    let mut text = String::from("\nWeft against this MPI's own transport\n");
    text.push_str("Medians over the rounds, in brackets P10-P90. The ratio is Weft's figure over the other's; * marks where Weft is ahead.\n");
    text.push_str("own: the MPI's own transport. best: the best of all MPIs and transports here without Weft.\n");
    let mut mpis: Vec<&str> = contenders
        .iter()
        .map(|contender| contender.mpi.as_str())
        .collect();
    mpis.dedup();
    for mpi in mpis {
        let version = record
            .version(mpi)
            .map_or("no run of it worked", |(version, _)| version.as_str());
        let _ = writeln!(text, "\n{mpi}: {version}");
        for benchmark in benchmarks(plan) {
            text.push_str(&one(record, (mpi, benchmark), &contenders));
        }
    }
    text.push('\n');
    text
}

/// Names of the benchmarks, in their order.
pub fn benchmarks(plan: &Plan) -> Vec<&'static str> {
    let mut names: Vec<&str> = plan.legs.iter().map(|leg| leg.benchmark.name).collect();
    names.dedup();
    names
}

fn one(record: &Record, (mpi, benchmark): (&str, &str), contenders: &[Contender]) -> String {
    let of = |transport: &str| {
        record.summary(
            benchmark,
            &Contender {
                mpi: mpi.into(),
                transport: transport.into(),
            },
        )
    };
    let others: Vec<&str> = contenders
        .iter()
        .filter(|contender| contender.mpi == mpi && contender.transport != "weft")
        .map(|contender| contender.transport.as_str())
        .collect();
    let weft = of("weft");
    let columns: Vec<(&str, BTreeMap<usize, Summary>)> =
        others.into_iter().map(|other| (other, of(other))).collect();
    let best = record.best_without_weft(benchmark, contenders);
    let mut sizes: Vec<usize> = weft
        .keys()
        .chain(columns.iter().flat_map(|(_, column)| column.keys()))
        .copied()
        .collect();
    sizes.sort_unstable();
    sizes.dedup();

    let mut text = format!(
        "  {:<22}{:>26}",
        format!("{benchmark} ({})", record::unit(benchmark)),
        "Weft"
    );
    for (transport, _) in &columns {
        let name = if *transport == "native" {
            "own"
        } else {
            transport
        };
        let _ = write!(text, "{name:>26}");
    }
    let _ = writeln!(text, "{:>12}{:>12}", "Weft/own", "Weft/best");
    for size in shown(&sizes) {
        let _ = write!(text, "  {size:<22}{:>26}", cell(weft.get(&size)));
        for (_, column) in &columns {
            let _ = write!(text, "{:>26}", cell(column.get(&size)));
        }
        let own = columns
            .iter()
            .find(|(transport, _)| *transport == "native")
            .and_then(|(_, column)| column.get(&size));
        let weft = weft.get(&size).map(|summary| summary.median);
        let ratios = [own.map(|summary| summary.median), best.get(&size).copied()];
        let [own, best] = ratios.map(|other| ratio(weft, other, benchmark));
        let _ = writeln!(text, "{own:>12}{best:>12}");
    }
    text
}

/// The smallest, every one that is [`STEP`] times the last or more, and the largest.
fn shown(sizes: &[usize]) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    for size in sizes {
        if chosen.last().is_none_or(|last| *size >= last * STEP) {
            chosen.push(*size);
        }
    }
    if let Some(largest) = sizes
        .last()
        .filter(|largest| chosen.last() != Some(largest))
    {
        chosen.push(*largest);
    }
    chosen
}

fn cell(summary: Option<&Summary>) -> String {
    summary.map_or("-".to_owned(), |summary| {
        format!(
            "{} [{}-{}]",
            figure(summary.median),
            figure(summary.p10),
            figure(summary.p90)
        )
    })
}

/// Three digits or more, without noise digits.
fn figure(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn ratio(weft: Option<f64>, other: Option<f64>, benchmark: &str) -> String {
    let (Some(weft), Some(other)) = (weft, other) else {
        return "-".to_owned();
    };
    // Judged by what is shown: 0.999 is printed as 1.00 and is no lead.
    let ratio = (weft / other * 100.0).round() / 100.0;
    let ahead = if record::small_is_good(benchmark) {
        ratio < 1.0
    } else {
        ratio > 1.0
    };
    format!("{ratio:.2}{}", if ahead { "*" } else { " " })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::tests::{contender, filled, leg};

    #[test]
    fn table_shows_medians_spread_and_both_ratios() {
        let contenders = [
            contender("mpich", "weft"),
            contender("mpich", "native"),
            contender("openmpi", "native"),
        ];
        let plan = Plan {
            contenders: contenders
                .iter()
                .map(|contender| (contender.clone(), String::new()))
                .collect(),
            left_out: Vec::new(),
            legs: vec![leg("mpich", "weft", "latency")],
        };
        let text = all(&plan, &filled());
        assert!(text.contains("Weft against this MPI's own transport"));
        let line = text
            .lines()
            .find(|line| line.starts_with("  8 "))
            .expect("a row for 8 bytes");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "8",
                "0.30",
                "[0.22-0.38]",
                "0.60",
                "[0.44-0.76]",
                "0.50*",
                "0.67*"
            ]
        );
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        assert_eq!(ratio(None, Some(1.0), "latency"), "-");
        assert_eq!(cell(None), "-");
    }

    #[test]
    fn star_marks_the_smaller_latency_and_the_greater_bandwidth() {
        assert_eq!(ratio(Some(1.0), Some(2.0), "latency"), "0.50*");
        assert_eq!(ratio(Some(1.0), Some(2.0), "bw"), "0.50 ");
        assert_eq!(ratio(Some(0.999), Some(1.0), "latency"), "1.00 ");
    }

    #[test]
    fn first_and_last_size_are_always_shown() {
        let sizes: Vec<usize> = (0..23).map(|power| 1 << power).collect();
        let chosen = shown(&sizes);
        assert_eq!(
            (chosen.first(), chosen.last(), chosen.len()),
            (Some(&1), Some(&(4 << 20)), 9)
        );
    }
}
