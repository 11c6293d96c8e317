// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The `weft` command: one name for the tools, each of which parses the words behind its own.
//!
//! Calls `weft_launch::run`, its `exec`, `env`, `node_agent` and `bind`, `weft_bench::run`,
//! `weft_doctor::doctor`, `weft_doctor::top::run`, `weft_doctor::info`, `weft_job::import::run`,
//! `weft_job::export::run`, `weft_netsim::run` and `weft_soak::run`; `completions.rs` and
//! `manual.rs` write what shells and man(1) read, `mount.rs` finds `weft-mount`, and
//! `unwritable.rs` answers where nothing can be printed. Nothing is decided here but what the
//! system's signals do.
//! structure: allow atomics because signal-hook asks for flags, which nobody reads
#![forbid(unsafe_code)]

mod command_line;
mod completions;
mod help_text;
mod manual;
mod mount;
mod unwritable;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use signal_hook::consts::{SIGPIPE, SIGXFSZ};
use signal_hook::flag;
use weft_job::answer::answer;

/// Runs unmodified MPI programs faster: Weft carries their messages
#[derive(Debug, Parser)]
#[command(name = "weft", version, after_help = EXAMPLES, arg_required_else_help = true)]
struct Command {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(Debug, Subcommand)]
enum Tool {
    /// Run an MPI program over Weft, on this machine or on several
    #[command(disable_help_flag = true)]
    Run(Words),
    /// Submit an MPI program to Slurm, with its messages carried by Weft
    #[command(disable_help_flag = true)]
    Submit(Words),
    /// List your Slurm jobs, also those that have ended
    #[command(disable_help_flag = true)]
    Jobs(Words),
    /// Show the output of a job of Slurm
    #[command(disable_help_flag = true)]
    Logs(Words),
    /// Cancel jobs of Slurm, or send their ranks a signal
    #[command(disable_help_flag = true)]
    Cancel(Words),
    /// Wait until jobs of Slurm have ended; end with their exit code
    #[command(disable_help_flag = true)]
    Wait(Words),
    /// Make a job file, for weft run --spec, from a file of AWS Batch or ParallelCluster
    #[command(disable_help_flag = true)]
    Import(Words),
    /// Make the file of AWS Batch, ParallelCluster, Kubeflow or Slurm from a job file
    #[command(disable_help_flag = true)]
    Export(Words),
    /// Run a rank over Weft under mpirun, mpiexec or srun: mpirun -n 4 weft exec -- ./code
    #[command(disable_help_flag = true)]
    Exec(Words),
    /// Print the variables that weft exec sets: eval "$(weft env)"
    #[command(disable_help_flag = true)]
    Env(Words),
    /// What weft run starts on the other hosts of a job
    #[command(hide = true)]
    NodeAgent,
    /// What weft run has ranks of MPICH started by
    #[command(hide = true, disable_help_flag = true)]
    Bind(Words),
    /// What gives a launcher or a rank a /dev/shm of its own
    #[command(hide = true, disable_help_flag = true)]
    DevShm(Words),
    /// What mounts the buckets of a job, and lets its ranks in
    #[command(hide = true, disable_help_flag = true)]
    Mounts(Words),
    /// Measure latency, bandwidth, collectives and files; compare MPIs and transports
    #[command(disable_help_flag = true)]
    Bench(Words),
    /// Find what keeps Weft from working, or from being fast, on this machine; say how to fix it
    #[command(disable_help_flag = true)]
    Doctor(Words),
    /// Simulate the protocol between up to thousands of hosts: incast, permutation, failures
    #[command(disable_help_flag = true)]
    Sim(Words),
    /// Test Weft: send random messages under faults, for as long as you like, and check each
    #[command(disable_help_flag = true)]
    Soak(Words),
    /// Watch your running jobs on this machine: messages and bytes by process and remote
    #[command(disable_help_flag = true)]
    Top(Words),
    /// Mount a bucket of S3 on a folder
    #[command(disable_help_flag = true)]
    Mount(Words),
    /// Show the version, the MPIs found, the machine, and every parameter
    #[command(disable_help_flag = true)]
    Info(Words),
    /// Print the completions for SHELL; in bash: eval "$(weft completions bash)"
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Write the manual pages into FOLDER, as `make build` does
    #[command(hide = true)]
    Manual {
        /// Where to; it must be there
        folder: PathBuf,
    },
}

