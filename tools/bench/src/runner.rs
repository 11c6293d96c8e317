// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One benchmark from the command line to the exit code.
//!
//! Called by lib; calls options, weft-mpi, the benchmark for each size and format. Every rank runs the same steps; rank 0 prints.

use crate::catalogue::{Description, Ranks};
use crate::format::{self, Job, Row};
use crate::options::{self, Refusal, Settings};
use crate::timing::Plan;
use crate::{EXIT_FAILED, EXIT_OK, EXIT_USAGE};
use std::ffi::OsString;
use std::io::Write;
use weft_mpi::{Communicator, Result, Session};

/// One benchmark, with its memory.
pub trait Benchmark {
    /// Measures one size on all ranks. Rank 0's row is the one that counts, except for `passed`, on which all agree.
    ///
    /// # Errors
    /// What MPI reports.
    fn measure(&mut self, size_bytes: usize, plan: &Plan) -> Result<Row>;
}

/// Variables in which launchers tell a process its rank, before MPI is initialised.
const RANK_VARIABLES: [&str; 4] = [
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
    "SLURM_PROCID",
];

/// Runs a benchmark with the arguments after its name; returns the exit code.
pub fn run(description: &'static Description, arguments: Vec<OsString>) -> u8 {
    let settings = match options::parse(description, arguments) {
        Ok(settings) => settings,
        Err(refusal) => return refuse(refusal),
    };
    let session = match Session::init() {
        Ok(session) => session,
        Err(error) => {
            eprintln!("weft bench {}: {error}", description.name);
            return EXIT_FAILED;
        }
    };
    match measure_all(&session, description, &settings) {
        Ok(code) => finish(session, description, code),
        Err(error) => {
            eprintln!("weft bench {}: {error}", description.name);
            session.abort(EXIT_FAILED.into())
        }
    }
}

fn refuse(refusal: Refusal) -> u8 {
    let speaks = is_first_rank();
    match refusal {
        Refusal::Answer(text) => {
            if speaks {
                print!("{text}");
            }
            EXIT_OK
        }
        Refusal::BadUsage(text) => {
            if speaks {
                eprint!("{text}");
            }
            EXIT_USAGE
        }
    }
}

fn is_first_rank() -> bool {
    RANK_VARIABLES
        .iter()
        .find_map(std::env::var_os)
        .is_none_or(|rank| rank == "0")
}

fn finish(session: Session, description: &Description, code: u8) -> u8 {
    match session.finalize() {
        Ok(()) => code,
        Err(error) => {
            eprintln!("weft bench {}: {error}", description.name);
            EXIT_FAILED
        }
    }
}

fn measure_all(session: &Session, description: &Description, settings: &Settings) -> Result<u8> {
    let world = session.world()?;
    let first = world.rank() == 0;
    if let Some(reason) = misfit(description, settings, world.size()) {
        if first {
            eprintln!("weft bench {}: {reason}", description.name);
        }
        if world.size() == 1 {
            let library = session.library().path().display();
            eprintln!(
                "The MPI is {library}. If the launcher belongs to another one, name that one's with WEFT_MPI_LIBRARY."
            );
        }
        return Ok(EXIT_USAGE);
    }
    let sizes = sizes_within_memory(description, settings, &world);
    let mut benchmark = (description.make)(&world, settings)?;
    if first {
        for warning in &settings.warnings {
            eprintln!("weft bench {}: {warning}", description.name);
        }
        print(&format::header(
            description,
            settings,
            &job(session, &world, settings),
        ));
    }
    let mut all_passed = true;
    for size_bytes in sizes {
        let (iterations, warmup) = settings.repeats(description, size_bytes);
        let plan = Plan {
            iterations,
            warmup,
            validation_warmup: settings.validation_warmup,
            validate: settings.shown.validate,
            single: settings.shown.full || !settings.shown.tails.is_empty(),
        };
        let row = benchmark.measure(size_bytes, &plan)?;
        all_passed &= row.passed != Some(false);
        if first {
            print(&format::row(description, &settings.shown, &row));
        }
    }
    Ok(if all_passed { EXIT_OK } else { EXIT_FAILED })
}

/// Why this number of ranks cannot run the benchmark.
fn misfit(description: &Description, settings: &Settings, ranks: usize) -> Option<String> {
    if description.ranks == Ranks::Two && ranks != 2 {
        return Some(format!(
            "needs exactly 2 ranks, the job has {ranks}; start it with -n 2"
        ));
    }
    if ranks < 2 {
        return Some(format!(
            "needs at least 2 ranks, the job has {ranks}; start it with -n 2 or more"
        ));
    }
    if let Some(pairs) = settings.pairs.filter(|pairs| pairs * 2 > ranks) {
        return Some(format!(
            "-p {pairs}: needs {} ranks, the job has {ranks}",
            pairs * 2
        ));
    }
    match settings.root {
        options::Root::Fixed(root) if root >= ranks => Some(format!(
            "-k {root}: must be below the number of ranks, {ranks}"
        )),
        _ => None,
    }
}

/// The sizes, without those for which a collective would exceed -M.
fn sizes_within_memory(
    description: &Description,
    settings: &Settings,
    world: &Communicator<'_>,
) -> Vec<usize> {
    let mut sizes = settings.sizes(description);
    if description.is_point_to_point() {
        return sizes;
    }
    let messages = if description.message_per_rank {
        world.size()
    } else {
        1
    };
    let limit = settings.memory_limit_bytes / messages;
    let wanted = sizes.len();
    sizes.retain(|size| *size <= limit);
    if sizes.len() < wanted && world.rank() == 0 {
        eprintln!(
            "weft bench {}: -M {} allows messages of at most {limit} bytes with {} ranks; larger sizes are left out",
            description.name,
            settings.memory_limit_bytes,
            world.size()
        );
    }
    sizes
}

fn job(session: &Session, world: &Communicator<'_>, settings: &Settings) -> Job {
    Job {
        ranks: world.size(),
        pairs: settings.pairs.unwrap_or(world.size() / 2),
        mpi: session.library_version(),
        library: session.library().path().display().to_string(),
        node: session.processor_name(),
    }
}

/// Prints and flushes: a reader at the other end of a pipe sees each row when it is measured.
fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // A reader that went away is no reason to break the other ranks' run off.
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}
