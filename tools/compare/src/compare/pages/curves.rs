// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The figures of a comparison: the best of all, and each MPI by itself.
//!
//! Called by pages.

use crate::compare::analysis::Analysis;
use crate::compare::arguments::Baseline;
use crate::compare::configuration::{Configuration, Side, Workload};
use crate::compare::goals;
use crate::compare::ratio::Ratio as RatioOf;
use crate::compare::record::{better, quantity, unit};
use weft_chart::axis::Scale;
use weft_chart::figure::{Axis, Figure, Point, Ratio, Role, Series, Shape};
use weft_chart::html::identifier;
use weft_statistics::interval::Better;

/// What is drawn beside the medians.
const BANDS: &str = "Bands: P10 to P90. Below: Weft divided by the other; whiskers: the interval.";

/// Weft under its best MPI beside the best of all others, everybody else in the background.
pub fn best(analysis: &Analysis<'_>, workload: &Workload) -> Figure {
    let sizes = analysis.all_sizes(workload);
    if sizes.len() <= 1 {
        return bars(analysis, workload);
    }
    let leader = |side: Side| -> Vec<Point> {
        sizes
            .iter()
            .filter_map(|size| {
                let configuration = analysis.leader(side, workload, *size)?;
                point(analysis, workload, configuration, *size)
            })
            .collect()
    };
    let mut series: Vec<Series> = analysis
        .record
        .configurations(workload)
        .into_iter()
        .filter(|configuration| configuration.is_rival())
        .map(|configuration| Series {
            name: configuration.to_string(),
            role: Role::Faint,
            points: points(analysis, workload, configuration),
        })
        .collect();
    series.push(Series {
        name: workload.place.best().into(),
        role: Role::Peer,
        points: leader(Side::Rivals),
    });
    series.push(Series {
        name: "Weft, best MPI".into(),
        role: Role::Ours,
        points: leader(Side::Ours),
    });
    let ratios = sizes
        .iter()
        .filter_map(|size| Some((*size, analysis.best_to_best(workload, *size)?)))
        .collect();
    Figure {
        id: identifier(&format!("{workload} best")),
        title: format!(
            "{}: best of Weft, {}",
            shown(workload),
            workload.place.best()
        ),
        note: format!("Medians. Thin lines: every other MPI and transport. {BANDS}"),
        ratio: Some(ratio(
            workload,
            "Weft / best",
            goals::goal_of_mean(workload),
            ratios,
        )),
        commands: commands(analysis, workload, None),
        ..blank(workload, series)
    }
}

/// A figure for each MPI with Weft and its other transports.
pub fn of_mpis(analysis: &Analysis<'_>, workload: &Workload, baseline: &Baseline) -> Vec<Figure> {
    if analysis.all_sizes(workload).len() <= 1 {
        return Vec::new();
    }
    let mpis = analysis.record.mpis();
    let figures = mpis
        .into_iter()
        .filter_map(|mpi| of_mpi(analysis, workload, mpi, baseline));
    figures.collect()
}

fn of_mpi(
    analysis: &Analysis<'_>,
    workload: &Workload,
    mpi: &str,
    baseline: &Baseline,
) -> Option<Figure> {
    let configurations: Vec<&Configuration> = analysis
        .record
        .configurations(workload)
        .into_iter()
        .filter(|configuration| configuration.mpi == mpi)
        .collect();
    let ours = configurations
        .iter()
        .copied()
        .find(|configuration| configuration.is_ours())?;
    let mut series: Vec<Series> = configurations
        .iter()
        .map(|configuration| Series {
            name: configuration.short(),
            role: if configuration.is_weft() {
                Role::Ours
            } else {
                Role::Peer
            },
            points: points(analysis, workload, configuration),
        })
        .collect();
    let base = match baseline {
        Baseline::Native => Some(ours.native()),
        Baseline::Fixed(configuration) => Some(configuration.clone()),
        Baseline::Best => None,
    };
    if let Some(base) = base.as_ref().filter(|base| !configurations.contains(base)) {
        series.push(Series {
            name: base.to_string(),
            role: Role::Peer,
            points: points(analysis, workload, base),
        });
    }
    series.retain(|series| !series.points.is_empty());
    if series.is_empty() {
        return None;
    }
    let ratios: Vec<(usize, RatioOf)> = analysis
        .sizes(workload, ours)
        .into_iter()
        .filter_map(|size| {
            let ratio = match &base {
                Some(base) => analysis.ratio(workload, ours, base, size)?,
                None => analysis.to_best(workload, ours, size)?,
            };
            Some((size, ratio))
        })
        .collect();
    let label = match baseline {
        Baseline::Native => "Weft / native".to_owned(),
        Baseline::Best => "Weft / best".to_owned(),
        Baseline::Fixed(configuration) => format!("Weft / {}", configuration.transport),
    };
    let version = analysis.record.short_version(mpi).unwrap_or(mpi);
    Some(Figure {
        id: identifier(&format!("{workload} {mpi}")),
        title: format!("{}: {mpi}", shown(workload)),
        note: format!("{version}. Medians. {BANDS}"),
        ratio: (!ratios.is_empty()).then(|| ratio(workload, &label, None, ratios)),
        commands: commands(analysis, workload, Some(mpi)),
        ..blank(workload, series)
    })
}

