// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bench compare`: Weft, each MPI's own transport and others, side by side.
//!
//! Called by lib. On a machine that others use, one figure from one run says little. Therefore:
//!
//! - Each benchmark runs in several short rounds, and the transports take turns within a round. A
//!   disturbance then meets neighbouring runs too.
//! - Beside every run a known task shows how fast the machine is at that moment. A run at another
//!   speed is repeated at the end of its round.
//! - The reported figures are medians over the rounds (of each run's median block) with their
//!   spread and confidence.
//!
//! Source of the method: Hoefler and Belli, "Scientific Benchmarking of Parallel Computing
//! Systems", SC 2015. docs/report.md describes all of it for users.
//!
//! In the order of a run:
//! - [`arguments`]: the command line
//! - [`configuration`]: what is compared, and in which benchmark; [`place`]: where its ranks run
//! - [`job_start`]: the testbeds, and the options that start a job there
//! - [`plan`]: which MPIs and transports are here, and every run with its command line;
//!   [`launches`]: how `weft run` starts them
//! - [`environment`] and [`cores`]: the machine, and its speed beside every run
//! - [`measure`]: the rounds; [`mod@run`]: one run: start it, read its rows
//! - [`record`]: everything that was measured; [`journal`]: the file that keeps it from run to run
//! - [`selection`]: which runs count; [`analysis`]: medians, means, confidence; [`ratio`]: one
//!   configuration over another; [`goals`]: which goals are reached; [`thresholds`]: what
//!   must not get worse
//! - [`cpu`]: the processor time that messages cost; [`tails`]: the slowest messages
//! - [`caveats`]: what a reader must know; [`table`] and [`pages`]: for people; [`files`]: for
//!   programs

pub mod analysis;
pub mod arguments;
mod before;
mod builds;
pub mod caveats;
pub mod configuration;
pub mod cores;
pub mod cpu;
pub mod environment;
pub mod files;
pub mod goals;
pub mod job_start;
pub mod journal;
pub mod launches;
pub mod measure;
pub mod pages;
pub mod place;
pub mod plan;
pub mod ratio;
pub mod record;
pub mod run;
pub mod selection;
pub mod table;
pub mod tails;
pub mod thresholds;

use crate::error::Error;
use crate::exit::refuse;
use analysis::Analysis;
use arguments::Settings;
use job_start::Testbeds;
use measure::Interrupt;
use plan::Plan;
use record::Record;
use std::ffi::OsString;
use thresholds::Outcome;
use weft_ranks::{EXIT_FAILED, EXIT_OK, EXIT_USAGE};

/// Exit code after an interruption: 128 and the number of SIGINT, as shells have it.
const EXIT_INTERRUPTED: u8 = 130;

/// Why there is no result.
enum Fault {
    /// Something in the command line or in a file that it names.
    Usage(Error),
    /// Anything else.
    Failed(Error),
}

/// Runs a comparison with the arguments after `compare`; returns the exit code: 1 when nothing
/// could be measured, some run failed or a threshold was crossed; 130 when it was interrupted.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let settings = match arguments::parse(arguments) {
        Ok(settings) => settings,
        Err(error) => return refuse(&error),
    };
    match compare(&settings) {
        Ok(code) => code,
        Err(Fault::Usage(reason)) => {
            eprintln!("weft bench compare: {reason}");
            EXIT_USAGE
        }
        Err(Fault::Failed(reason)) => {
            eprintln!("weft bench compare: {reason}");
            EXIT_FAILED
        }
    }
}

