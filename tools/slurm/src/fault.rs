// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a command could not do what it was asked, with its exit code.
//!
//! Made by every module, shown by `lib.rs`.

use thiserror::Error;

/// The text says what was wrong, the value, the limit, and what to do.
#[derive(Debug, Error)]
pub enum Fault {
    /// The words or the job file ask for what is not possible; nothing was started.
    #[error("{0}")]
    Usage(String),
    /// Slurm is missing, or refused.
    #[error("{0}")]
    Slurm(String),
    /// The controller does not answer; it may be back in a moment.
    #[error("{0}")]
    Away(String),
    /// The program or its MPI.
    #[error("{0}")]
    Program(#[from] weft_launch::fault::Fault),
}

impl Fault {
    /// The exit code.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Slurm(_) | Self::Away(_) => 1,
            Self::Program(fault) => fault.exit_code(),
        }
    }
}

impl From<weft_job::Fault> for Fault {
    fn from(fault: weft_job::Fault) -> Self {
        Self::Usage(fault.to_string())
    }
}
