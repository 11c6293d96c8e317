// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The distribution of slowdowns as SVG: how large a share of messages is slower than so much. Called by report.

use std::path::Path;

use plotters::prelude::*;

use crate::scenario::{Report, Row};

/// Pixels (chosen: fits a page beside text).
const SIZE: (u32, u32) = (720, 420);
const COLOURS: [RGBColor; 4] = [
    RGBColor(200, 60, 20),
    RGBColor(30, 90, 160),
    RGBColor(110, 110, 110),
    RGBColor(170, 170, 170),
];

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
    for (row, colour) in report.rows.iter().zip(COLOURS.iter().cycle()) {
        chart
            .draw_series(LineSeries::new(curve(row, floor), colour.stroke_width(2)))?
            .label(row.variant.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
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
