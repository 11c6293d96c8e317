// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The figures of a comparison: the best of all, and each MPI by itself.
//!
//! Called by pages.

use crate::compare::analysis::Analysis;
use crate::compare::arguments::Baseline;
use crate::compare::plan::{Contender, Discipline};
use crate::compare::reach;
use crate::compare::record::{better, quantity, unit};
use crate::report::axis::Scale;
use crate::report::figure::{Axis, Figure, Point, Ratio, Role, Series, Shape};
use crate::report::html::identifier;
use crate::statistics::bootstrap::{Better, Interval};

/// Weft under its best MPI beside the best of all others, everybody else in the background.
pub fn best(analysis: &Analysis<'_>, discipline: &Discipline) -> Figure {
    let sizes = analysis.all_sizes(discipline);
    if sizes.len() <= 1 {
        return bars(analysis, discipline);
    }
    let leader = |ours: bool| -> Vec<Point> {
        sizes
            .iter()
            .filter_map(|size| {
                let (contender, _) = analysis.leader(discipline, ours, *size)?;
                point(analysis, (discipline, contender), *size)
            })
            .collect()
    };
    let mut series: Vec<Series> = analysis
        .record
        .contenders(discipline)
        .into_iter()
        .filter(|contender| !contender.is_ours())
        .map(|contender| Series {
            name: contender.to_string(),
            role: Role::Faint,
            points: points(analysis, discipline, contender),
        })
        .collect();
    series.push(Series {
        name: "best peer".into(),
        role: Role::Peer,
        points: leader(false),
    });
    series.push(Series {
        name: "Weft, best MPI".into(),
        role: Role::Ours,
        points: leader(true),
    });
    let ratios = sizes
        .iter()
        .filter_map(|size| {
            Some(ratio_point(
                *size,
                analysis.ratio_to_best(discipline, *size)?,
            ))
        })
        .collect();
    Figure {
        id: identifier(&format!("{discipline} best")),
        title: format!("{}: best of Weft, best of all others", shown(discipline)),
        note: "Thin lines: every other MPI and transport.".into(),
        ratio: Some(ratio(
            discipline,
            "Weft / best",
            reach::aim_of_mean(discipline),
            ratios,
        )),
        commands: commands(analysis, discipline, None),
        ..blank(discipline, series)
    }
}

/// A figure for each MPI with Weft and its other transports.
pub fn of_mpis(
    analysis: &Analysis<'_>,
    discipline: &Discipline,
    baseline: &Baseline,
) -> Vec<Figure> {
    if analysis.all_sizes(discipline).len() <= 1 {
        return Vec::new();
    }
    let mpis = analysis.record.mpis();
    let figures = mpis
        .into_iter()
        .filter_map(|mpi| of_mpi(analysis, discipline, (mpi, baseline)));
    figures.collect()
}

fn of_mpi(
    analysis: &Analysis<'_>,
    discipline: &Discipline,
    (mpi, baseline): (&str, &Baseline),
) -> Option<Figure> {
    let contenders: Vec<&Contender> = analysis
        .record
        .contenders(discipline)
        .into_iter()
        .filter(|contender| contender.mpi == mpi)
        .collect();
    let ours = contenders
        .iter()
        .copied()
        .find(|contender| contender.is_ours())?;
    let mut series: Vec<Series> = contenders
        .iter()
        .map(|contender| Series {
            name: name(contender),
            role: if contender.is_ours() {
                Role::Ours
            } else {
                Role::Peer
            },
            points: points(analysis, discipline, contender),
        })
        .collect();
    let base = match baseline {
        Baseline::Own => Some(ours.own()),
        Baseline::Fixed(contender) => Some(contender.clone()),
        Baseline::Best => None,
    };
    if let Some(base) = base.as_ref().filter(|base| !contenders.contains(base)) {
        series.push(Series {
            name: base.to_string(),
            role: Role::Peer,
            points: points(analysis, discipline, base),
        });
    }
    series.retain(|series| !series.points.is_empty());
    if series.is_empty() {
        return None;
    }
    let ratios: Vec<Point> = analysis
        .sizes(discipline, ours)
        .into_iter()
        .filter_map(|size| {
            let interval = match &base {
                Some(base) => analysis.ratio(discipline, (ours, base), size)?,
                None => analysis.against_best(discipline, ours, size)?,
            };
            Some(ratio_point(size, interval))
        })
        .collect();
    let label = match baseline {
        Baseline::Own => "Weft / own".to_owned(),
        Baseline::Best => "Weft / best".to_owned(),
        Baseline::Fixed(contender) => format!("Weft / {}", contender.transport),
    };
    let (version, _) = analysis.record.version(mpi).unwrap_or((mpi, ""));
    Some(Figure {
        id: identifier(&format!("{discipline} {mpi}")),
        title: format!("{}: {mpi}", shown(discipline)),
        note: version.to_owned(),
        ratio: (!ratios.is_empty()).then(|| ratio(discipline, &label, None, ratios)),
        commands: commands(analysis, discipline, Some(mpi)),
        ..blank(discipline, series)
    })
}

