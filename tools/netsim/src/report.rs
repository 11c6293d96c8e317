// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The results of a scenario: a table for people, JSON for scripts. Called by lib.

use std::fmt::Write;

use crate::options::Options;
use crate::plot;
use crate::problem::Problem;
use crate::scenario::{Report, Row};

/// Prints the report, and draws it if asked to.
///
/// # Errors
/// A sentence, when the plot cannot be written.
pub fn show(options: &Options, report: &Report) -> Result<(), Problem> {
    if options.json {
        println!("{}", serde_json::to_string_pretty(report)?);
    } else {
        print!("{}", table(report));
    }
    match &options.plot {
        Some(path) => plot::draw(path, report),
        None => Ok(()),
    }
}

/// The table.
pub fn table(report: &Report) -> String {
    let mut text = String::new();
    let name = serde_json::to_string(&report.scenario).unwrap_or_default();
    // Writing to a String does not fail.
    let _ = writeln!(
        text,
        "{}: {} hosts, {} bytes, {} Gb/s, MTU {}, seed {}",
        name.trim_matches('"'),
        report.hosts,
        report.bytes,
        report.gigabits_per_second,
        report.mtu,
        report.seed
    );
    let _ = writeln!(
        text,
        "{:<26}{:>9}{:>9}{:>10}{:>12}{:>11}{:>8}{:>9}{:>12}",
        "slowdown against ideal",
        "p50",
        "p99",
        "max",
        "end (us)",
        "packets",
        "again",
        "dropped",
        "unfinished"
    );
    for row in &report.rows {
        text.push_str(&line(row));
    }
    if let Some(cost) = report.failure_cost_us {
        let _ = writeln!(text, "The failure costs {cost:.0} us.");
    }
    text
}

fn line(row: &Row) -> String {
    format!(
        "{:<26}{:>9.3}{:>9.3}{:>10.3}{:>12.1}{:>11}{:>8}{:>9}{:>12}\n",
        row.variant,
        row.p50,
        row.p99,
        row.max,
        row.end_us,
        row.packets,
        row.retransmitted,
        row.dropped + row.swallowed,
        row.unfinished
    )
}
