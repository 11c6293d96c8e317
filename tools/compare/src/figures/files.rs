// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IOR by processes: `weft bench ior` with the published options and smaller files, in a folder of
//! the user's choice.
//!
//! Called by figures; starts `weft run -- weft bench ior`, several times with each number of
//! processes, in turn.

use super::definition::Definition;
use super::measured::order;
use super::printed;
use super::settings::Settings;
use crate::error::Error;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use weft_chart::axis::Scale;
use weft_chart::figure::{Axis, Figure, Point, Role, Series, Shape};
use weft_statistics::Summary;

/// Processes (chosen: up to more than common desktops have cores; past the cores, they wait for the
/// disk in turn).
const PROCESSES: [usize; 4] = [1, 2, 4, 8];
/// Rounds, and for a quick look.
const ROUNDS: usize = 5;
const QUICK_ROUNDS: usize = 2;
/// Bytes of each process, as -b takes them, and for a quick look.
const BLOCK: &str = "64m";
const QUICK_BLOCK: &str = "4m";
/// Bytes of one transfer, the published 50 MB within the smaller files.
const TRANSFER: &str = "4m";

/// MiB/s of all processes together: writing, reading.
type Speeds = [f64; 2];

/// Measures and fills it.
///
/// # Errors
/// What a run said when it failed.
pub fn figure(settings: &Settings, definition: &Definition, weft: &Path) -> Result<Figure, Error> {
    let folder = settings.files.as_deref().unwrap_or(&settings.out);
    let place = tempfile::Builder::new()
        .prefix("weft-ior-")
        .tempdir_in(folder)
        .map_err(Error::file_with(
            "make a folder in",
            folder,
            "; --files names where",
        ))?;
    // Some file systems know no O_DIRECT; the page says which way it went.
    let run = |processes, direct| one(weft, &words(settings, processes, direct), place.path());
    let direct = run(1, true).is_ok();
    let rounds = if settings.quick { QUICK_ROUNDS } else { ROUNDS };
    let mut columns = vec![Vec::<Speeds>::new(); PROCESSES.len()];
    for round in 0..rounds {
        for which in order(PROCESSES.len(), round) {
            columns[which].push(run(PROCESSES[which], direct)?);
        }
    }
    let command = words(settings, PROCESSES[0], direct).join(" ");
    Ok(Figure {
        commands: vec![format!(
            "cd FOLDER; weft {command}    with -n {PROCESSES:?}"
        )],
        ..filled(definition, &columns, direct)
    })
}

fn words(settings: &Settings, processes: usize, direct: bool) -> Vec<String> {
    let block = if settings.quick { QUICK_BLOCK } else { BLOCK };
    let line = format!(
        "run --mpi {} -n {processes} --quiet --timeout {} -- WEFT bench ior -r -w -F -o=S@S@S \
        -b={block} -i=1 -t={TRANSFER} -a=POSIX -O summaryFormat=JSON",
        settings.mpi, settings.timeout
    );
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    if direct {
        words.push("--posix.odirect".into());
    }
    words
}

fn one(weft: &Path, words: &[String], place: &Path) -> Result<Speeds, Error> {
    let mut command = Command::new(weft);
    for word in words {
        if word == "WEFT" {
            command.arg(weft);
        } else {
            command.arg(word);
        }
    }
    speeds(&printed::by(command.current_dir(place))?)
}

fn speeds(text: &str) -> Result<Speeds, Error> {
    // Some MPIs greet before.
    let json = text.find('{').map_or(text, |at| &text[at..]);
    let document: Value =
        serde_json::from_str(json.trim()).map_err(Error::printed("weft bench ior"))?;
    let most = &document["tests"][0]["max"];
    let number = |key: &str| {
        most[key]
            .as_f64()
            .ok_or_else(|| Error::Result(format!("weft bench ior reported no {key}")))
    };
    Ok([number("writeMiB")?, number("readMiB")?])
}

fn filled(definition: &Definition, columns: &[Vec<Speeds>], direct: bool) -> Figure {
    let series = |name: &str, which: usize, role| {
        let point = |(processes, runs): (&usize, &Vec<Speeds>)| {
            let values: Vec<f64> = runs.iter().map(|speeds| speeds[which]).collect();
            let summary = Summary::of(&values)?;
            Some(Point {
                x: *processes as f64,
                y: summary.median,
                low: summary.p10,
                high: summary.p90,
            })
        };
        Series {
            name: name.into(),
            role,
            points: PROCESSES.iter().zip(columns).filter_map(point).collect(),
        }
    };
    let cache = if direct {
        "past the page cache"
    } else {
        "through the page cache, since this file system knows no O_DIRECT"
    };
    Figure {
        id: definition.id.into(),
        title: definition.title.into(),
        note: format!(
            "A file for each process, {cache}; {} rounds in turn; the band is the tenth to the \
            ninetieth percentile.",
            columns[0].len()
        ),
        shape: Shape::Curves,
        x: Axis::new("processes", "", Scale::Linear),
        y: Axis::new("bandwidth of all together", "MiB/s", Scale::Linear),
        series: vec![
            series("write", 0, Role::Ours),
            series("read", 1, Role::Peer),
        ],
        source: definition.source.into(),
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::DEFINITIONS;
    use super::*;

    #[test]
    fn points_are_medians_by_processes() {
        let text = r#"hello {"tests":[{"max":{"writeMiB":10.0,"readMiB":20.0}}]}"#;
        assert_eq!(speeds(text).expect("both"), [10.0, 20.0]);
        assert!(speeds("{}").unwrap_err().to_string().contains("writeMiB"));
        let columns = vec![vec![[1.0, 2.0], [3.0, 4.0], [2.0, 9.0]]; 4];
        let figure = filled(&DEFINITIONS[4], &columns, true);
        assert_eq!(figure.series[0].points[3].x, 8.0);
        assert_eq!(
            (figure.series[0].points[0].y, figure.series[1].points[0].y),
            (2.0, 4.0)
        );
    }
}