/// A benchmark with a single figure for each contender, as barrier.
fn bars(analysis: &Analysis<'_>, discipline: &Discipline) -> Figure {
    let series = analysis
        .record
        .contenders(discipline)
        .into_iter()
        .map(|contender| Series {
            name: contender.to_string(),
            role: if contender.is_ours() {
                Role::Ours
            } else {
                Role::Peer
            },
            points: points(analysis, discipline, contender),
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    Figure {
        id: identifier(&format!("{discipline} best")),
        title: shown(discipline),
        shape: Shape::Bars,
        x: Axis::new(
            quantity(&discipline.benchmark),
            unit(&discipline.benchmark),
            Scale::Linear,
        ),
        commands: commands(analysis, discipline, None),
        series,
        ..Figure::default()
    }
}

fn blank(discipline: &Discipline, series: Vec<Series>) -> Figure {
    Figure {
        x: Axis::new("message size", "bytes", Scale::Bytes),
        y: Axis::new(
            quantity(&discipline.benchmark),
            unit(&discipline.benchmark),
            Scale::Logarithmic,
        ),
        series,
        ..Figure::default()
    }
}

fn shown(discipline: &Discipline) -> String {
    if reach::pairs(discipline) && discipline.hosts.is_empty() {
        discipline.benchmark.clone()
    } else {
        discipline.to_string()
    }
}

fn name(contender: &Contender) -> String {
    match contender.transport.as_str() {
        "weft" => "Weft".to_owned(),
        "native" => "own transport".to_owned(),
        other => other.to_owned(),
    }
}

fn points(analysis: &Analysis<'_>, discipline: &Discipline, contender: &Contender) -> Vec<Point> {
    analysis
        .sizes(discipline, contender)
        .into_iter()
        .filter_map(|size| point(analysis, (discipline, contender), size))
        .collect()
}

fn point(
    analysis: &Analysis<'_>,
    (discipline, contender): (&Discipline, &Contender),
    size: usize,
) -> Option<Point> {
    let cell = analysis.cell(discipline, contender, size)?;
    Some(Point {
        x: size as f64,
        y: cell.summary.median,
        low: cell.summary.p10,
        high: cell.summary.p90,
    })
}

fn ratio_point(size: usize, interval: Interval) -> Point {
    Point {
        x: size as f64,
        y: interval.value,
        low: interval.low,
        high: interval.high,
    }
}

fn ratio(discipline: &Discipline, label: &str, target: Option<f64>, points: Vec<Point>) -> Ratio {
    let less = better(&discipline.benchmark) == Better::Less;
    Ratio {
        label: label.to_owned(),
        ahead: if less { "Weft faster" } else { "Weft ahead" }.to_owned(),
        less_is_ahead: less,
        target,
        series: vec![Series {
            name: label.to_owned(),
            role: Role::Ours,
            points,
        }],
    }
}

fn commands(analysis: &Analysis<'_>, discipline: &Discipline, mpi: Option<&str>) -> Vec<String> {
    analysis
        .record
        .matrix
        .commands
        .iter()
        .filter(|command| {
            command.discipline == *discipline && mpi.is_none_or(|mpi| command.contender.mpi == mpi)
        })
        .map(|command| command.command.clone())
        .collect()
}
