// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The arguments that all targets have: the job file, and where the text goes.
//!
//! Part of each target's command line.

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
