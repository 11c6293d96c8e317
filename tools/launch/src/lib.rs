// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft run`: starts an unmodified MPI program on this machine with the MPI that it was built for, with its messages carried by Weft (or,
//! to compare, by the MPI's own shared memory, by TCP or by another libfabric provider), and says at the end what went through Weft.
//!
//! Every MPI wants to be told in its own way to use a libfabric provider for messages inside a machine, most of them fall back silently to
//! something else when they are told wrongly, and none says afterwards what it used. This crate knows those ways, refuses combinations that
//! cannot work with a sentence that says why, and reads the providers' own counts at the end.
//!
//! A run, in the order of the modules:
//!
//! - `arguments`: what the user wrote; `fault`: every reason not to start, with its exit code.
//! - `program`: the file, and how it comes to its MPI: `linkage` walks its libraries as the loader would (`elf` reads the files, `loader`
//!   knows the order of search), `python` asks an interpreter for its mpi4py.
//! - `discover`: the MPIs of this machine, told apart by `family`.
//! - `choose`: the one that runs this program. `provider`: where libweft-fi.so is. `cores`: how many ranks find a core.
//! - `transport`: launcher arguments and environment, one file per family.
//! - `command`: the whole command line, run or printed (`--dry-run`).
//! - `report`: a socket for what the ranks' providers have to say.
//! - `supervise`: the launcher from start to end, with `signals` passed on and the time limit kept.
//! - `outcome`: the exit code, the summary, the record for `--json`.
//!
//! The doctor and `weft info` use `discover`, `provider`, `elf` and `cores` too, so that they see what a run would see.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod choose;
pub mod command;
pub mod cores;
pub mod discover;
pub mod elf;
pub mod family;
pub mod fault;
pub mod linkage;
pub mod loader;
pub mod outcome;
pub mod program;
pub mod provider;
pub mod python;
pub mod report;
pub mod signals;
pub mod supervise;
pub mod transport;

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use clap::Parser;

use arguments::{Arguments, MpiChoice};
use choose::Chosen;
use command::{Launch, Request};
use discover::{Candidate, Surroundings};
use fault::Fault;
use loader::Loader;
use outcome::{Record, Usage};
use program::{Binding, Program};
use report::{Collector, Summary};
use supervise::Ending;
use transport::{Shape, Transport};

/// Runs `weft run` with the words that follow it and returns the exit code.
///
/// Blocks until the job has ended. Changes the process: it takes signals and adopts orphans, so call it once, from `main`.
#[must_use]
pub fn run(arguments: Vec<OsString>) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    match prepare(&arguments).and_then(|plan| execute(&arguments, &plan)) {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("weft run: {fault}");
            fault.exit_code()
        }
    }
}

/// Everything that is decided before the job starts.
struct Plan {
    chosen: Chosen,
    launch: Launch,
    shape: Shape,
}

fn prepare(arguments: &Arguments) -> Result<Plan, Fault> {
    arguments.time_limit()?;
    let cores = cores::allowed().usable_count;
    let ranks = arguments.rank_count(cores)?;
    let bound = arguments.bound(ranks, cores)?;
    let (name, rest) = arguments
        .program
        .split_first()
        .ok_or_else(|| Fault::Usage("no program was named".into()))?;
    let (library_path, path) = (
        std::env::var_os("LD_LIBRARY_PATH"),
        std::env::var_os("PATH"),
    );
    let loader = Loader::of_this_machine(library_path.as_deref());
    let program = program::inspect(name, path.as_deref(), &loader)?;

    let here = discover::installations(&candidates(arguments, &program));
    let chosen = choose::choose(
        &arguments.mpi,
        &program,
        &here,
        arguments.transport.provider().is_some(),
    )?;
    let provider_folder = match arguments.transport {
        Transport::Weft => Some(provider::find_for_this_process()?),
        _ => None,
    };
    let root = nix::unistd::geteuid().is_root();
    let shape = Shape {
        ranks,
        cores,
        bound,
        label: arguments.label,
        root,
        provider_folder,
    };
    let settings = transport::settings(&chosen.installation, &arguments.transport, &shape)?;
    let request = Request {
        program: &program,
        arguments: rest,
        ranks,
        variables: &arguments.variables,
        library_path: library_path.as_deref(),
    };
    let launch = Launch::compose(&chosen.installation, settings, &request)?;
    Ok(Plan {
        chosen,
        launch,
        shape,
    })
}

