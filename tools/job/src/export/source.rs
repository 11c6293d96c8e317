// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What all targets are told: the job file, and where the text goes.
//!
//! A part of each target's words.

use std::path::PathBuf;

use clap::Args;

/// The job file and where the text goes.
#[derive(Debug, Clone, Args)]
pub struct Source {
    /// The job file, or a job definition of AWS Batch
    #[arg(value_name = "JOBFILE")]
    pub job: PathBuf,
    /// Write to FILE, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
