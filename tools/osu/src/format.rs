// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Headers and rows: as OSU 7.5 prints them, as OSU 5.6 prints them, or as JSON lines.
//!
//! Called by runner on rank 0. Other people's parsers read the text forms, so every space counts:
//! first column 10 wide, left-aligned; figures 18 wide with 2 digits; iterations 12 wide.

use crate::benchmark::{Overlap, Row};
use crate::description::{Description, Helpers, Measure};
use crate::options::{HelperCounts, Settings, Shown, Style};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use weft_mpi::Origin;

/// Width of a figure (specified by OSU).
const FIELD: usize = 18;
/// Width of the only column of a benchmark without sizes (specified by OSU).
const SOLE_FIELD: usize = 17;
/// Width of the first column of a non-blocking one without sizes (specified by OSU).
const SOLE_OVERALL: usize = 13;
/// Versions whose forms are followed.
const VERSIONS: [(Style, &str); 2] = [(Style::Osu7, "7.5"), (Style::Osu5, "5.6.2")];

/// A column after the overall time of a non-blocking collective.
#[derive(Clone, Copy)]
struct OverlapColumn {
    /// Its name in the text form.
    title: &'static str,
    /// Its name in JSON.
    name: &'static str,
    value: f64,
    /// The short form has it, too.
    is_short: bool,
}

const fn usual(title: &'static str, name: &'static str, value: f64) -> OverlapColumn {
    OverlapColumn {
        title,
        name,
        value,
        is_short: true,
    }
}

const fn in_full(title: &'static str, name: &'static str, value: f64) -> OverlapColumn {
    OverlapColumn {
        is_short: false,
        ..usual(title, name, value)
    }
}

/// The columns after the overall time, those of the short form alone unless `full`.
fn overlap_columns(overlap: &Overlap, full: bool) -> impl Iterator<Item = OverlapColumn> + use<> {
    let (least, greatest) = (overlap.least_communication, overlap.greatest_communication);
    let all = [
        usual("Compute(us)", "compute", overlap.compute),
        in_full("Coll. Init(us)", "start", overlap.start),
        in_full("MPI_Test(us)", "test", overlap.test),
        in_full("MPI_Wait(us)", "wait", overlap.wait),
        usual("Pure Comm.(us)", "communication", overlap.communication),
        in_full("Min Comm.(us)", "communication_min", least),
        in_full("Max Comm.(us)", "communication_max", greatest),
        usual("Overlap(%)", "overlap_percent", overlap.percent),
    ];
    all.into_iter()
        .filter(move |column| full || column.is_short)
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

/// The version whose form a style follows; `None` for JSON.
pub fn version(style: Style) -> Option<&'static str> {
    let known = VERSIONS.iter().find(|(known, _)| *known == style);
    known.map(|(_, version)| *version)
}

/// What stands above the rows of all types, with its line ends. Nothing in JSON.
pub fn title(description: &Description, settings: &Settings, job: &Job) -> String {
    let style = settings.shown.style;
    let Some(version) = version(style) else {
        return String::new();
    };
    let mut text = String::new();
    if let Some(helpers) = description.helpers() {
        text += &helpers_line(helpers, settings.special.helpers);
    }
    // OSU 5's point-to-point benchmarks and all one-sided ones start with their title; everything
    // else with an empty line.
    let old_pair = style == Style::Osu5 && description.is_point_to_point();
    if !old_pair && description.one_sided().is_none() {
        text.push('\n');
    }
    let _ = writeln!(text, "# {} v{version}", description.headline());
    if description.measure == Measure::MessageRate {
        let _ = writeln!(
            text,
            "# [ pairs: {} ] [ window size: {} ]",
            job.pairs, settings.window
        );
    }
    if let Some(which) = description.one_sided() {
        let chosen = settings.special.synchronisation;
        let synchronisation = chosen.unwrap_or(which.default_synchronisation());
        let origin = origin_title(settings.special.origin);
        let _ = writeln!(text, "# Window creation: {origin}");
        let _ = writeln!(text, "# Synchronization: {}", synchronisation.title());
    }
    if description.is_overlapped() {
        text += "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n";
    }
    text
}

fn helpers_line(helpers: Helpers, counts: HelperCounts) -> String {
    let HelperCounts { senders, receivers } = counts;
    match helpers {
        Helpers::Threads => format!(
            "# Number of Sender threads: {senders} \n# Number of Receiver threads: {receivers}\n"
        ),
        Helpers::Processes => format!(
            "# Number of forked processes in sender: {senders}\n\
             # Number of forked processes in receiver: {receivers}\n"
        ),
    }
}

fn origin_title(origin: Origin) -> &'static str {
    match origin {
        Origin::Create => "MPI_Win_create",
        Origin::Allocate => "MPI_Win_allocate",
        Origin::Dynamic => "MPI_Win_create_dynamic",
    }
}

/// What stands above the rows of one type: the type and the names of the columns, with their line
/// ends; in JSON one line with all about the run.
pub fn columns(description: &Description, settings: &Settings, job: &Job) -> String {
    let style = settings.shown.style;
    if style == Style::Json {
        return json_header(description, settings, job);
    }
    let mut text = String::new();
    if style != Style::Osu5 && description.sized {
        let _ = writeln!(text, "# Datatype: {}.", settings.kind.name());
    }
    text + &column_names(description, &settings.shown) + "\n"
}

fn column_names(description: &Description, shown: &Shown) -> String {
    let old_latency = shown.style == Style::Osu5 && description.is_point_to_point();
    let value = match description.measure {
        _ if description.is_overlapped() => "Overall(us)",
        Measure::Latency if old_latency || description.one_sided().is_some() => "Latency (us)",
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
    if description.is_overlapped() {
        for column in overlap_columns(&Overlap::default(), shown.full) {
            let _ = write!(text, "{:>FIELD$}", column.title);
        }
    } else if shown.full {
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
        false if row.overlap.is_some() => format!("{:>SOLE_OVERALL$.2}", row.value),
        false => format!("{:>SOLE_FIELD$.2}", row.value),
    };
    if let Some(rate) = row.rate.filter(|_| shown.rate) {
        let _ = write!(text, "{rate:>FIELD$.2}");
    }
    let overlap = row.overlap.iter();
    for column in overlap.flat_map(|overlap| overlap_columns(overlap, shown.full)) {
        let _ = write!(text, "{:>FIELD$.2}", column.value);
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
        "type": "header", "benchmark": description.name, "unit": unit(description),
        "ranks": job.ranks, "mpi": job.mpi, "library": job.library, "node": job.node,
        "datatype": settings.kind.name(), "window": settings.window,
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
    let overlap = row.overlap.iter();
    for column in overlap.flat_map(|overlap| overlap_columns(overlap, true)) {
        put(column.name, column.value.into());
    }
    if let Some(rate) = row.rate {
        put("messages_per_second", rate.into());
    }
    if let Some(cpu_us) = row.cpu_us {
        put("cpu_us", cpu_us.into());
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
