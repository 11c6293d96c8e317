// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tables of a comparison.
//!
//! Called by pages.

use crate::compare::analysis::Analysis;
use crate::compare::before;
use crate::compare::configuration::{self, Configuration, Workload};
use crate::compare::cpu::{self, Cost};
use crate::compare::goals::{Check, Verdict};
use crate::compare::record::unit;
use crate::compare::tails::{self, Tails};
use weft_chart::axis::figure;
use weft_chart::table::{Cell, Table, Tone};
use weft_statistics::interval::{Interval, percent};

/// A message size with its unit: 8 B, 64 KiB, 4 MiB.
pub fn size_text(size: usize) -> String {
    match size {
        size if size >= 1 << 20 && size % (1 << 20) == 0 => format!("{} MiB", size >> 20),
        size if size >= 1 << 10 && size % (1 << 10) == 0 => format!("{} KiB", size >> 10),
        size => format!("{size} B"),
    }
}

/// Heads of the columns of [`all`]: first what a reader looks for, so that it is in sight on a
/// small screen.
const COLUMNS: [&str; 14] = [
    "MPI",
    "transport",
    "ranks",
    "size",
    "median",
    "mean",
    "to native",
    "to native, means",
    "to best",
    "to best, means",
    "P10\u{2013}P90",
    "interval of the median",
    "rounds",
    "far values",
];

/// Head of one more column where another build was measured.
const BEFORE: &str = "to before";

/// Heads of further columns where runs say what processor time they took.
const CPU: [&str; 3] = ["CPU s/10\u{2076}", "CPU s/GB", "CPU to native"];

/// And where runs say their slowest messages.
const TAILS: [&str; 4] = ["p99", "p99.9", "p99 to native", "p99.9 to native"];

/// Every figure of some workloads.
pub fn all(analysis: &Analysis<'_>, group: &[&Workload]) -> Table {
    let first = group[0];
    let has_cpu = cpu::is_known(analysis);
    let has_tails = tails::are_known(analysis, group);
    let mut rows = Vec::new();
    for workload in group {
        for configuration in analysis.record.configurations(workload) {
            for size in analysis.sizes(workload, configuration) {
                let cells = row(analysis, workload, configuration, size);
                rows.extend(cells.map(|mut cells| {
                    if has_tails {
                        let own = tails::of(analysis, workload, configuration, size);
                        cells.extend(slowest(own));
                    }
                    if has_cpu {
                        cells.extend(cost(cpu::cost(analysis, workload, configuration, size)));
                    }
                    cells
                }));
            }
        }
    }
    let has_before = analysis.record.matrix.has_variant(configuration::BEFORE);
    let before = has_before.then(|| BEFORE.to_owned());
    let cpu = if has_cpu { &CPU[..] } else { &[] };
    let tails = if has_tails { &TAILS[..] } else { &[] };
    Table {
        caption: format!("{} ({})", first.benchmark, unit(&first.benchmark)),
        columns: COLUMNS
            .map(str::to_owned)
            .into_iter()
            .chain(before)
            .chain(tails.iter().map(|head| (*head).to_owned()))
            .chain(cpu.iter().map(|head| (*head).to_owned()))
            .collect(),
        rows,
    }
}

fn row(
    analysis: &Analysis<'_>,
    workload: &Workload,
    configuration: &Configuration,
    size: usize,
) -> Option<Vec<Cell>> {
    let cell = analysis.cell(workload, configuration, size)?;
    let native = analysis.to_native(workload, configuration, size);
    let best = analysis.to_best(workload, configuration, size);
    let range = |low: f64, high: f64| format!("{}\u{2013}{}", figure(low), figure(high));
    let (summary, interval) = (cell.summary, cell.interval);
    let sure = percent(interval.confidence);
    let mut cells = vec![
        Cell::text(&configuration.mpi),
        Cell::text(configuration.short()),
        Cell::number(workload.ranks.to_string(), workload.ranks as f64),
        Cell::number(size_text(size), size as f64),
        Cell::number(figure(summary.median), summary.median),
        Cell::number(figure(cell.mean.value), cell.mean.value),
        ratio(native.map(|ratio| ratio.of_medians)),
        ratio(native.map(|ratio| ratio.of_means)),
        ratio(best.map(|ratio| ratio.of_medians)),
        ratio(best.map(|ratio| ratio.of_means)),
        Cell::number(range(summary.p10, summary.p90), summary.p90 / summary.p10),
        Cell::number(
            format!("{}, {sure}", range(interval.low, interval.high)),
            interval.high / interval.low,
        ),
        Cell::number(summary.count.to_string(), summary.count as f64),
        Cell::number(cell.far_count.to_string(), cell.far_count as f64),
    ];
    if analysis.record.matrix.has_variant(configuration::BEFORE) {
        let before = before::to_before(analysis, workload, configuration, size);
        cells.push(ratio(before.map(|ratio| ratio.of_medians)));
    }
    Some(cells)
}

