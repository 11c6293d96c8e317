// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The comparison as one SVG: a panel for each benchmark and MPI, Weft in colour, the others in grey.
//!
//! Called by files; reads record. Both axes are logarithmic; the band around a curve is P10 to P90 over the rounds.

use super::plan::{Contender, Plan};
use super::record::{self, Record};
use super::table;
use crate::statistics::Summary;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A curve with its name and look.
type Curve = (String, BTreeMap<usize, Summary>, RGBColor);

/// Size of one panel in pixels (chosen: two beside each other fit a screen).
const PANEL: (u32, u32) = (560, 380);
const WEFT: RGBColor = RGBColor(200, 60, 20);
const OTHERS: [RGBColor; 4] = [
    RGBColor(90, 90, 90),
    RGBColor(150, 150, 150),
    RGBColor(190, 190, 190),
    RGBColor(210, 210, 210),
];

/// Draws it into a file.
///
/// # Errors
/// A sentence, when the file cannot be written.
pub fn draw(path: &Path, plan: &Plan, record: &Record) -> Result<(), String> {
    draw_all(path, plan, record).map_err(|error| format!("cannot draw {}: {error}", path.display()))
}

fn draw_all(path: &Path, plan: &Plan, record: &Record) -> Drawn {
    let benchmarks: Vec<_> = table::benchmarks(plan)
        .into_iter()
        .filter(|name| has_curve(plan, record, name))
        .collect();
    let mut mpis: Vec<&str> = plan
        .contenders
        .iter()
        .map(|(contender, _)| contender.mpi.as_str())
        .collect();
    mpis.dedup();
    let (columns, rows) = (benchmarks.len().max(1), mpis.len().max(1));
    let root = SVGBackend::new(path, (PANEL.0 * columns as u32, PANEL.1 * rows as u32))
        .into_drawing_area();
    root.fill(&WHITE)?;
    let panels = root.split_evenly((rows, columns));
    for (row, mpi) in mpis.iter().enumerate() {
        for (column, benchmark) in benchmarks.iter().enumerate() {
            let curves = curves(plan, record, mpi, benchmark);
            panel(
                &panels[row * columns + column],
                &format!("{mpi}: {benchmark}"),
                &curves,
                record::unit(benchmark),
            )?;
        }
    }
    root.present()?;
    Ok(())
}

/// A benchmark with a single size (barrier) makes no curve.
fn has_curve(plan: &Plan, record: &Record, benchmark: &str) -> bool {
    plan.contenders
        .iter()
        .any(|(contender, _)| record.summary(benchmark, contender).len() > 1)
}

fn curves(plan: &Plan, record: &Record, mpi: &str, benchmark: &str) -> Vec<Curve> {
    let mut greys = OTHERS.into_iter().cycle();
    let mut list: Vec<Curve> = Vec::new();
    for (contender, _) in plan
        .contenders
        .iter()
        .filter(|(contender, _)| contender.mpi == mpi)
    {
        let colour = if contender.transport == "weft" {
            WEFT
        } else {
            greys.next().unwrap_or(BLACK)
        };
        // A logarithmic axis has no place for size 0.
        let points = record
            .summary(benchmark, contender)
            .into_iter()
            .filter(|(size, _)| *size > 0)
            .collect();
        list.push((name(contender), points, colour));
    }
    // Weft last, so that it lies on top.
    list.sort_by_key(|(_, _, colour)| *colour == WEFT);
    list
}

fn name(contender: &Contender) -> String {
    match contender.transport.as_str() {
        "weft" => "Weft".to_owned(),
        "native" => "own transport".to_owned(),
        other => other.to_owned(),
    }
}

fn panel(area: &Area<'_>, title: &str, curves: &[Curve], unit: &str) -> Drawn {
    let Some((sizes, figures)) = extent(curves) else {
        let text = format!("{title}: nothing measured");
        area.draw(&Text::new(text, (20, 30), ("sans-serif", 16)))?;
        return Ok(());
    };
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .margin_right(24)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(sizes.log_scale().base(2.0), figures.log_scale())?;
    chart
        .configure_mesh()
        .x_desc("message size (bytes)")
        .y_desc(unit)
        .x_labels(12)
        .x_label_formatter(&|size| size_label(*size))
        .y_label_formatter(&|value| format!("{value}"))
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(235, 235, 235))
        .draw()?;
    for (name, points, colour) in curves {
        let (colour, width) = (*colour, if *colour == WEFT { 3 } else { 2 });
        let upper = points
            .iter()
            .map(|(size, summary)| (*size as f64, summary.p90));
        let lower = points
            .iter()
            .rev()
            .map(|(size, summary)| (*size as f64, summary.p10));
        chart.draw_series(std::iter::once(Polygon::new(
            upper.chain(lower).collect::<Vec<_>>(),
            colour.mix(0.15),
        )))?;
        let line = points
            .iter()
            .map(|(size, summary)| (*size as f64, summary.median));
        chart
            .draw_series(LineSeries::new(line, colour.stroke_width(width)))?
            .label(name)
            .legend(move |(x, y)| {
                PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(width))
            });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .label_font(("sans-serif", 13))
        .draw()?;
    Ok(())
}

/// The sizes and the figures that a panel must hold, with some room; `None` when nothing was measured.
fn extent(curves: &[Curve]) -> Option<(Range<f64>, Range<f64>)> {
    let points = || curves.iter().flat_map(|(_, points, _)| points);
    let first = *points().map(|(size, _)| size).min()? as f64;
    let last = *points().map(|(size, _)| size).max()? as f64;
    let least = points()
        .map(|(_, summary)| summary.p10)
        .fold(f64::INFINITY, f64::min)
        .max(1e-3);
    let greatest = points()
        .map(|(_, summary)| summary.p90)
        .fold(0.0, f64::max)
        .max(least * 2.0);
    Some((first..last.max(first * 2.0), least * 0.8..greatest * 1.25))
}

/// 1, 16, 1K, 64K, 4M.
fn size_label(size: f64) -> String {
    match size as usize {
        size if size >= 1 << 20 => format!("{}M", size >> 20),
        size if size >= 1 << 10 => format!("{}K", size >> 10),
        size => size.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::tests::{contender, filled, leg};

    #[test]
    fn plot_names_every_transport_and_draws_weft_in_its_colour() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("compare.svg");
        let contenders = [contender("mpich", "weft"), contender("mpich", "native")];
        let plan = Plan {
            contenders: contenders
                .iter()
                .map(|contender| (contender.clone(), String::new()))
                .collect(),
            left_out: Vec::new(),
            legs: vec![leg("mpich", "weft", "latency")],
        };
        draw(&path, &plan, &filled()).expect("drawn");
        let svg = std::fs::read_to_string(&path).expect("written");
        for word in [
            "mpich: latency",
            "Weft",
            "own transport",
            "message size",
            "#C83C14",
        ] {
            assert!(svg.contains(word), "{word} is missing");
        }
    }

    #[test]
    fn sizes_are_labelled_in_binary_units() {
        assert_eq!(
            [1.0, 512.0, 1024.0, 65536.0, 4194304.0].map(size_label),
            ["1", "512", "1K", "64K", "4M"]
        );
    }
}
