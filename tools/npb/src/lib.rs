// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bench ft` and `weft bench is`: the kernels FT and IS of the NAS Parallel Benchmarks, which
//! spend their time in MPI_Alltoall(v).
//!
//! FT solves a differential equation by three-dimensional Fourier transforms; IS sorts whole
//! numbers. Both generate the benchmark's exact data and verify their results with its published
//! values.
//!
//! In the order of a run:
//! - [`class`]: the published sizes and results
//! - [`random`]: the benchmark's generator of random numbers
//! - [`ft`], on slabs of a [`field`]; [`is`]; the clock of their calls of MPI
//! - [`output`]: the benchmark's layout, or JSON lines like those of the other benchmarks
//!
//! Written from the specification: Bailey and others, "The NAS Parallel Benchmarks", RNR-94-007,
//! and the published verification values.

#![forbid(unsafe_code)]

pub mod class;
mod clock;
pub mod field;
pub mod ft;
pub mod is;
mod kernel;
pub mod output;
pub mod random;

use std::ffi::OsString;

use clap::Parser;
use weft_mpi::{Communicator, Session};

use class::Class;
pub use kernel::Kernel;
use output::Outcome;
use weft_ranks::refusal::Failed;
use weft_ranks::refusal::is_first_rank;
use weft_ranks::{EXIT_FAILED, EXIT_OK, EXIT_USAGE, say, session};

/// The options of both.
#[derive(Parser, Clone, Debug)]
#[command(
    about = "Run a kernel of the NAS Parallel Benchmarks inside an MPI job of 1, 2, 4, 8, ... ranks"
)]
pub struct Settings {
    /// How large: S, W or A
    #[arg(long, value_enum, ignore_case = true, default_value = "S")]
    pub class: Class,
    /// One run after the other in the same job; each is printed
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repeat: u32,
    /// JSON lines instead of the benchmark's layout
    #[arg(long)]
    pub json: bool,
}

/// Runs a kernel with the arguments after its name; returns the exit code: 1 when the verification
/// fails.
pub fn run(kernel: Kernel, arguments: Vec<OsString>) -> u8 {
    let name = kernel.name().to_ascii_lowercase();
    let first = std::iter::once(OsString::from(format!("weft bench {name}")));
    let settings = match Settings::try_parse_from(first.chain(arguments)) {
        Ok(settings) => settings,
        Err(error) => {
            if is_first_rank() {
                let _ = error.print();
            }
            return if error.use_stderr() {
                EXIT_USAGE
            } else {
                EXIT_OK
            };
        }
    };
    session::run_in_session(&name, |session| run_all(session, kernel, &settings))
}

fn run_all(session: &Session, kernel: Kernel, settings: &Settings) -> Result<u8, Failed> {
    let world = Communicator::world(session)?;
    let (ranks, most) = (world.size(), kernel.most_ranks(settings.class));
    if !ranks.is_power_of_two() || ranks > most {
        if world.rank() == 0 {
            say!(
                "weft bench {}: {ranks} ranks cannot share class {}; start it with a power of two, \
                 at most {most}",
                kernel.name().to_ascii_lowercase(),
                settings.class
            );
        }
        return Ok(EXIT_USAGE);
    }
    let mut code = EXIT_OK;
    if settings.json {
        output::begin(&world, settings.class)?;
    }
    for _ in 0..settings.repeat {
        let outcome = one(&world, kernel, settings.class)?;
        output::print(&world, &outcome, settings.json)?;
        if !outcome.is_verified {
            code = EXIT_FAILED;
        }
    }
    Ok(code)
}

fn one(world: &Communicator<'_>, kernel: Kernel, class: Class) -> Result<Outcome, Failed> {
    match kernel {
        Kernel::Ft => ft::run(world, class),
        Kernel::Is => is::run(world, class),
    }
}