/// The columns of [`TAILS`].
fn slowest(tails: Option<Tails>) -> [Cell; 4] {
    let number = |interval: Option<Interval>| {
        interval.map_or(Cell::text("-"), |found| {
            Cell::number(figure(found.value), found.value)
        })
    };
    let of = |part: fn(&Tails) -> Option<Interval>| tails.as_ref().and_then(part);
    [
        number(of(|tails| Some(tails.p99))),
        number(of(|tails| Some(tails.p999))),
        ratio(of(|tails| tails.p99_to_native)),
        ratio(of(|tails| tails.p999_to_native)),
    ]
}

/// The columns of [`CPU`].
fn cost(cost: Option<Cost>) -> [Cell; 3] {
    let number = |value: Option<f64>| {
        value.map_or(Cell::text("-"), |value| Cell::number(figure(value), value))
    };
    [
        number(cost.map(|cost| cost.seconds_per_million)),
        number(cost.and_then(|cost| cost.seconds_per_gb)),
        ratio(cost.and_then(|cost| cost.to_native)),
    ]
}

fn ratio(interval: Option<Interval>) -> Cell {
    interval.map_or(Cell::text("-"), |interval| {
        Cell::number(
            format!(
                "{:.2} ({:.2}\u{2013}{:.2}, {})",
                interval.value,
                interval.low,
                interval.high,
                percent(interval.confidence)
            ),
            interval.value,
        )
    })
}

/// Every goal.
pub fn goals(checks: &[Check]) -> Table {
    let columns = [
        "benchmark",
        "size",
        "Weft divided by",
        "ratio of medians",
        "interval",
        "confidence",
        "goal",
        "",
        "ratio of means",
        "",
        "which",
    ];
    let rows = checks
        .iter()
        .map(|check| {
            let size = match check.size_bytes {
                Some(size) => Cell::number(size_text(size), size as f64),
                None => Cell::number("all", f64::MAX),
            };
            let (ratio, means) = (check.ratio, check.ratio_of_means);
            let stands = |verdict: Verdict| Cell::text(verdict.words()).toned(tone(verdict));
            vec![
                Cell::text(&check.group),
                size,
                Cell::text(&check.against),
                Cell::number(format!("{:.2}", ratio.value), ratio.value),
                Cell::number(
                    format!("{:.2}\u{2013}{:.2}", ratio.low, ratio.high),
                    ratio.high / ratio.low,
                ),
                Cell::number(percent(ratio.confidence), ratio.confidence),
                Cell::number(format!("{} {}", check.bound(), check.goal), check.goal),
                stands(check.verdict),
                Cell::number(format!("{:.2}", means.value), means.value),
                stands(check.verdict_of_means),
                Cell::text(&check.who),
            ]
        })
        .collect();
    Table {
        caption: "Goals and how they stand".into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    }
}

pub fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Met => Tone::Good,
        Verdict::LikelyMet | Verdict::LikelyMissed => Tone::Unsure,
        Verdict::Missed => Tone::Bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_their_unit() {
        assert_eq!(
            [0, 8, 1536, 65536, 4 << 20].map(size_text),
            ["0 B", "8 B", "1536 B", "64 KiB", "4 MiB"]
        );
    }
}
