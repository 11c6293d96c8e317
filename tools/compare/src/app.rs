// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bench app`: real programs over several transports in turn, on Debian's MPI.
//!
//! Called by lib. Micro-benchmarks measure single messages; this measures what faster messages
//! bring to a whole program. Each round runs the program once over every transport; every other
//! round goes backwards. The results of all runs must agree. The program's own figure is reported
//! as a median with its spread, and as a speed-up paired by round. docs/applications.md describes
//! it for users.
//!
//! In the order of a run:
//! - [`arguments`]: the command line
//! - [`list`]: the programs ([`hpcc`], [`lammps`], [`gromacs`], [`openfoam`], [`npb`]);
//!   [`program`]: what each needs, its input, its command line and what it reports
//! - [`job`]: one run in a folder of its own
//! - [`rounds`]: all runs, and whether their results agree
//! - [`table`]: the figures as text or JSON lines

pub mod arguments;
mod folder;
pub mod gromacs;
pub mod hpcc;
pub mod job;
pub mod lammps;
pub mod list;
pub mod npb;
pub mod openfoam;
pub mod program;
pub mod rounds;
pub mod table;

use crate::compare::job_start::Testbeds;
use crate::error::Error;
use crate::exit::refuse;
use arguments::Settings;
use std::ffi::OsString;
use weft_ranks::{EXIT_FAILED, EXIT_OK};

/// Runs a program with the arguments after `app`; returns the exit code: 1 when it is not
/// installed, a run failed or results differ.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let settings = match arguments::parse(arguments) {
        Ok(settings) => settings,
        Err(error) => return refuse(&error),
    };
    match measure(&settings) {
        Ok(record) => {
            if settings.json {
                print!("{}", table::json(&record));
            } else {
                print!("{}", table::text(&record));
            }
            for trouble in &record.troubles {
                eprintln!("weft bench app: {trouble}");
            }
            if record.troubles.is_empty() {
                EXIT_OK
            } else {
                EXIT_FAILED
            }
        }
        Err(reason) => {
            eprintln!("weft bench app: {reason}");
            EXIT_FAILED
        }
    }
}

/// Prepares the input and runs all rounds.
///
/// # Errors
/// Why nothing could be measured: the program is missing, its input cannot be made, no transport
/// can carry it.
pub fn measure(settings: &Settings) -> Result<rounds::Record, Error> {
    let program = list::named(&settings.program, settings.case.as_deref());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing = list::missing(program, &path);
    if !missing.is_empty() {
        return Err(Error::Missing(list::explained(program, &missing)));
    }
    let testbeds = Testbeds::up(settings.testbed.as_slice())?;
    let job_start = testbeds.job_start(&settings.place());
    let folder = tempfile::Builder::new()
        .prefix("weft-app-")
        .tempdir()
        .map_err(Error::file_with(
            "make a folder in",
            &std::env::temp_dir(),
            "; TMPDIR names where",
        ))?;
    let input = folder.path().join("input");
    std::fs::create_dir(&input).map_err(Error::file("make", &input))?;
    program
        .prepare(&input, settings.size())
        .map_err(|error| error.about(format!("the input for {}", program.title())))?;
    let record = rounds::all(settings, program, folder.path(), &job_start);
    if let Some(place) = &settings.keep {
        folder::copy(folder.path(), place)?;
    }
    record
}
