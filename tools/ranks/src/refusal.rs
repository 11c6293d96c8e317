// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a program of ranks does not run, or ends: a text for the user and an exit code. If all ranks
//! know the reason, one rank prints it for all.
//!
//! Called by everything that runs as one of several ranks.

use std::fmt;

use crate::{EXIT_OK, EXIT_USAGE};

/// Variables in which launchers tell a process its rank, before MPI is initialised.
const RANK_VARIABLES: [&str; 4] = [
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
    "SLURM_PROCID",
];

/// Why there is nothing to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A text for stdout, exit code 0: help or version.
    Answer(String),
    /// A text for stderr, exit code 2.
    BadUsage(String),
}

/// An option that cannot be used as it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{written}: {reason}")]
pub struct BadOption {
    /// The option, and its value where it has one.
    written: String,
    /// What is wrong with it, or what is allowed.
    reason: String,
}

impl BadOption {
    /// An option that must not stand here, whatever its value.
    pub fn new(option: &str, reason: impl Into<String>) -> Self {
        Self {
            written: option.to_owned(),
            reason: reason.into(),
        }
    }

    /// An option whose value is wrong.
    pub fn with_value(option: &str, value: impl fmt::Display, reason: impl Into<String>) -> Self {
        Self::new(&format!("{option} {value}"), reason)
    }
}

/// Why a run ends: one sentence.
#[derive(Debug)]
pub struct Failed(String);

impl Failed {
    /// With this sentence.
    pub fn new(sentence: String) -> Self {
        Self(sentence)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

impl From<weft_mpi::Error> for Failed {
    fn from(error: weft_mpi::Error) -> Self {
        Self(error.to_string())
    }
}

/// Says why there is nothing to run, on one rank; answers the exit code.
pub fn refuse(refusal: Refusal) -> u8 {
    let speaks = is_first_rank();
    match refusal {
        Refusal::Answer(text) => {
            if speaks {
                print!("{text}");
            }
            EXIT_OK
        }
        Refusal::BadUsage(text) => {
            if speaks {
                eprint!("{text}");
            }
            EXIT_USAGE
        }
    }
}

/// Whether this is rank 0, by what its launcher says; true outside a job.
#[must_use]
pub fn is_first_rank() -> bool {
    RANK_VARIABLES
        .iter()
        .find_map(std::env::var_os)
        .is_none_or(|rank| rank == "0")
}
