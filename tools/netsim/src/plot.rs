// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Draws SVG: the distribution of slowdowns (the share of messages above each slowdown), and for
//! streams the rate over time. Called by report and stream; lib calls it first to check whether the
//! file can be written.

use std::fs::{self, OpenOptions};
use std::path::Path;

use clap::ValueEnum;
use weft_chart::axis::Scale;
use weft_chart::draw::alone;
use weft_chart::figure::{Axis, Figure, Point, Role, Series};

use crate::options::{Options, Scenario};
use crate::problem::Problem;
use crate::scenario::{Report, Row};
use crate::stream::{Seen, Stream, WARM_NS};

/// A stream's speed is that over so many nanoseconds (chosen: some dozen messages).
const SLICE_NS: u64 = 10_000_000;

/// Whether the file can be written; makes it.
///
/// # Errors
/// When it cannot.
pub fn check(path: &Path) -> Result<(), Problem> {
    let mut file = OpenOptions::new();
    file.write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(Problem::plot(path))?;
    Ok(())
}

/// Draws streams into a file: MB/s over time, and when the fault begins and ends.
///
/// # Errors
/// When the file cannot be written.
pub fn draw_streams(path: &Path, options: &Options, seen: &[Seen]) -> Result<(), Problem> {
    let curves = seen
        .iter()
        .map(|seen| (seen.name(), seen.rates(SLICE_NS)))
        .collect::<Vec<_>>();
    let all = || curves.iter().flat_map(|(_, curve)| curve);
    let latest_ms = all().map(|point| point.0).fold(1.0, f64::max);
    let most = all().map(|point| point.1).fold(1.0, f64::max);
    let fault_ms = if options.scenario == Scenario::SlowPath {
        [0.0, latest_ms]
    } else {
        let begin_ns = WARM_NS;
        [begin_ns, begin_ns + Stream::default().fault_ns].map(|at_ns| at_ns as f64 / 1e6)
    };
    let edges = ["fault begins", "fault ends"].into_iter().zip(fault_ms);
    let name = options.scenario.to_possible_value();
    let name = name.as_ref().map_or("", |name| name.get_name());
    let mut figure = Figure {
        id: format!("sim-{name}"),
        title: format!(
            "{name}: {} bytes, seed {}",
            options.message_bytes(),
            options.seed
        ),
        x: Axis::new("time", "ms", Scale::Linear),
        y: Axis::new("speed", "MB/s", Scale::Linear),
        series: series(curves.into_iter()),
        ..Figure::default()
    };
    figure.series.extend(edges.map(|(name, at_ms)| Series {
        name: name.to_owned(),
        role: Role::Limit,
        points: vec![Point::plain(at_ms, 0.0), Point::plain(at_ms, most)],
    }));
    write(path, &figure)
}

/// Draws the distribution of slowdowns into a file.
///
/// # Errors
/// When the file cannot be written.
pub fn draw(path: &Path, report: &Report) -> Result<(), Problem> {
    let counts = report.rows.iter().map(|row| row.slowdowns.len());
    let floor = (0.8 / counts.max().unwrap_or(1) as f64).min(0.5);
    let curves = report.rows.iter();
    let curves = curves.map(|row| (row.variant.clone(), curve(row, floor)));
    let figure = Figure {
        id: "sim".to_owned(),
        title: caption(report),
        x: Axis::new("slowdown against ideal", "", Scale::Logarithmic),
        y: Axis::new("share that is slower", "", Scale::Logarithmic),
        series: series(curves),
        ..Figure::default()
    };
    write(path, &figure)
}

/// The first curve is Weft's; it is compared with the others.
fn series(curves: impl Iterator<Item = (String, Vec<(f64, f64)>)>) -> Vec<Series> {
    let roles = std::iter::once(Role::Ours).chain(std::iter::repeat(Role::Peer));
    curves
        .zip(roles)
        .map(|((name, curve), role)| Series {
            name,
            role,
            points: curve.iter().map(|(x, y)| Point::plain(*x, *y)).collect(),
        })
        .collect()
}

fn write(path: &Path, figure: &Figure) -> Result<(), Problem> {
    fs::write(path, alone(figure)).map_err(Problem::plot(path))
}

fn caption(report: &Report) -> String {
    let name = serde_json::to_string(&report.scenario).unwrap_or_default();
    format!(
        "{}: {} hosts, {} bytes, {} Gb/s, seed {}",
        name.trim_matches('"'),
        report.hosts,
        report.bytes,
        report.gigabits_per_second,
        report.seed
    )
}

/// The complementary distribution, in steps.
fn curve(row: &Row, floor: f64) -> Vec<(f64, f64)> {
    let count = row.slowdowns.len() as f64;
    let share = |below: usize| (1.0 - below as f64 / count).max(floor);
    let corner = |(index, slowdown): (usize, &f64)| {
        [(*slowdown, share(index)), (*slowdown, share(index + 1))]
    };
    row.slowdowns.iter().enumerate().flat_map(corner).collect()
}