/// Measures and reports; the exit code.
fn compare(settings: &Settings) -> Result<u8, Fault> {
    // What is wrong in a file should be known before an hour of measuring.
    let rules = settings
        .thresholds
        .as_deref()
        .map(thresholds::read)
        .transpose()
        .map_err(Fault::Usage)?;
    let previous = settings
        .previous
        .as_deref()
        .map(journal::read)
        .transpose()
        .map_err(Fault::Usage)?;
    if let Some(rules) = &rules {
        thresholds::check(rules, &Analysis::of(&Record::default()), previous.as_ref())
            .map_err(Fault::Usage)?;
    }
    if settings.dry_run {
        return show_plan(settings);
    }
    let interrupt = Interrupt::catch();
    let (record, trouble) = if settings.render {
        (journal::read(&settings.out).map_err(Fault::Failed)?, None)
    } else {
        measured(settings, &interrupt)?
    };
    let analysis = Analysis::of(&record);
    let outcomes = match &rules {
        Some(rules) => {
            thresholds::check(rules, &analysis, previous.as_ref()).map_err(Fault::Usage)?
        }
        None => Vec::new(),
    };
    if let Some(trouble) = &trouble {
        eprintln!("weft bench compare: {trouble}");
    }
    let files = files::write(settings, &analysis, &outcomes).map_err(Fault::Failed)?;
    show(settings, &analysis, &files);
    let crossed = complain(&record, &outcomes);
    if interrupt.came() {
        eprintln!(
            "weft bench compare: interrupted; what was measured is kept and shown. Go on with \
             --resume"
        );
        return Ok(EXIT_INTERRUPTED);
    }
    Ok(
        if trouble.is_some() || crossed || !record.failures().is_empty() {
            EXIT_FAILED
        } else {
            EXIT_OK
        },
    )
}

/// What could start, laid out; says why the rest could not.
fn planned(settings: &Settings, testbeds: &Testbeds) -> Result<Plan, Fault> {
    let program = match &settings.weft {
        Some(path) => path.clone(),
        None => {
            std::env::current_exe().map_err(|error| Fault::Failed(Error::start("weft")(error)))?
        }
    };
    let plan = Plan::make(settings, &program, testbeds);
    for reason in &plan.matrix.left_out {
        eprintln!("weft bench compare: left out: {reason}");
    }
    if plan.runs.is_empty() {
        let reason = "no MPI and transport could be started; `weft doctor` says what is missing";
        return Err(Fault::Failed(Error::Missing(reason.to_owned())));
    }
    Ok(plan)
}

/// Prints how each run would be started.
fn show_plan(settings: &Settings) -> Result<u8, Fault> {
    let testbeds = Testbeds::up(&settings.testbeds).map_err(Fault::Failed)?;
    let plan = planned(settings, &testbeds)?;
    if settings.json {
        println!("{}", serde_json::json!(plan.matrix));
        return Ok(EXIT_OK);
    }
    for command in &plan.matrix.commands {
        println!("# {}: {}", command.configuration, command.workload);
        println!("{}\n{}", command.command, command.launch);
    }
    Ok(EXIT_OK)
}

/// Plans and measures; what was measured, and what ended it early.
fn measured(settings: &Settings, interrupt: &Interrupt) -> Result<(Record, Option<Error>), Fault> {
    let testbeds = Testbeds::up(&settings.testbeds).map_err(Fault::Failed)?;
    let plan = planned(settings, &testbeds)?;
    let (mut journal, mut record) = if settings.resume {
        journal::Journal::resume(&settings.out, &plan.matrix).map_err(Fault::Failed)?
    } else {
        let environment = environment::of_this_machine();
        let journal = journal::Journal::begin(&settings.out, &environment, &plan.matrix)
            .map_err(Fault::Failed)?;
        let record = Record {
            environment,
            matrix: plan.matrix.clone(),
            turns: Vec::new(),
        };
        (journal, record)
    };
    let trouble = measure::all(&plan, &mut journal, &mut record, interrupt).err();
    Ok((record, trouble))
}

fn show(settings: &Settings, analysis: &Analysis<'_>, files: &files::Files) {
    if settings.json {
        println!("{}", files.summary_text);
        return;
    }
    print!("{}", table::all(analysis));
    println!("Page:      {}", files.page.display());
    println!("Every run: {}", files.runs.display());
    println!(
        "Summary:   {}, {}, {}",
        files.summary.display(),
        files.csv.display(),
        files.junit.display()
    );
    println!("{}", files.plot.display());
}

/// Says what failed and what got worse; whether a threshold was crossed.
fn complain(record: &Record, outcomes: &[Outcome]) -> bool {
    for failure in record.failures() {
        eprintln!("weft bench compare: failed: {failure}");
    }
    let crossed: Vec<&String> = outcomes
        .iter()
        .flat_map(|outcome| &outcome.crossed)
        .collect();
    for sentence in &crossed {
        eprintln!("weft bench compare: worse than allowed: {sentence}");
    }
    if !outcomes.is_empty() && crossed.is_empty() {
        let checked: usize = outcomes.iter().map(|outcome| outcome.checked).sum();
        eprintln!(
            "weft bench compare: {} thresholds hold, over {checked} figures",
            outcomes.len()
        );
    }
    !crossed.is_empty()
}