/// The places to look in: the launcher that was named, the one beside the program's own libmpi, and the usual ones.
fn candidates(arguments: &Arguments, program: &Program) -> Vec<Candidate> {
    let mut list = Vec::new();
    if let MpiChoice::Path(path) = &arguments.mpi {
        list.push(Candidate {
            mpiexec: path.clone(),
            origin: "--mpi".into(),
        });
    }
    list.extend(Surroundings::of_this_process().candidates());
    let natural = match &program.binding {
        Binding::Linked(need) => need
            .path
            .as_deref()
            .and_then(Path::parent)
            .and_then(Path::parent)
            .map(Path::to_owned),
        Binding::Python { prefix } => Some(prefix.clone()),
        Binding::AtRunTime | Binding::None(_) => None,
    };
    list.extend(natural.map(|prefix| Candidate {
        mpiexec: prefix.join("bin/mpiexec"),
        origin: "the program's own MPI".into(),
    }));
    list
}

fn execute(arguments: &Arguments, plan: &Plan) -> Result<u8, Fault> {
    if arguments.dry_run {
        let mut line = plan
            .launch
            .shell_line(|name| std::env::var_os(name).is_some());
        line.push("\n");
        std::io::stdout()
            .write_all(line.as_bytes())
            .map_err(Fault::system("writing to standard output"))?;
        return Ok(0);
    }
    let mut record_file = match &arguments.json {
        Some(path) => Some(File::create(path).map_err(Fault::system(format!(
            "--json {} cannot be written",
            path.display()
        )))?),
        None => None,
    };
    announce(arguments, plan);
    let mut command = plan.launch.command();
    let collector = if arguments.transport == Transport::Weft {
        let collector = Collector::start()
            .map_err(Fault::system("opening the socket for the ranks' reports"))?;
        command.env(report::VARIABLE, collector.name());
        Some(collector)
    } else {
        None
    };
    let ending = supervise::run(command, arguments.time_limit()?).map_err(Fault::system(
        format!("starting {}", plan.launch.mpiexec.display()),
    ))?;
    let (reports, unreadable) = match collector {
        Some(collector) => collector
            .finish()
            .map_err(Fault::system("collecting the ranks' reports"))?,
        None => (Vec::new(), 0),
    };
    let summary = Summary::of(&reports, unreadable);
    let usage = Usage::of(&arguments.transport, plan.shape.ranks, &summary);
    let exit_code = outcome::exit_code(&ending, usage, arguments.require_weft);
    conclude(arguments, plan, &summary, usage, &ending);
    if let Some(file) = &mut record_file {
        let text = |value: &OsString| value.to_string_lossy().into_owned();
        let record = Record {
            command: outcome::command_words(&plan.launch),
            environment: plan
                .launch
                .set
                .iter()
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
            mpi: &plan.chosen.installation,
            transport: arguments.transport.to_string(),
            ranks: plan.shape.ranks,
            bound: plan.shape.bound,
            exit_code,
            signal: ending.signal,
            timed_out: ending.timed_out,
            elapsed_seconds: ending.elapsed.as_secs_f64(),
            weft: usage,
            summary: &summary,
            reports: &reports,
        };
        outcome::write_record(file, &record).map_err(Fault::system("writing the --json record"))?;
    }
    Ok(exit_code)
}

/// One line before the start: what runs, with which MPI, over what, and bound or not.
fn announce(arguments: &Arguments, plan: &Plan) {
    if arguments.quiet {
        return;
    }
    let Shape { ranks, cores, .. } = plan.shape;
    let plural = |count: u32, word: &str| {
        if count == 1 {
            format!("1 {word}")
        } else {
            format!("{count} {word}s")
        }
    };
    let binding = if plan.shape.bound {
        "each bound to a core".to_owned()
    } else if plan.shape.crowded() {
        format!("not bound, as they share {}", plural(cores, "core"))
    } else {
        "not bound".to_owned()
    };
    eprintln!(
        "weft: {}, {binding}; {}; transport {}",
        plural(ranks, "rank"),
        plan.chosen.installation.describe(),
        arguments.transport
    );
    if let Some(note) = &plan.chosen.note {
        eprintln!("weft: note: {note}");
    }
}

/// What went through Weft, and warnings; warnings come even with --quiet.
fn conclude(arguments: &Arguments, plan: &Plan, summary: &Summary, usage: Usage, ending: &Ending) {
    let ranks = plan.shape.ranks;
    if ending.timed_out {
        eprintln!(
            "weft: the job was ended after {} seconds (--timeout)",
            arguments.timeout.unwrap_or_default()
        );
    }
    if !arguments.quiet && summary.processes > 0 {
        eprintln!("weft: {}", summary.line(ranks));
    }
    if let Some(warning) = outcome::warning(usage, summary, ranks, outcome::ended_well(ending)) {
        eprintln!("weft: warning: {warning}");
    }
}
