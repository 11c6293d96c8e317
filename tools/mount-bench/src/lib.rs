// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bench mount`: weft-mount beside its peers on an S3 server of the tests, in turns. A round
//! has one run of each peer, and each run has a fresh mount. The results are medians with their
//! intervals.
//!
//! - [`settings`]: the command line.
//! - [`rounds`]: all runs, and how long each took.
//! - [`loads`]: the work of a run in the mounted folder, and the network for it.
//! - [`commands`]: programs of a load, run to their end or the limit.
//! - [`ior`]: the loads that are IOR's.
//! - [`unpack`]: the loads that are tar's.
//! - [`local`]: the local disk as a peer.
//! - [`peers`]: how each program is mounted and unmounted.
//! - [`server`]: the S3 server, its settings and counters.
//! - [`results`]: the table, the page and the JSON.
//! - [`fault`]: why one run, or the whole comparison, failed.
#![forbid(unsafe_code)]

pub mod commands;
pub mod fault;
pub mod ior;
pub mod loads;
pub mod local;
pub mod peers;
pub mod results;
pub mod rounds;
pub mod server;
pub mod settings;
pub mod unpack;

use std::ffi::OsString;

use clap::Parser;
use weft_ranks::{EXIT_OK, EXIT_USAGE, say};

/// Failed.
const EXIT_FAILED: u8 = 1;

/// Runs `weft bench mount` with the arguments after `mount`; returns the exit code.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let name = OsString::from("weft bench mount");
    let settings = match settings::Settings::try_parse_from([name].into_iter().chain(arguments)) {
        Ok(settings) => settings,
        Err(error) => {
            let is_answer = !error.use_stderr();
            let _ = error.print();
            return if is_answer { EXIT_OK } else { EXIT_USAGE };
        }
    };
    let done = rounds::all(&settings).and_then(|runs| results::write(&settings, &runs));
    match done {
        Ok(()) => EXIT_OK,
        Err(fault) => {
            say!("weft bench mount: {fault}");
            EXIT_FAILED
        }
    }
}
