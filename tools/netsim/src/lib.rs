// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft sim`: the very machine that carries messages between nodes, on thousands of simulated
//! hosts.
//!
//! A discrete-event simulation of hosts, links and switches, where each host runs
//! `weft_srd::Machine` unchanged. Packets carry real heads; payloads are lengths only. Everything
//! depends on the seed, so that a run can be repeated exactly. Beside it run a single-path baseline
//! that behaves like TCP, and the machine held to one path, which show what the paths and the rest
//! are worth.
//!
//! In the order of a run:
//! - [`options`]: the command line, checked
//! - [`workload`]: which host sends what to whom, and when; the ideal time for it
//! - [`topology`]: leaves, spines, links; [`hash`]: which way a packet takes, as switches decide it
//! - [`fabric`]: links with finite queues and faults; packets under way
//! - [`host`]: a machine and its messages; [`tcp`]: the baseline
//! - [`simulator`]: the events in order of time; checks what must hold
//! - [`bottleneck`]: two flows share a slow link; [`rival`]: a TCP flow without end, [`bbr`]
//!   one way to pace it, and [`rival_host`] its host
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
            let usage = error.use_stderr();
            // A closed pipe leaves nobody to tell.
            let _ = error.print();
            return if usage { EXIT_USAGE } else { EXIT_OK };
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
