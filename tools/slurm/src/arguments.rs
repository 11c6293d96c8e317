// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the user may write after `weft submit`.
//!
//! Read by `submit.rs`; `pass_through.rs` takes out options of sbatch before clap sees them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;
use weft_job::job::{Mount, RETRIES_MOST};
use weft_job::size::ShmSize;
use weft_launch::rank_arguments::RankArguments;

/// The parsed command line of `weft submit`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "weft submit",
    no_binary_name = true,
    disable_version_flag = true,
    args_override_self = true,
    about = "Submit an MPI program to Slurm, with its messages carried by Weft",
    after_help = AFTER_HELP
)]
// structure: allow struct-fields because each is an option, and clap wants them in one place
pub struct SubmitArguments {
    /// Number of ranks [default: one for each node, times --ppn]
    #[arg(
        short = 'n',
        long = "np",
        alias = "ntasks",
        value_name = "N",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=2_147_483_647))]
    pub ranks: Option<u32>,
    /// Number of nodes
    #[arg(short = 'N', long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub nodes: Option<u32>,
    /// Ranks on each node
    #[arg(
        long,
        alias = "ntasks-per-node",
        value_name = "N",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub ppn: Option<u32>,
    /// Time limit, as sbatch has it (30 is 30 minutes, 1:30:00, 2-00:00:00) or with units (1h30m)
    #[arg(short = 't', long, value_name = "TIME")]
    pub time: Option<String>,
    /// Partition
    #[arg(short = 'p', long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Name of the job
    #[arg(short = 'J', long, alias = "job-name", value_name = "NAME")]
    pub name: Option<String>,
    /// Many tasks of one kind, as sbatch has it: 0-4, 1,3,5, 0-99%10
    #[arg(short = 'a', long, value_name = "TASKS")]
    pub array: Option<String>,
    /// Begin when other jobs have ended, as sbatch has it: afterok:12
    #[arg(short = 'd', long, value_name = "LIST")]
    pub dependency: Option<String>,
    /// Write the job's output to FILE [default: slurm-JOB.out in the folder of the job]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<String>,
    /// Put the rank in front of each line of output
    #[arg(long)]
    pub label: bool,
    /// Run in DIR
    #[arg(short = 'D', long = "wdir", alias = "chdir", value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Queue the job again, up to N times, when its program fails or a node is lost
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=i64::from(RETRIES_MOST)))]
    pub retries: Option<u32>,
    /// How ranks start: a PMI that srun --mpi=list names, or mpirun [default: the first that the
    /// MPI supports, as docs/slurm.md lists them]
    #[arg(long, value_name = "HOW")]
    pub pmi: Option<String>,
    /// What carries the messages: weft, or native (the MPI's own transport)
    #[arg(long, value_name = "TRANSPORT", value_parser = ["weft", "native"])]
    pub transport: Option<String>,
    /// Give the ranks on each node a /dev/shm of their own, SIZE large: 4g or 512m. With try:4g
    /// they use the node's /dev/shm if the node refuses
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub shm_size: Option<ShmSize>,
    /// Mount a bucket on each node while the job runs: s3://BUCKET/PREFIX:/FOLDER; add :ro to
    /// refuse writing, or :shared-writes to let several nodes write one file at once. May be
    /// repeated
    #[arg(long = "mount", value_name = "MOUNT")]
    pub mounts: Vec<Mount>,
    /// How the ranks are set up.
    #[command(flatten)]
    pub rank: RankArguments,
    /// Read the job from FILE, in YAML or JSON (docs/job-file.md); options win over the file
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// Any other option of sbatch, as in --sbatch=--gres=gpu:1. Options of sbatch that Weft knows
    /// need no --sbatch=
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// Print the batch script instead of submitting it
    #[arg(long)]
    pub dry_run: bool,
    /// Wait until the job has ended, and end with its exit code
    #[arg(short = 'W', long)]
    pub wait: bool,
    /// The program and its arguments
    #[arg(
        required_unless_present = "spec",
        trailing_var_arg = true,
        value_name = "PROGRAM ARGS"
    )]
    #[arg(help_heading = "Arguments")]
    pub program: Vec<OsString>,
}

const AFTER_HELP: &str = "\
Examples:
  weft submit -N 2 --ppn 4 -t 30 -- ./code input.dat
  weft submit -n 8 --dry-run -- ./code > job.sh        write the script, to change it
  id=$(weft submit -n 4 -- ./first)
  weft submit -n 4 -d afterok:$id -- ./second          after the first has succeeded
  weft submit -n 4 -a 0-9 -- ./code                    ten tasks
  weft submit --spec job.yaml --account=physics        a job file; any option of sbatch
  weft submit -W -n 4 -- ./code                        wait for the end

The job's number goes to standard output, all else to standard error. In the script, options
of sbatch come after those that Weft writes, and replace them. docs/slurm.md says more.

Exit codes (with --wait those of weft wait):
  0             the job is in the queue
  1             Slurm is missing or refused, or there is no MPI for the program
  2             wrong usage: an option, or more than the partition gives
  126, 127      the program cannot be executed; there is no such program";