/// Passed on as they are, `--help` included.
#[derive(Debug, clap::Args)]
struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  weft doctor                                    is everything in place?
  weft run -n 4 -- ./code input.dat              run an MPI program over Weft
  weft run -n 4 --transport native -- ./code     the same over the MPI's own shared memory
  weft run --hosts a,b --ppn 2 -- ./code         two hosts
  weft run --spec job.yaml                       the job of a job file
  weft submit -N 2 --ppn 4 -- ./code             a job of Slurm
  mpirun -n 4 weft exec -- ./code                the same, started by the MPI's own launcher
  weft run -n 2 -- weft bench latency            measure
  weft sim incast --plot incast.svg              many hosts send to one, simulated
  weft soak --minutes 10                         random messages under faults, all checked
  weft top                                       what do the jobs on this machine carry?
  weft info --json                               what is here, for scripts

Each tool has its own --help.";

/// Who writes into a pipe that nobody reads any more ends by SIGPIPE, without a word, as other
/// programs do; Rust would panic. Not so where a job, its workers or the links to other hosts are
/// at stake: there a write fails, and is answered. A limit on the length of files (`ulimit -f`) is
/// an error of the write that meets it, and not the end of the process.
fn arrange_signals(tool: &Tool) {
    // Neither fails: both signals may be taken.
    let _ = flag::register(SIGXFSZ, Arc::default());
    if !matches!(tool, Tool::Run(_) | Tool::NodeAgent | Tool::Soak(_)) {
        let _ = flag::register_conditional_default(SIGPIPE, Arc::new(AtomicBool::new(true)));
    }
}

/// What `weft` itself says against being started with these words, `bench` first.
fn check(words: &[OsString]) -> Option<String> {
    let (tool, rest) = words.split_first()?;
    (tool == "bench").then(|| weft_bench::refusal(rest))?
}

fn main() -> ExitCode {
    unwritable::arrange();
    let tool = match Command::try_parse() {
        Ok(command) => command.tool,
        Err(error) => return ExitCode::from(answer("weft", &error)),
    };
    arrange_signals(&tool);
    ExitCode::from(match tool {
        Tool::Run(Words { words }) => weft_launch::run(words, check),
        Tool::Submit(Words { words }) => weft_slurm::submit::run(words),
        Tool::Jobs(Words { words }) => weft_slurm::jobs::run(words),
        Tool::Logs(Words { words }) => weft_slurm::logs::run(words),
        Tool::Cancel(Words { words }) => weft_slurm::cancel::run(words),
        Tool::Wait(Words { words }) => weft_slurm::wait::run(words),
        Tool::Import(Words { words }) => weft_job::import::run(words),
        Tool::Export(Words { words }) => weft_job::export::run(words),
        Tool::Exec(Words { words }) => weft_launch::exec::run(words),
        Tool::Env(Words { words }) => weft_launch::env::run(words),
        Tool::NodeAgent => weft_launch::node_agent::serve(),
        Tool::Bind(Words { words }) => weft_launch::bind::run(words),
        Tool::DevShm(Words { words }) => weft_launch::dev_shm::run(words),
        Tool::Mounts(Words { words }) => weft_launch::mounts::run(words),
        Tool::Bench(Words { words }) => weft_bench::run(words),
        Tool::Doctor(Words { words }) => weft_doctor::doctor(words),
        Tool::Sim(Words { words }) => weft_netsim::run(words),
        Tool::Soak(Words { words }) => weft_soak::run(words),
        Tool::Top(Words { words }) => weft_doctor::top::run(words),
        Tool::Mount(Words { words }) => mount::run(words),
        Tool::Info(Words { words }) => weft_doctor::info(words),
        Tool::Completions { shell } => completions::print(shell, &Command::command()),
        Tool::Manual { folder } => manual::write(&folder, &Command::command()),
    })
}
