// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A figure from a benchmark with several settings of the provider, in turn.
//!
//! Called by figures; starts runs through compare's run. Curves are medians over the rounds, with
//! the tenth and the ninetieth percentile. Ratios are paired by round and have an interval.

use super::definition::{Definition, Measured, Variant};
use super::settings::Settings;
use crate::compare::configuration::{Configuration, Run, Workload};
use crate::compare::place::Place;
use crate::compare::run;
use crate::error::Error;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use weft_chart::axis::Scale;
use weft_chart::figure::{Axis, Figure, Point, Ratio, Role, Series, Shape};
use weft_statistics::Summary;
use weft_statistics::interval::{self, Column};

/// Rounds, and for a quick look (chosen: six carry a confidence of 95 %).
const ROUNDS: usize = 7;
const QUICK_ROUNDS: usize = 2;
/// Factors on OSU's iterations (chosen as in compare).
const SCALE: &str = "0.1";
const QUICK_SCALE: &str = "0.02";
/// Added to the limit that `weft run` keeps, for the case that it does not.
const SPARE: Duration = Duration::from_secs(30);

/// Figures by size, round by round.
type Columns = BTreeMap<usize, Column>;

/// Measures and fills it.
///
/// # Errors
/// Why a variant has no figures.
pub fn figure(
    settings: &Settings,
    definition: &Definition,
    measured: &Measured,
    weft: &Path,
) -> Result<Figure, Error> {
    let rounds = if settings.quick { QUICK_ROUNDS } else { ROUNDS };
    let runs: Vec<Run> = measured
        .variants
        .iter()
        .map(|variant| run_of(settings, measured, variant, weft))
        .collect();
    let mut columns = vec![Columns::new(); runs.len()];
    for round in 0..rounds {
        for which in order(runs.len(), round) {
            let outcome = run::run(&runs[which])
                .map_err(|error| error.about(measured.variants[which].name))?;
            for row in outcome.rows {
                let column = columns[which]
                    .entry(row.size_bytes)
                    .or_insert_with(|| vec![None; rounds]);
                column[round] = Some(row.median);
            }
        }
    }
    let commands = runs.iter().map(|run| {
        let words: Vec<_> = run
            .command
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        words.join(" ")
    });
    Ok(Figure {
        commands: commands.collect(),
        ..filled(definition, measured, &columns, rounds)
    })
}

/// Every other round backwards, so that nobody always comes first.
pub fn order(count: usize, round: usize) -> Vec<usize> {
    if round.is_multiple_of(2) {
        (0..count).collect()
    } else {
        (0..count).rev().collect()
    }
}

fn run_of(settings: &Settings, measured: &Measured, variant: &Variant, weft: &Path) -> Run {
    let seconds = settings.timeout.to_string();
    let mut command: Vec<OsString> = vec![weft.into(), "run".into()];
    let options = [
        "--mpi",
        &settings.mpi,
        "--transport",
        variant.transport,
        "-n",
        "2",
        "--quiet",
        "--timeout",
        &seconds,
    ];
    command.extend(options.map(OsString::from));
    for setting in variant.environment {
        command.extend(["--env", setting].map(OsString::from));
    }
    command.extend(["--".into(), weft.into()]);
    let (scale, sizes) = if settings.quick {
        (QUICK_SCALE, measured.quick_sizes)
    } else {
        (SCALE, measured.sizes)
    };
    let benchmark = [
        "bench",
        measured.benchmark,
        "--json",
        "--repeat-scale",
        scale,
        "-m",
        sizes,
    ];
    command.extend(benchmark.map(OsString::from));
    Run {
        configuration: Configuration {
            mpi: settings.mpi.clone(),
            transport: variant.transport.into(),
        },
        workload: Workload {
            benchmark: measured.benchmark.into(),
            ranks: 2,
            place: Place::default(),
        },
        command,
        limit: Duration::from_secs(settings.timeout) + SPARE,
    }
}

fn filled(
    definition: &Definition,
    measured: &Measured,
    columns: &[Columns],
    rounds: usize,
) -> Figure {
    let first = &measured.variants[0];
    let series = measured.variants.iter().zip(columns).enumerate();
    let series = series.map(|(at, (variant, columns))| Series {
        name: variant.name.into(),
        role: if at == 0 { Role::Ours } else { Role::Peer },
        points: points(columns),
    });
    let others = measured.variants.iter().zip(columns).skip(1).enumerate();
    let ratios = others.map(|(at, (variant, other))| Series {
        name: format!("{} over {}", first.name, variant.name),
        role: if at == 0 { Role::Ours } else { Role::Peer },
        points: ratios(&columns[0], other),
    });
    Figure {
        id: definition.id.into(),
        title: definition.title.into(),
        note: format!(
            "Two ranks, {rounds} rounds in turn; the band is the tenth to the ninetieth percentile."
        ),
        shape: Shape::Curves,
        x: Axis::new("message size", "bytes", Scale::Bytes),
        y: Axis::new(measured.label, measured.unit, Scale::Logarithmic),
        series: series.collect(),
        ratio: Some(Ratio {
            label: "ratio".into(),
            ahead: format!("{} ahead", first.name),
            note: String::new(),
            less_is_ahead: measured.unit == "us",
            target: None,
            series: ratios.collect(),
        }),
        source: definition.source.into(),
        commands: Vec::new(),
    }
}

/// Paired by round, with their interval.
fn ratios(ours: &Columns, other: &Columns) -> Vec<Point> {
    let ratio = |(size, column): (&usize, &Column)| {
        let ratio = interval::of_ratio(column, other.get(size)?)?;
        Some(Point {
            x: *size as f64,
            y: ratio.value,
            low: ratio.low,
            high: ratio.high,
        })
    };
    ours.iter().filter_map(ratio).collect()
}

fn points(columns: &Columns) -> Vec<Point> {
    let point = |(size, column): (&usize, &Column)| {
        let values: Vec<f64> = column.iter().flatten().copied().collect();
        Summary::of(&values).map(|summary| Point {
            x: *size as f64,
            y: summary.median,
            low: summary.p10,
            high: summary.p90,
        })
    };
    columns.iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::super::definition::Subject;
    use super::super::list::DEFINITIONS;
    use super::*;

    #[test]
    fn curves_are_medians_and_ratios_are_paired_by_round() {
        let Subject::Measured(measured) = &DEFINITIONS[0].subject else {
            panic!("the first figure is measured");
        };
        let column = |values: [f64; 3]| Columns::from([(8, values.map(Some).to_vec())]);
        let columns = [column([1.0, 2.0, 3.0]), column([2.0, 4.0, 6.0])];
        let figure = filled(&DEFINITIONS[0], measured, &columns, 3);
        assert_eq!(
            (figure.series[0].points[0].y, figure.series[1].points[0].y),
            (2.0, 4.0)
        );
        let ratio = figure.ratio.expect("both were measured").series[0].points[0];
        assert_eq!((ratio.low, ratio.y, ratio.high), (0.5, 0.5, 0.5));
    }
}
