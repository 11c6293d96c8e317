// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft sim`: the same protocol machine that carries messages between nodes, on thousands of
//! simulated hosts.
//!
//! A discrete-event simulation of hosts, links and switches. Each host runs `weft_srd::Machine`
//! unchanged. Packets carry real headers; payloads are lengths only. Everything depends on the
//! seed, so a run can be repeated exactly. For comparison there are two more variants: a
//! single-path baseline that behaves like TCP, and the machine limited to one path. They show how
//! much the paths bring, and how much the rest.
//!
//! In the order of a run:
//! - [`options`]: the command line, checked
//! - [`workload`]: which host sends what to whom, and when; the ideal time for it
//! - [`topology`]: leaves, spines, links; [`hash`]: which path a packet takes, as switches choose
//!   it
//! - [`fabric`]: links with finite queues and faults; packets in flight
//! - [`host`]: a machine and its messages; [`tcp`]: the baseline
//! - [`simulator`]: the events in order of time; checks the invariants
//! - [`bottleneck`]: two flows share a slow link; [`rival`]: a TCP flow without end, [`bbr`]: its
//!   BBR variant, and [`rival_host`] its host
//! - [`stream`]: two hosts, few slow paths, faults: how long a stream pauses
//! - [`scenario`]: runs all variants of a scenario; [`report`]: table, JSON; [`plot`]: SVG
#![forbid(unsafe_code)]

pub mod bbr;
pub mod bottleneck;
pub mod fabric;
pub mod hash;
pub mod host;
pub mod options;
pub mod pieces;
pub mod plot;
pub mod problem;
pub mod report;
pub mod rival;
pub mod rival_host;
pub mod scenario;
pub mod simulator;
pub mod stream;
pub mod tcp;
pub mod topology;
pub mod workload;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};

use options::Options;

/// Exit code of success.
pub const EXIT_OK: u8 = 0;
/// Exit code when a run failed.
pub const EXIT_FAILED: u8 = 1;
/// Exit code of bad usage.
pub const EXIT_USAGE: u8 = 2;

/// Runs `weft sim` with the arguments after `sim`; returns the process's exit code.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let options = match Options::read(arguments) {
        Ok(options) => options,
        Err(error) => {
            let written = error.print();
            return match written {
                _ if error.use_stderr() => EXIT_USAGE,
                // A closed pipe leaves nobody to tell.
                Err(why) if why.kind() != ErrorKind::BrokenPipe => {
                    let _ = writeln!(io::stderr(), "weft sim: writing to standard output: {why}");
                    EXIT_FAILED
                }
                _ => EXIT_OK,
            };
        }
    };
    match simulate(&options) {
        Ok(()) => EXIT_OK,
        Err(problem) => {
            eprintln!("weft sim: {problem}");
            EXIT_FAILED
        }
    }
}

fn simulate(options: &Options) -> Result<(), problem::Problem> {
    // A long run that cannot be drawn in the end would be for nothing.
    if let Some(path) = &options.plot {
        plot::check(path)?;
    }
    if options.scenario.is_stream() {
        let seen = stream::show(options);
        return match &options.plot {
            Some(path) => plot::draw_streams(path, options, &seen),
            None => Ok(()),
        };
    }
    let report = scenario::run(options)?;
    report::show(options, &report)
}
