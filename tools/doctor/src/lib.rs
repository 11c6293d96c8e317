// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft doctor`, `weft info` and `weft top`: what is wrong on this machine and how to fix it, what
//! is here, and what runs.
//!
//! A message layer that falls back silently is one that nobody notices is off: a container without
//! single copy, a /dev/shm of 64 MiB, an MPI built without libfabric, a variable left over from an
//! old job. The doctor tries what Weft will need (it makes the files, opens the sockets, lets
//! another process read its memory) rather than reading version numbers, and gives for each thing
//! the value found, why it matters and what to do. It changes nothing.
//!
//! - `arguments`: the words of both commands. `check`: one result, and the exit code of all.
//!   `text`: how they look.
//! - `library`: the provider's file. `launcher`: the MPIs, found as `weft run` finds them, and
//!   trials under each (--try).
//! - `single_copy`, `direct`, `heap`, `contact`, `memory`, `processor`: the machine, by what Weft
//!   asks of it; `attempt` tries it between two processes, `tree` and `cgroup` read its files.
//! - `variables`: what in the environment turns an MPI away from Weft. `parameters`: FI_WEFT_* as a
//!   table.
//! - `measure`: the ways to fetch a long message, timed. `top`: the live endpoints of this user,
//!   from what they publish. `running`: their choices.
//! - `info`: everything without judgement.
//!
//! Everything that looks at the system is apart from what judges it, so that the judgements are
//! tested with values of other machines.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod attempt;
pub mod cgroup;
pub mod check;
pub mod contact;
pub mod direct;
pub mod heap;
pub mod info;
pub mod launcher;
pub mod library;
pub mod measure;
pub mod memory;
pub mod parameters;
pub mod processor;
pub mod running;
pub mod single_copy;
pub mod text;
pub mod top;
pub mod tree;
pub mod variables;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use clap::Parser;
use serde::Serialize;

use arguments::{DoctorArguments, InfoArguments};
use check::{Check, Status};
use tree::Tree;

/// Runs `weft doctor` with the words that follow it and returns the exit code: 0 all well, 1
/// warnings, 2 failures or wrong usage.
///
/// Starts processes (each MPI's launcher, itself) and opens this process to readers of the same
/// user.
#[must_use]
pub fn doctor(arguments: Vec<OsString>) -> u8 {
    let arguments = match DoctorArguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    let other_side = match (&arguments.read_memory, &arguments.map_memory) {
        (Some(target), _) => Some(single_copy::read_memory(target)),
        (None, Some(target)) => Some(direct::map_memory(target)),
        (None, None) => None,
    };
    if let Some(done) = other_side {
        return match done {
            Ok(()) => 0,
            Err(why) => {
                eprintln!("{why}");
                1
            }
        };
    }
    let executable = std::env::current_exe().ok();
    let checks = all_checks(executable.as_deref(), arguments.trial);
    let worst = check::worst(&checks);
    let output = if arguments.json {
        json(&Examination {
            weft: env!("CARGO_PKG_VERSION"),
            status: worst,
            checks: &checks,
        })
    } else {
        text::checks(&checks, arguments.explain, text::colour_wanted())
    };
    print(&output, check::exit_code(worst))
}

/// Runs `weft info` with the words that follow it and returns the exit code.
#[must_use]
pub fn info(arguments: Vec<OsString>) -> u8 {
    let arguments = match InfoArguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    let executable = std::env::current_exe().ok();
    let info = info::Info::gather(
        &Tree::of_this_machine(),
        executable.as_deref(),
        &environment(),
    );
    let output = if arguments.json {
        json(&info)
    } else {
        info.text(text::colour_wanted())
    };
    print(&output, 0)
}

/// What `weft doctor --json` prints.
#[derive(Debug, Serialize)]
struct Examination<'a> {
    weft: &'static str,
    status: Status,
    checks: &'a [Check],
}

fn all_checks(executable: Option<&Path>, trial: bool) -> Vec<Check> {
    let tree = Tree::of_this_machine();
    let environment = environment();
    let here = launcher::installations();
    let mut checks = library::checks();
    checks.extend(launcher::checks(&here));
    checks.push(single_copy::check(&tree, executable));
    checks.push(direct::check(executable));
    checks.push(heap::check());
    checks.extend(contact::checks());
    checks.extend(memory::checks(&tree));
    checks.extend(processor::checks(&tree));
    checks.extend(variables::checks(&environment));
    checks.extend(parameters::checks(
        &environment,
        &parameters::known_interfaces(),
    ));
    if let (true, Some(executable)) = (trial, executable) {
        checks.extend(launcher::trials(&here, executable));
    }
    checks
}

/// The environment; names and values that are no UTF-8 cannot be any that are looked at.
fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

fn json(value: &impl Serialize) -> String {
    // Only maps with keys that are no strings and failing writers give errors; there are none.
    serde_json::to_string_pretty(value).map_or_else(
        |error| format!("{{\"error\":\"{error}\"}}\n"),
        |text| text + "\n",
    )
}

/// Standard output may be closed early by `head`; that is no failure of the check.
fn print(text: &str, code: u8) -> u8 {
    let _ = std::io::stdout().write_all(text.as_bytes());
    code
}

fn refuse(error: &clap::Error) -> u8 {
    let _ = error.print();
    u8::try_from(error.exit_code()).unwrap_or(2)
}
