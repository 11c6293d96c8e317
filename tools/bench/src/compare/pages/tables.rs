// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tables of a comparison.
//!
//! Called by pages.

use crate::compare::analysis::Analysis;
use crate::compare::plan::Discipline;
use crate::compare::reach::Check;
use crate::compare::record::unit;
use crate::report::axis::figure;
use crate::report::table::{Cell, Table};
use crate::statistics::bootstrap::Interval;

/// A message size with its unit: 8 B, 64 KiB, 4 MiB.
pub fn size_text(size: usize) -> String {
    match size {
        size if size >= 1 << 20 && size % (1 << 20) == 0 => format!("{} MiB", size >> 20),
        size if size >= 1 << 10 && size % (1 << 10) == 0 => format!("{} KiB", size >> 10),
        size => format!("{size} B"),
    }
}

/// Every figure of some disciplines.
pub fn all(analysis: &Analysis<'_>, group: &[&Discipline]) -> Table {
    let first = group[0];
    let columns = [
        "MPI",
        "transport",
        "ranks",
        "size",
        "median",
        "P10\u{2013}P90",
        "95 % interval",
        "rounds",
        "far",
        "over own",
        "over best",
    ];
    let mut rows = Vec::new();
    for discipline in group {
        for contender in analysis.record.contenders(discipline) {
            for size in analysis.sizes(discipline, contender) {
                let Some(cell) = analysis.cell(discipline, contender, size) else {
                    continue;
                };
                let own = analysis.ratio(discipline, (contender, &contender.own()), size);
                let best = analysis.against_best(discipline, contender, size);
                rows.push(vec![
                    Cell::text(&contender.mpi),
                    Cell::text(&contender.transport),
                    Cell::number(discipline.ranks.to_string(), discipline.ranks as f64),
                    Cell::number(size_text(size), size as f64),
                    Cell::number(figure(cell.summary.median), cell.summary.median),
                    Cell::number(
                        format!(
                            "{}\u{2013}{}",
                            figure(cell.summary.p10),
                            figure(cell.summary.p90)
                        ),
                        cell.summary.p90 / cell.summary.p10,
                    ),
                    Cell::number(
                        format!(
                            "{}\u{2013}{}",
                            figure(cell.interval.low),
                            figure(cell.interval.high)
                        ),
                        cell.interval.high / cell.interval.low,
                    ),
                    Cell::number(cell.summary.count.to_string(), cell.summary.count as f64),
                    Cell::number(cell.far_count.to_string(), cell.far_count as f64),
                    ratio(own),
                    ratio(best),
                ]);
            }
        }
    }
    Table {
        caption: format!("{} ({})", first.benchmark, unit(&first.benchmark)),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    }
}

fn ratio(interval: Option<Interval>) -> Cell {
    interval.map_or(Cell::text("-"), |interval| {
        Cell::number(
            format!(
                "{:.2} ({:.2}\u{2013}{:.2})",
                interval.value, interval.low, interval.high
            ),
            interval.value,
        )
    })
}

/// Every aim.
pub fn aims(checks: &[Check]) -> Table {
    let columns = [
        "what",
        "size",
        "against",
        "ratio",
        "95 % interval",
        "aim",
        "",
        "who",
    ];
    let rows = checks
        .iter()
        .map(|check| {
            let size = match check.size_bytes {
                Some(size) => Cell::number(size_text(size), size as f64),
                None => Cell::number("all", f64::MAX),
            };
            vec![
                Cell::text(&check.group),
                size,
                Cell::text(&check.against),
                Cell::number(format!("{:.2}", check.ratio.value), check.ratio.value),
                Cell::number(
                    format!("{:.2}\u{2013}{:.2}", check.ratio.low, check.ratio.high),
                    check.ratio.high / check.ratio.low,
                ),
                Cell::number(check.aim.to_string(), check.aim),
                Cell::text(check.verdict.words()).toned(super::tone(check.verdict)),
                Cell::text(&check.who),
            ]
        })
        .collect();
    Table {
        caption: "Aims and how they stand".into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
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
