// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command `weft-mount`: shows a bucket of S3 as a folder. `weft mount` runs it.
//!
//! - [`options`]: the command line. [`fstab`]: the same as mount(8) gives it.
//! - [`background`]: runs in the background once the folder can be used.
//! - [`mount_point`]: whether the folder can be mounted on; removes what a dead mount left.
//! - [`serving`]: store, files and FUSE together, until the mount ends.
//! - [`filesystem`]: FUSE's calls as calls of `mount/files`, in part by [`node_calls`] (which make
//!   nodes and change their attributes) and [`folder_listing`] (open folders as the kernel reads
//!   them); [`replies`]: the answers.
//! - [`locking`]: the calls on locks, in a job.
//! - [`joining`]: the other mounts of a job. [`probing`]: what the store cannot do.
//! - [`writers`]: files that are open for writing, and files that could not be published.
//! - [`mount_error`]: why a mount cannot be made, with its exit code. [`log`]: where messages go.
#![forbid(unsafe_code)]

mod background;
mod filesystem;
mod folder_listing;
mod fstab;
mod joining;
mod locking;
mod log;
mod mount_error;
mod mount_point;
mod node_calls;
mod options;
mod probing;
mod replies;
mod serving;
mod staging_threads;
mod write_call;
mod writers;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;

use options::Options;

fn main() -> ExitCode {
    let words = match fstab::expanded(std::env::args_os()) {
        Ok(words) => words,
        Err(error) => {
            eprintln!("weft-mount: {error}");
            return ExitCode::from(error.exit_code());
        }
    };
    let options = match Options::try_parse_from(words) {
        Ok(options) => options,
        Err(said) => return answered(&said),
    };
    let done = if options.foreground || options.held || background::is_child() {
        serving::serve(&options)
    } else {
        background::start()
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The process behind the shell has said why.
            if !matches!(error, mount_error::MountError::Child(_)) {
                eprintln!("weft-mount: {error}");
            }
            ExitCode::from(error.exit_code())
        }
    }
}

/// Prints help, version or what was wrong with the words. Help that could not be written is no
/// success: clap's own exit drops that error.
fn answered(said: &clap::Error) -> ExitCode {
    let written = said.print().and_then(|()| std::io::stdout().flush());
    match written {
        Err(error) if !said.use_stderr() => {
            eprintln!("weft-mount: cannot write to standard output: {error}");
            ExitCode::FAILURE
        }
        _ if said.use_stderr() => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    }
}
