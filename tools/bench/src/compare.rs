// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bench compare`: Weft, each MPI's own transport and TCP, side by side on this machine.
//!
//! Called by lib. One figure from one run says little on a machine that others use, so each benchmark runs in several short
//! rounds, and the transports take turns within a round: what disturbs one disturbs its neighbours as well. Reported are
//! medians over the rounds (of each run's median block) with the tenth and ninetieth percentile. Source of the method: Hoefler and Belli, "Scientific
//! Benchmarking of Parallel Computing Systems", SC 2015.
//!
//! In the order of a run:
//! - [`arguments`]: the command line
//! - [`plan`]: which MPIs and transports are here, and every run with its command line
//! - [`leg`]: one run: start it, read its rows
//! - [`record`]: all measurements, and their medians
//! - [`environment`]: the machine that they belong to
//! - [`table`], [`plot`], [`page`]: for people; [`files`]: for programs

pub mod arguments;
pub mod environment;
pub mod files;
pub mod leg;
pub mod page;
pub mod plan;
pub mod plot;
pub mod record;
pub mod table;

use crate::{EXIT_FAILED, EXIT_OK, EXIT_USAGE};
use arguments::Settings;
use indicatif::{ProgressBar, ProgressStyle};
use plan::Plan;
use record::Record;
use std::ffi::OsString;

/// Runs a comparison with the arguments after `compare`; returns the exit code: 1 when nothing could be measured or some run
/// failed.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let settings = match arguments::parse(arguments) {
        Ok(settings) => settings,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                EXIT_USAGE
            } else {
                EXIT_OK
            };
        }
    };
    match compare(&settings) {
        Ok(complete) if complete => EXIT_OK,
        Ok(_) => EXIT_FAILED,
        Err(reason) => {
            eprintln!("weft bench compare: {reason}");
            EXIT_FAILED
        }
    }
}

/// Measures and reports; whether every run worked.
fn compare(settings: &Settings) -> Result<bool, String> {
    let program = match &settings.weft {
        Some(path) => path.clone(),
        None => std::env::current_exe()
            .map_err(|error| format!("cannot find its own executable: {error}"))?,
    };
    let plan = Plan::make(settings, &program);
    for reason in &plan.left_out {
        eprintln!("weft bench compare: left out: {reason}");
    }
    if plan.contenders.is_empty() {
        return Err(
            "no MPI and transport could be started; `weft doctor` says what is missing".to_owned(),
        );
    }
    let environment = environment::of_this_machine();
    let record = measure(&plan, settings);
    let files = files::write(settings, &plan, &environment, &record)?;
    if settings.json {
        println!("{}", files.summary_text);
    } else {
        print!("{}", table::all(&plan, &record));
    }
    for failure in record.failures() {
        eprintln!("weft bench compare: failed: {failure}");
    }
    if !settings.json {
        println!("Every run: {}", files.runs.display());
        println!("Summary:   {}", files.summary.display());
        println!("Page:      {}", files.page.display());
        println!("{}", files.plot.display());
    }
    Ok(record.failures().is_empty())
}

/// Runs all rounds.
fn measure(plan: &Plan, settings: &Settings) -> Record {
    let mut record = Record::default();
    let steps = plan.legs.len() * settings.rounds;
    let bar = ProgressBar::new(steps as u64);
    let form = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({eta} left)");
    bar.set_style(form.unwrap_or_else(|_| ProgressStyle::default_bar()));
    for round in 0..settings.rounds {
        if bar.is_hidden() {
            // Without a terminal there is no bar; a log should still show that it moves.
            eprintln!(
                "weft bench compare: round {} of {}, {} runs",
                round + 1,
                settings.rounds,
                plan.legs.len()
            );
        }
        for leg in plan.legs_of_round(round) {
            if record.gave_up_on(leg) {
                bar.inc(1);
                continue;
            }
            bar.set_message(format!("round {} of {}: {leg}", round + 1, settings.rounds));
            match leg::run(leg) {
                Ok(outcome) => record.add(leg, round, outcome),
                Err(reason) => record.add_failure(leg, round, reason),
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    record
}
