// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Everything that can keep a job from starting, with the exit code each one gives.
//!
//! Made by every step of the launch, turned into text and an exit code by `lib.rs`. Codes 126 and
//! 127 are those of POSIX shells.

use std::path::PathBuf;

use thiserror::Error;

/// Why the job was not started. The text says what was wrong, with the value, and how to fix it.
#[derive(Debug, Error)]
pub enum Fault {
    /// The command line asks for something impossible.
    #[error("{0}")]
    Usage(String),
    /// The program itself says that its words are wrong; the text names it.
    #[error("{0}")]
    Words(String),
    /// No file of that name, neither as a path nor on PATH.
    #[error("program `{0}` was not found, neither as a path nor on PATH")]
    ProgramMissing(PathBuf),
    /// There is such a file, but it cannot be executed.
    #[error("program `{path}` cannot be executed: {reason}")]
    ProgramNotExecutable {
        /// The file.
        path: PathBuf,
        /// What keeps it from being executed.
        reason: String,
    },
    /// The program is not linked to any MPI that could be recognised.
    #[error("{0}")]
    NotMpi(String),
    /// No MPI, or not the one that is needed.
    #[error("{0}")]
    MpiMissing(String),
    /// This MPI cannot run this program, or cannot use this transport.
    #[error("{0}")]
    Mismatch(String),
    /// libweft-fi.so is in none of the places where it should be.
    #[error("{0}")]
    ProviderMissing(String),
    /// A limit of this shell leaves no room for the job.
    #[error("{0}")]
    Limit(String),
    /// Ranks on several hosts without a key.
    #[error("{0}")]
    NoKey(String),
    /// A host of the list cannot take part.
    #[error("{0}")]
    Host(String),
    /// The operating system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: String,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl Fault {
    /// The exit code of `weft run` for this fault.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Words(_) => 2,
            Self::ProgramMissing(_) => 127,
            Self::ProgramNotExecutable { .. } => 126,
            Self::NotMpi(_)
            | Self::MpiMissing(_)
            | Self::Mismatch(_)
            | Self::ProviderMissing(_)
            | Self::Limit(_)
            | Self::NoKey(_)
            | Self::Host(_)
            | Self::System { .. } => 1,
        }
    }

    /// A system fault, for `map_err`.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