/// A benchmark with a single figure for each configuration, as barrier.
fn bars(analysis: &Analysis<'_>, workload: &Workload) -> Figure {
    let series = analysis
        .record
        .configurations(workload)
        .into_iter()
        .map(|configuration| Series {
            name: configuration.to_string(),
            role: if configuration.is_weft() {
                Role::Ours
            } else {
                Role::Peer
            },
            points: points(analysis, workload, configuration),
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    Figure {
        id: identifier(&format!("{workload} best")),
        title: shown(workload),
        shape: Shape::Bars,
        x: Axis::new(
            quantity(&workload.benchmark),
            unit(&workload.benchmark),
            Scale::Linear,
        ),
        commands: commands(analysis, workload, None),
        series,
        ..Figure::default()
    }
}

fn blank(workload: &Workload, series: Vec<Series>) -> Figure {
    Figure {
        x: Axis::new("message size", "bytes", Scale::Bytes),
        y: Axis::new(
            quantity(&workload.benchmark),
            unit(&workload.benchmark),
            Scale::Logarithmic,
        ),
        series,
        ..Figure::default()
    }
}

fn shown(workload: &Workload) -> String {
    if goals::pairs(workload) && workload.place.is_here() {
        workload.benchmark.clone()
    } else {
        workload.to_string()
    }
}

fn points(
    analysis: &Analysis<'_>,
    workload: &Workload,
    configuration: &Configuration,
) -> Vec<Point> {
    analysis
        .sizes(workload, configuration)
        .into_iter()
        .filter_map(|size| point(analysis, workload, configuration, size))
        .collect()
}

fn point(
    analysis: &Analysis<'_>,
    workload: &Workload,
    configuration: &Configuration,
    size: usize,
) -> Option<Point> {
    let cell = analysis.cell(workload, configuration, size)?;
    Some(Point {
        x: size as f64,
        y: cell.summary.median,
        low: cell.summary.p10,
        high: cell.summary.p90,
    })
}

/// The ratios of medians with their intervals, and those of means beside them.
fn ratio(
    workload: &Workload,
    label: &str,
    target: Option<f64>,
    ratios: Vec<(usize, RatioOf)>,
) -> Ratio {
    let less = better(&workload.benchmark) == Better::Less;
    let interval = |(size, ratio): &(usize, RatioOf)| Point {
        x: *size as f64,
        y: ratio.of_medians.value,
        low: ratio.of_medians.low,
        high: ratio.of_medians.high,
    };
    let mean = |(size, ratio): &(usize, RatioOf)| Point::plain(*size as f64, ratio.of_means.value);
    let series = |name: String, points| Series {
        name,
        role: Role::Ours,
        points,
    };
    Ratio {
        label: label.to_owned(),
        ahead: if less { "Weft faster" } else { "Weft ahead" }.to_owned(),
        note: "solid: medians, dashed: means".to_owned(),
        less_is_ahead: less,
        target,
        series: vec![
            series(label.to_owned(), ratios.iter().map(interval).collect()),
            series(format!("{label}, means"), ratios.iter().map(mean).collect()),
        ],
    }
}

fn commands(analysis: &Analysis<'_>, workload: &Workload, mpi: Option<&str>) -> Vec<String> {
    analysis
        .record
        .matrix
        .commands
        .iter()
        .filter(|command| {
            command.workload == *workload && mpi.is_none_or(|mpi| command.configuration.mpi == mpi)
        })
        .map(|command| command.command.clone())
        .collect()
}
