// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft export`: writes a job file as the file of another system.
//!
//! Called by the command `weft` with the words behind `export`. docs/exports.md says what happens
//! to each field.
//!
//! - `source`: the job file, and where the text goes. `exported`: the result: a text, and the
//!   fields that are not in it.
//! - `mounting`: the job's buckets in containers. `shape`: nodes and ranks. `command_line`: the
//!   `weft run` that the other system starts. `name`: the job's name under the other system's
//!   rules.
//! - `batch`, `batch_submit`: AWS Batch. `parallel_cluster`: AWS ParallelCluster. `mpi_job`,
//!   `train_job`: Kubeflow, both with `pods`. `slurm_shm`: Slurm's own sized /dev/shm.

mod batch;
mod batch_submit;
mod command_line;
mod exported;
mod mounting;
mod mpi_job;
mod name;
mod parallel_cluster;
mod pods;
mod shape;
mod slurm_shm;
mod source;
mod train_job;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use crate::answer::answer;
use crate::fault::Fault;
use crate::file::{JobFile, Unread, write_out};
pub use exported::Exported;
use source::Source;

/// The parsed command line of `weft export`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "weft export",
    bin_name = "weft export",
    no_binary_name = true,
    disable_version_flag = true,
    disable_help_subcommand = true,
    about = "Make the file of another system from a job file",
    after_help = AFTER_HELP
)]
pub struct Arguments {
    /// For which system
    #[command(subcommand)]
    pub target: Target,
}

/// The systems.
#[derive(Debug, Clone, Subcommand)]
pub enum Target {
    /// AWS Batch: JSON for `aws batch register-job-definition --cli-input-json`
    Batch(batch::Options),
    /// AWS Batch: JSON for `aws batch submit-job --cli-input-json`, with array and dependencies
    BatchSubmit(batch_submit::Options),
    /// AWS ParallelCluster 3: YAML for `pcluster create-cluster --cluster-configuration`
    #[command(name = "parallelcluster")]
    ParallelCluster(parallel_cluster::Options),
    /// Kubeflow Trainer 2: YAML of a TrainingRuntime and a TrainJob for `kubectl apply -f`
    #[command(name = "trainjob")]
    TrainJob(pods::Options),
    /// Kubeflow MPI Operator: YAML of an MPIJob v2beta1 for `kubectl apply -f`
    #[command(name = "mpijob")]
    MpiJob(pods::Options),
    /// Slurm: what gives each job on a cluster a /dev/shm of the job file's size
    SlurmShm(slurm_shm::Options),
}

const AFTER_HELP: &str = "\
Examples:
  weft export batch job.yaml --image IMAGE --output definition.json
  weft export mpijob job.yaml --image IMAGE | kubectl apply -f -
  weft export parallelcluster job.yaml --instance-type c5n.18xlarge --subnet subnet-1 --efa

Fields that have no meaning there are listed on standard error, one a line. Each target has its own
--help. docs/exports.md says what becomes of each field. Exit codes: 0 done, 1 a file cannot be read
or written, 2 wrong input.";

/// Runs `weft export` with the words behind it; answers the exit code.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    let target = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments.target,
        Err(error) => return answer("weft export", &error),
    };
    match export(&target) {
        Ok(()) => 0,
        Err(unread) => {
            eprintln!("weft export: {unread}");
            unread.exit_code()
        }
    }
}

fn export(target: &Target) -> Result<(), Unread> {
    let source = target.source();
    let file = JobFile::read(&source.job)?;
    let exported = target.text_of(&file)?;
    for note in &file.notes {
        eprintln!("weft export: {}, {note}", file.name());
    }
    for note in &exported.notes {
        eprintln!("weft export: {note}");
    }
    write_out(source.output.as_deref(), &exported.text)
}

impl Target {
    fn source(&self) -> &Source {
        match self {
            Self::Batch(options) => &options.source,
            Self::BatchSubmit(options) => &options.source,
            Self::ParallelCluster(options) => &options.source,
            Self::TrainJob(options) | Self::MpiJob(options) => &options.source,
            Self::SlurmShm(options) => &options.source,
        }
    }

    /// The job of this file as the target's text.
    ///
    /// # Errors
    /// What the target cannot say at all, with the field.
    pub fn text_of(&self, file: &JobFile) -> Result<Exported, Fault> {
        match self {
            Self::Batch(options) => batch::export(file, options),
            Self::BatchSubmit(options) => batch_submit::export(file, options),
            Self::ParallelCluster(options) => parallel_cluster::export(file, options),
            Self::TrainJob(options) => train_job::export(file, options),
            Self::MpiJob(options) => mpi_job::export(file, options),
            Self::SlurmShm(options) => slurm_shm::export(file, options),
        }
    }
}
