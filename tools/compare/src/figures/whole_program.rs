// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A figure from a whole program with two settings of the provider, in turn: bars of the figure
//! that the program itself reports.
//!
//! Called by figures; starts `weft bench app --json`, which prepares the input once, runs the turns
//! and checks that the results agree.

use super::definition::{Definition, Variant, Whole};
use super::printed;
use super::settings::Settings;
use crate::error::Error;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use weft_chart::axis::Scale;
use weft_chart::figure::{Axis, Figure, Point, Ratio, Role, Series, Shape};
use weft_statistics::Summary;
use weft_statistics::interval;

/// Runs with each setting, and for a quick look (chosen: six carry a confidence of 95 %).
const ROUNDS: &str = "7";
const QUICK_ROUNDS: &str = "2";

/// Runs it and fills it.
///
/// # Errors
/// What the program said: it is not installed, a run failed, results differ.
pub fn figure(
    settings: &Settings,
    definition: &Definition,
    whole: &Whole,
    weft: &Path,
) -> Result<Figure, Error> {
    let words = words(settings, whole);
    let rows = parse(&printed::by(Command::new(weft).args(&words))?)?;
    let figure = filled(definition, whole, &rows)?;
    let command = words.iter().map(|word| quoted(word)).collect::<Vec<_>>();
    Ok(Figure {
        commands: vec![format!("weft {}", command.join(" "))],
        ..figure
    })
}

fn words(settings: &Settings, whole: &Whole) -> Vec<String> {
    let rounds = if settings.quick { QUICK_ROUNDS } else { ROUNDS };
    let mut words: Vec<String> = ["bench", "app", whole.program, "--json", "--rounds", rounds]
        .map(str::to_owned)
        .to_vec();
    if !whole.case.is_empty() {
        words.extend(["--case", whole.case].map(str::to_owned));
    }
    // The programs are Debian's, and `auto` would not be their MPI.
    if settings.mpi != "auto" {
        words.extend(["--mpi".to_owned(), settings.mpi.clone()]);
    }
    if settings.quick {
        words.push("--quick".to_owned());
    }
    words.extend(["--timeout".to_owned(), settings.timeout.to_string()]);
    for Variant {
        name, environment, ..
    } in whole.variants
    {
        words.push("--variant".to_owned());
        words.push(format!("{name}:{}", environment.join(",")));
    }
    words
}

fn quoted(word: &str) -> String {
    if word.contains(' ') {
        format!("'{word}'")
    } else {
        word.to_owned()
    }
}

fn parse(text: &str) -> Result<Vec<Value>, Error> {
    let rows: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    rows.map_err(Error::printed("weft bench app"))
}

/// The values of a variant, round by round.
fn column(rows: &[Value], unit: &str, name: &str) -> Vec<Option<f64>> {
    let row = rows
        .iter()
        .find(|row| row["unit"] == unit && row["transport"] == name);
    let values = row.and_then(|row| row["values"].as_array());
    values.map_or(Vec::new(), |values| {
        values.iter().map(Value::as_f64).collect()
    })
}

pub(super) fn filled(
    definition: &Definition,
    whole: &Whole,
    rows: &[Value],
) -> Result<Figure, Error> {
    let header = rows.first();
    let header = header.ok_or_else(|| Error::result("weft bench app printed nothing"))?;
    let column = |name: &str| column(rows, whole.unit, name);
    let mut series = Vec::new();
    for (at, variant) in whole.variants.iter().enumerate() {
        let values: Vec<f64> = column(variant.name).into_iter().flatten().collect();
        let summary = Summary::of(&values)
            .ok_or_else(|| Error::Result(format!("no {} was reported", whole.unit)))
            .map_err(|error| error.about(variant.name))?;
        series.push(Series {
            name: variant.name.into(),
            role: if at == 0 { Role::Ours } else { Role::Peer },
            points: vec![Point {
                x: 0.0,
                y: summary.median,
                low: summary.p10,
                high: summary.p90,
            }],
        });
    }
    let ratio = interval::of_ratio(
        &column(whole.variants[0].name),
        &column(whole.variants[1].name),
    );
    let ratio = ratio.map(|ratio| Point {
        x: 0.0,
        y: ratio.value,
        low: ratio.low,
        high: ratio.high,
    });
    let agree = if header["agree"] == true {
        "The results agree."
    } else {
        "The results differ."
    };
    Ok(Figure {
        id: definition.id.into(),
        title: definition.title.into(),
        note: format!(
            "{}; {} ranks, {} rounds in turn; medians, tenth and ninetieth percentile. {agree}",
            header["title"].as_str().unwrap_or_default(),
            header["ranks"],
            header["rounds"]
        ),
        shape: Shape::Bars,
        x: Axis::new("speed", whole.unit, Scale::Linear),
        series,
        // Bars have no panel of ratios: it is kept for the claims.
        ratio: Some(Ratio {
            series: vec![Series {
                role: Role::Faint,
                points: ratio.into_iter().collect(),
                ..Series::default()
            }],
            ..Ratio::default()
        }),
        source: definition.source.into(),
        ..Figure::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::claim::{self, Here};
    use super::super::definition::Subject;
    use super::super::list::DEFINITIONS;
    use super::*;

    #[test]
    fn bars_are_medians_and_the_ratio_is_paired_by_round() {
        let definition = DEFINITIONS
            .iter()
            .find(|definition| definition.id == "shared-memory-gromacs")
            .expect("there");
        let Subject::Whole(whole) = &definition.subject else {
            panic!("it is a whole program");
        };
        let text = r#"{"type":"header","title":"GROMACS","ranks":2,"rounds":3,"agree":true}
{"type":"figure","unit":"ns/day","transport":"shared memory","values":[4.0,8.0,6.0]}
{"type":"figure","unit":"ns/day","transport":"network path","values":[2.0,2.0,3.0]}"#;
        let figure = filled(definition, whole, &parse(text).expect("JSON")).expect("both ran");
        assert_eq!(
            (figure.series[0].points[0].y, figure.series[1].points[0].y),
            (6.0, 2.0)
        );
        assert!(
            claim::here(&Here::Bars, &figure)
                .expect("ratio")
                .starts_with("2.00")
        );
        let lost = text.lines().take(2).collect::<Vec<_>>().join("\n");
        let reason =
            filled(definition, whole, &parse(&lost).expect("JSON")).expect_err("one is missing");
        assert!(reason.to_string().contains("network path"), "{reason}");
    }
}
