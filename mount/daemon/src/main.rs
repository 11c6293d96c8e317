// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command `weft-mount`: shows a bucket of S3 as a folder. `weft mount` runs it.
//!
//! - [`options`]: the command line.
//! - [`background`]: runs in the background once the folder can be used.
//! - [`place`]: whether the folder can be mounted on; removes what a dead mount left.
//! - [`serving`]: store, files and FUSE together, until the mount ends.
//! - [`face`]: FUSE's calls as calls of `mount/files`; [`shown`]: their answers.
//! - [`joining`]: the other mounts of a job. [`probing`]: what the store cannot do.
//! - [`listed`]: open folders as the kernel reads them.
//! - [`writers`]: files that are open for writing, and files that could not be published.
//! - [`log`]: where messages go.
#![forbid(unsafe_code)]

mod background;
mod face;
mod joining;
mod listed;
mod log;
mod making;
mod options;
mod place;
mod probing;
mod serving;
mod shown;
mod trouble;
mod writers;

use std::process::ExitCode;

use clap::Parser;

use options::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    let done = if options.foreground || options.held || background::is_child() {
        serving::serve(&options)
    } else {
        background::start()
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            // The process behind the shell has said why.
            if !matches!(trouble, trouble::Trouble::Child(_)) {
                eprintln!("weft-mount: {trouble}");
            }
            ExitCode::from(trouble.exit_code())
        }
    }
}
