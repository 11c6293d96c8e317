// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A figure from a kernel of the NAS Parallel Benchmarks with several settings, in turn: bars of
//! its rate.
//!
//! Called by figures; starts runs through compare's run, each of which repeats the kernel in one
//! job, and leaves the bars to whole_program.

use super::definition::{Definition, Variant, Whole};
use super::settings::Settings;
use super::{measured, whole_program};
use crate::compare::configuration::{Configuration, Run, Workload};
use crate::compare::place::Place;
use crate::compare::run;
use crate::error::Error;
use serde_json::json;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use weft_chart::figure::Figure;
use weft_statistics::Summary;

/// Jobs with each setting, and for a quick look (chosen: six carry a confidence of 95 %).
const ROUNDS: usize = 7;
const QUICK_ROUNDS: usize = 2;
/// Runs in one job, whose median counts (chosen: the first of a job also takes its memory).
const REPEATS: &str = "3";
/// Added to the limit that `weft run` keeps, for the case that it does not.
const SPARE: Duration = Duration::from_secs(30);

/// Runs it and fills it. The case of `kernel` is its class; a quick look takes the smallest.
///
/// # Errors
/// Why a setting has no figures: a run failed, or its results were not the published ones.
pub fn figure(
    settings: &Settings,
    definition: &Definition,
    kernel: &Whole,
    weft: &Path,
) -> Result<Figure, Error> {
    let (rounds, class) = if settings.quick {
        (QUICK_ROUNDS, "S")
    } else {
        (ROUNDS, kernel.case)
    };
    let run = |variant| run_of(settings, kernel.program, class, variant, weft);
    let runs: Vec<Run> = kernel.variants.iter().map(run).collect();
    let mut columns = vec![Vec::new(); runs.len()];
    for round in 0..rounds {
        for which in measured::order(runs.len(), round) {
            let outcome =
                run::run(&runs[which]).map_err(|error| error.about(kernel.variants[which].name))?;
            let rates: Vec<f64> = outcome.rows.iter().map(|row| row.median).collect();
            columns[which].push(Summary::of(&rates).map(|summary| summary.median));
        }
    }
    // A run whose results were not the published ones has failed.
    let title = format!("NPB {}, class {class}", kernel.program.to_ascii_uppercase());
    let mut rows = vec![json!({"title": title, "ranks": 2, "rounds": rounds, "agree": true})];
    let bars = kernel.variants.iter().zip(&columns);
    rows.extend(bars.map(|(variant, values)| {
        json!({"unit": kernel.unit, "transport": variant.name, "values": values})
    }));
    let words = |run: &Run| {
        let words = run.command.iter().map(|word| word.to_string_lossy());
        words.collect::<Vec<_>>().join(" ")
    };
    Ok(Figure {
        commands: runs.iter().map(words).collect(),
        ..whole_program::filled(definition, kernel, &rows)?
    })
}

fn run_of(settings: &Settings, program: &str, class: &str, variant: &Variant, weft: &Path) -> Run {
    let seconds = settings.timeout.to_string();
    let mut command: Vec<OsString> = vec![weft.into(), "run".into()];
    let options = ["--mpi", &settings.mpi, "--transport", variant.transport];
    command.extend(options.map(OsString::from));
    command.extend(["-n", "2", "--quiet", "--timeout", &seconds].map(OsString::from));
    for setting in variant.environment {
        command.extend(["--env", setting].map(OsString::from));
    }
    command.extend(["--".into(), weft.into()]);
    let kernel = [
        "bench", program, "--json", "--class", class, "--repeat", REPEATS,
    ];
    command.extend(kernel.map(OsString::from));
    Run {
        configuration: Configuration {
            mpi: settings.mpi.clone(),
            transport: variant.transport.into(),
        },
        workload: Workload {
            benchmark: program.into(),
            ranks: 2,
            place: Place::default(),
        },
        command,
        limit: Duration::from_secs(settings.timeout) + SPARE,
    }
}

#[cfg(test)]
mod tests {
    use super::super::definition::Subject;
    use super::super::list::DEFINITIONS;
    use super::*;

    #[test]
    fn kernels_run_with_their_class_and_each_settings_variables() {
        let definition = DEFINITIONS
            .iter()
            .find(|definition| definition.id == "cma-ft")
            .expect("there");
        let Subject::Kernel(kernel) = &definition.subject else {
            panic!("it is a kernel");
        };
        use clap::Parser;
        let settings =
            Settings::try_parse_from(["x", "--out", "/tmp", "--mpi", "mpich"]).expect("good");
        let run = run_of(
            &settings,
            kernel.program,
            "A",
            &kernel.variants[0],
            Path::new("weft"),
        );
        let words: Vec<_> = run
            .command
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        let line = words.join(" ");
        assert!(line.contains("--env FI_WEFT_SINGLE_COPY=always"), "{line}");
        assert!(
            line.ends_with("-- weft bench ft --json --class A --repeat 3"),
            "{line}"
        );
        assert_eq!(kernel.variants.last().expect("three").transport, "native");
    }
}
