// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A figure from a scenario of `weft sim`.
//!
//! Called by figures; starts `weft sim --json` and draws as bars when the last message arrived.

use super::definition::{Definition, Simulated};
use super::printed;
use crate::error::Error;
use serde::Deserialize;
use std::path::Path;
use std::process::Command;
use weft_chart::axis::Scale;
use weft_chart::figure::{Axis, Figure, Point, Role, Series, Shape};

/// What is read of its JSON.
#[derive(Deserialize)]
struct Report {
    hosts: usize,
    bytes: u64,
    gigabits_per_second: u64,
    rows: Vec<Row>,
}

/// A transport in the scenario.
#[derive(Deserialize)]
struct Row {
    variant: String,
    end_us: f64,
    unfinished: u64,
}

/// Simulates and fills it.
///
/// # Errors
/// Why the simulation failed.
pub fn figure(
    definition: &Definition,
    simulated: &Simulated,
    quick: bool,
    weft: &Path,
) -> Result<Figure, Error> {
    let mut words = vec!["sim"];
    words.extend(simulated.0);
    words.push("--json");
    if quick {
        words.extend(["--hosts", "33", "--bytes", "200000"]);
    }
    let json = printed::by(Command::new(weft).args(&words));
    let json = json.map_err(|error| error.about("weft sim"))?;
    let report: Report = serde_json::from_str(&json).map_err(Error::printed("weft sim"))?;
    Ok(Figure {
        commands: vec![format!("weft {}", words.join(" "))],
        ..filled(definition, &report)
    })
}

fn filled(definition: &Definition, report: &Report) -> Figure {
    let series = |row: &Row| Series {
        name: if row.unfinished == 0 {
            row.variant.clone()
        } else {
            format!("{}, {} unfinished", row.variant, row.unfinished)
        },
        role: if row.variant.starts_with("weft") {
            Role::Ours
        } else {
            Role::Peer
        },
        points: vec![Point::plain(0.0, row.end_us)],
    };
    Figure {
        id: definition.id.into(),
        title: definition.title.into(),
        note: format!(
            "Simulated: {} hosts, messages of {} bytes, links of {} Gb/s. When the last message \
            was there; less is better.",
            report.hosts, report.bytes, report.gigabits_per_second
        ),
        shape: Shape::Bars,
        x: Axis::new("last message there", "us", Scale::Linear),
        series: report.rows.iter().map(series).collect(),
        source: definition.source.into(),
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::DEFINITIONS;
    use super::*;

    #[test]
    fn each_variant_is_a_bar_and_what_is_unfinished_says_so() {
        let text = r#"{"hosts":9,"bytes":100,"gigabits_per_second":100,"rows":[
            {"variant":"weft, 64 paths","end_us":10.0,"unfinished":0},
            {"variant":"TCP-like","end_us":90.5,"unfinished":2}]}"#;
        let report: Report = serde_json::from_str(text).expect("JSON");
        let figure = filled(&DEFINITIONS[8], &report);
        assert_eq!(figure.series[1].points[0].y, 90.5);
        assert_eq!(figure.series[1].name, "TCP-like, 2 unfinished");
    }
}
