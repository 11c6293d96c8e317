// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a comparison, or one run of it, failed. All other files use it.

use std::io;
use std::process::ExitStatus;

use thiserror::Error;

/// What failed, as one line for a person.
#[derive(Debug, Error)]
pub enum Fault {
    /// The system refused something.
    #[error("cannot {what}: {cause}")]
    System {
        /// What was tried, behind "cannot".
        what: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The S3 server answered with an error.
    #[error("the S3 server refused {request}: {answer}")]
    Server {
        /// Method and path.
        request: String,
        /// Head and body.
        answer: String,
    },
    /// A program did not mount in time, or ended before.
    #[error("{peer} did not mount: {said}")]
    NotMounted {
        /// Its name.
        peer: &'static str,
        /// What it wrote.
        said: String,
    },
    /// A load's program failed.
    #[error("{command} ended with {status}")]
    Ended {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// A load's program printed something else than it should.
    #[error("{command} printed {printed}")]
    Printed {
        /// The command line or the program.
        command: String,
        /// What it printed, or how much of how much.
        printed: String,
    },
    /// No load has this name.
    #[error("`{name}` is not a load; the loads are {known}")]
    UnknownLoad {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// Some runs failed.
    #[error("{failed} of {all} runs failed; the first, {load} by {peer}: {why}")]
    Runs {
        /// How many.
        failed: usize,
        /// Of how many.
        all: usize,
        /// The first one's load.
        load: &'static str,
        /// Its peer.
        peer: &'static str,
        /// And its fault.
        why: String,
    },
}

impl Fault {
    /// For `map_err`: what was tried, behind "cannot".
    pub fn system(what: impl Into<String>) -> impl Fn(io::Error) -> Self {
        let what = what.into();
        move |cause| Self::System {
            what: what.clone(),
            cause,
        }
    }
}
