// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Headers and rows: as OSU 7.5 prints them, as OSU 5.6 prints them, or as JSON lines.
//!
//! Called by runner on rank 0. The text forms are read by other people's parsers, so every space counts: first column 10 wide,
//! left-aligned; figures 18 wide with 2 digits; iterations 12 wide.

use crate::catalogue::{Description, Measure};
use crate::options::{Settings, Shown, Style};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Width of a figure (specified by OSU).
const FIELD: usize = 18;
/// Width of the only column of a benchmark without sizes (specified by OSU).
const SOLE_FIELD: usize = 17;
/// Versions whose forms are followed.
const VERSIONS: [(Style, &str); 2] = [(Style::Osu7, "7.5"), (Style::Osu5, "5.6.2")];

/// One size's result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Message size.
    pub size_bytes: usize,
    /// Microseconds or MB/s.
    pub value: f64,
    /// The same from the median block of iterations, which a few interruptions do not move; only in JSON.
    pub median: f64,
    /// Messages per second, where measured.
    pub rate: Option<f64>,
    /// Least and greatest latency in microseconds, where asked for.
    pub extremes: Option<(f64, f64)>,
    /// Timed iterations.
    pub iterations: usize,
    /// Result of the validation, when validating.
    pub passed: Option<bool>,
    /// Percentiles, in the order of [`Shown::tails`].
    pub tails: Vec<f64>,
}

/// Who ran, for the header.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Number of ranks.
    pub ranks: usize,
    /// Pairs that exchange.
    pub pairs: usize,
    /// The MPI's own version text.
    pub mpi: String,
    /// The library file.
    pub library: String,
    /// Rank 0's node.
    pub node: String,
}

/// What stands above the rows, with its line ends.
pub fn header(description: &Description, settings: &Settings, job: &Job) -> String {
    let style = settings.shown.style;
    let Some((_, version)) = VERSIONS.iter().find(|(known, _)| *known == style) else {
        return json_header(description, settings, job);
    };
    let old = style == Style::Osu5;
    let mut text = String::new();
    // OSU 5's point-to-point benchmarks start with their title; everything else starts with an empty line.
    if !(old && description.is_point_to_point()) {
        text.push('\n');
    }
    let _ = writeln!(text, "# OSU MPI {} v{version}", description.title);
    if description.measure == Measure::MessageRate {
        let _ = writeln!(
            text,
            "# [ pairs: {} ] [ window size: {} ]",
            job.pairs, settings.window
        );
    }
    if !old && description.sized {
        let _ = writeln!(text, "# Datatype: {}.", settings.kind.name());
    }
    text + &column_names(description, &settings.shown) + "\n"
}

fn column_names(description: &Description, shown: &Shown) -> String {
    let old_latency = shown.style == Style::Osu5 && description.is_point_to_point();
    let value = match description.measure {
        Measure::Latency if old_latency => "Latency (us)",
        Measure::Latency => "Avg Latency(us)",
        Measure::Bandwidth => "Bandwidth (MB/s)",
        Measure::MessageRate => "MB/s",
    };
    let mut text = if description.sized {
        format!("{:<10}{value:>FIELD$}", "# Size")
    } else {
        format!("# {value}")
    };
    if description.measure == Measure::MessageRate && shown.rate {
        let _ = write!(text, "{:>FIELD$}", "Messages/s");
    }
    if shown.full {
        let _ = write!(
            text,
            "{:>FIELD$}{:>FIELD$}{:>12}",
            "Min Latency(us)", "Max Latency(us)", "Iterations"
        );
    }
    if shown.validate {
        let _ = write!(text, "{:>FIELD$}", "Validation");
    }
    let unit = if description.measure == Measure::Latency {
        "Lat(us)"
    } else {
        "BW(MB/s)"
    };
    for percent in &shown.tails {
        let _ = write!(text, "{:>FIELD$}", format!("P{percent} Tail {unit}"));
    }
    text
}

/// One row, with its line end.
pub fn row(description: &Description, shown: &Shown, row: &Row) -> String {
    if shown.style == Style::Json {
        return json_row(description, shown, row);
    }
    let mut text = match description.sized {
        true => format!("{:<10}{:>FIELD$.2}", row.size_bytes, row.value),
        false => format!("{:>SOLE_FIELD$.2}", row.value),
    };
    if let Some(rate) = row.rate.filter(|_| shown.rate) {
        let _ = write!(text, "{rate:>FIELD$.2}");
    }
    if let Some((least, greatest)) = row.extremes.filter(|_| shown.full) {
        let _ = write!(
            text,
            "{least:>FIELD$.2}{greatest:>FIELD$.2}{:>12}",
            row.iterations
        );
    }
    if let Some(passed) = row.passed {
        let _ = write!(text, "{:>FIELD$}", verdict(passed));
    }
    for tail in &row.tails {
        let _ = write!(text, "{tail:>FIELD$.2}");
    }
    text.push('\n');
    text
}

fn verdict(passed: bool) -> &'static str {
    if passed { "Pass" } else { "Fail" }
}

fn json_header(description: &Description, settings: &Settings, job: &Job) -> String {
    let line = json!({
        "type": "header", "benchmark": description.name, "unit": unit(description), "ranks": job.ranks, "mpi": job.mpi,
        "library": job.library, "node": job.node, "datatype": settings.kind.name(), "window": settings.window,
    });
    format!("{line}\n")
}

fn unit(description: &Description) -> &'static str {
    if description.measure == Measure::Latency {
        "us"
    } else {
        "MB/s"
    }
}

fn json_row(description: &Description, shown: &Shown, row: &Row) -> String {
    let mut line = Map::new();
    let mut put = |name: &str, value: Value| line.insert(name.to_owned(), value);
    put("type", "row".into());
    put("benchmark", description.name.into());
    put("size_bytes", row.size_bytes.into());
    put("value", row.value.into());
    put("median", row.median.into());
    put("unit", unit(description).into());
    put("iterations", row.iterations.into());
    if let Some(rate) = row.rate {
        put("messages_per_second", rate.into());
    }
    if let Some((least, greatest)) = row.extremes {
        put("min", least.into());
        put("max", greatest.into());
    }
    if let Some(passed) = row.passed {
        put("validation", verdict(passed).into());
    }
    for (percent, tail) in shown.tails.iter().zip(&row.tails) {
        put(&format!("p{percent}"), (*tail).into());
    }
    format!("{}\n", Value::Object(line))
}

#[cfg(test)]
mod tests;
