// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft soak`: random messages between processes over both routes, under faults. Each message is
//! checked (docs/soak.md).
//!
//! In the order of a run: [`options`] are the command line, [`fault`] is a kind of fault. `run`
//! starts one job after the other. [`schedule`] draws the settings and the faults of each job from
//! the seed. `job` starts its processes, and `network` its hosts. Each process is a `worker`. It
//! sends what [`traffic`] says over libfabric (`fabric`), and writes a [`ledger`]. At the end of a
//! round [`checker`] compares the ledgers.

pub mod checker;
mod control;
mod fabric;
pub mod fault;
pub mod finding;
mod job;
pub mod ledger;
mod network;
pub mod options;
mod random;
mod report;
mod run;
pub mod schedule;
mod system;
pub mod traffic;
mod worker;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};

use clap::Parser;

use options::Options;

/// Runs `weft soak` with the words behind it; returns the exit code.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    let words = std::iter::once(OsString::from("weft soak")).chain(words);
    let options = match Options::try_parse_from(words) {
        Ok(options) => options,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            return match error.print() {
                Err(why) if !error.use_stderr() && why.kind() != ErrorKind::BrokenPipe => {
                    let _ = writeln!(io::stderr(), "weft soak: writing to standard output: {why}");
                    1
                }
                _ => code,
            };
        }
    };
    if let Some(role) = &options.worker {
        return worker::serve(role);
    }
    match run::run(&options) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("weft soak: {error}");
            1
        }
    }
}
