// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The distribution of slowdowns as SVG: how large a share of messages is slower than so much; of
//! streams, how fast they go over time. Called by report and stream, and by lib to see first
//! whether the file can be written.

use std::fs::OpenOptions;
use std::path::Path;

use clap::ValueEnum;
use plotters::coord::CoordTranslate;
use plotters::prelude::*;

use crate::options::{Options, Scenario};
use crate::scenario::{Report, Row};
use crate::stream::{Seen, Stream, WARM_NS};

/// Pixels (chosen: fits a page beside text).
const SIZE: (u32, u32) = (720, 420);
const COLOURS: [RGBColor; 4] = [
    RGBColor(200, 60, 20),
    RGBColor(30, 90, 160),
    RGBColor(110, 110, 110),
    RGBColor(170, 170, 170),
];

/// A stream's speed is that over so many nanoseconds (chosen: some dozen messages).
const SLICE_NS: u64 = 10_000_000;

/// Whether the file can be written; makes it.
///
/// # Errors
/// A sentence, when it cannot.
pub fn check(path: &Path) -> Result<(), String> {
    let mut file = OpenOptions::new();
    file.write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| {
            format!(
                "--plot {} cannot be written: {error}; name a file in a folder that exists",
                path.display()
            )
        })?;
    Ok(())
}

/// Draws streams into a file: MB/s over time, and when the fault begins and ends.
///
/// # Errors
/// A sentence, when the file cannot be written.
pub fn draw_streams(path: &Path, options: &Options, seen: &[Seen]) -> Result<(), String> {
    draw_all_streams(path, options, seen)
        .map_err(|error| format!("cannot draw {}: {error}", path.display()))
}

fn draw_all_streams(
    path: &Path,
    options: &Options,
    seen: &[Seen],
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let curves: Vec<_> = seen.iter().map(|seen| seen.rates(SLICE_NS)).collect();
    let all = || curves.iter().flatten();
    let latest_ms = all().map(|point| point.0).fold(1.0, f64::max);
    let most = all().map(|point| point.1).fold(1.0, f64::max) * 1.2;
    let name = options.scenario.to_possible_value();
    let name = name.as_ref().map_or("", |name| name.get_name());
    let mut chart = ChartBuilder::on(&root)
        .caption(
            format!(
                "{name}: {} bytes, seed {}; grey while it lasts",
                options.message_bytes(),
                options.seed
            ),
            ("sans-serif", 15),
        )
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..latest_ms, 0.0..most)?;
    let stream = Stream::default();
    let begin_ms = if options.scenario == Scenario::SlowPath {
        0.0
    } else {
        WARM_NS as f64 / 1e6
    };
    let end_ms = if options.scenario == Scenario::SlowPath {
        latest_ms
    } else {
        (WARM_NS + stream.fault_ns) as f64 / 1e6
    };
    chart.draw_series([Rectangle::new(
        [(begin_ms, 0.0), (end_ms, most)],
        BLACK.mix(0.08).filled(),
    )])?;
    chart
        .configure_mesh()
        .x_desc("time (ms)")
        .y_desc("MB/s")
        .light_line_style(WHITE)
        .draw()?;
    draw_curves(&mut chart, seen.iter().map(Seen::name).zip(curves))?;
    root.present()?;
    Ok(())
}

/// Draws it into a file.
///
/// # Errors
/// A sentence, when the file cannot be written.
pub fn draw(path: &Path, report: &Report) -> Result<(), String> {
    draw_all(path, report).map_err(|error| format!("cannot draw {}: {error}", path.display()))
}

fn draw_all(path: &Path, report: &Report) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let values = || {
        report
            .rows
            .iter()
            .flat_map(|row| row.slowdowns.iter().copied())
    };
    let most = values().fold(2.0, f64::max) * 1.2;
    let least = values().fold(1.0, f64::min).max(0.01);
    let share = report
        .rows
        .iter()
        .map(|row| row.slowdowns.len())
        .max()
        .unwrap_or(1);
    let floor = (0.8 / share as f64).min(0.5);
    let mut chart = ChartBuilder::on(&root)
        .caption(caption(report), ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((least..most).log_scale(), (floor..1.0).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("slowdown against ideal")
        .y_desc("share that is slower")
        .light_line_style(WHITE)
        .draw()?;
    let rows = report.rows.iter();
    draw_curves(
        &mut chart,
        rows.map(|row| (row.variant.clone(), curve(row, floor))),
    )?;
    root.present()?;
    Ok(())
}

/// Draws curves, each in a colour of its own, and the box that names them.
fn draw_curves<'a, 'p: 'a, T: CoordTranslate<From = (f64, f64)>>(
    chart: &mut ChartContext<'a, SVGBackend<'p>, T>,
    curves: impl Iterator<Item = (String, Vec<(f64, f64)>)>,
) -> Result<(), Box<dyn std::error::Error>> {
    for ((name, curve), colour) in curves.zip(COLOURS.iter().cycle()) {
        chart
            .draw_series(LineSeries::new(curve, colour.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
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
