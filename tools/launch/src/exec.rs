// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft exec`: stands in front of the program under any launcher, gives this one rank what
//! `weft run` gives to the ranks of its jobs, and becomes the program.
//!
//! Called by `weft`. Nothing of it is left in the job, unless buckets are mounted for it
//! (`mounts`); then it stays until the program has ended. `program` looks at the file, `ranks`
//! finds out which rank this is and makes its environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::{CommandFactory, Parser};
use weft_job::job::Mount;
use weft_job::size::ShmSize;

use crate::fault::Fault;
use crate::mounts::member::{self, Member};
use crate::mounts::nodes::Nodes;
use crate::rank_arguments::RankArguments;
use crate::ranks::{self, Place, Ready};
use crate::started::{self, Started, Starter};
use crate::stderr::{self, say};
use crate::{dev_shm, job_key, leftovers, program};

/// What may stand behind `weft exec`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "weft exec",
    no_binary_name = true,
    disable_version_flag = true,
    args_override_self = true,
    about = "Run a rank over Weft that another launcher starts: mpirun, mpiexec or srun",
    after_help = AFTER_HELP
)]
struct ExecArguments {
    /// How the rank is set up.
    #[command(flatten)]
    rank: RankArguments,
    /// Refuse to run if the launcher did not start exactly N ranks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(allow_negative_numbers = true)]
    world: Option<u32>,
    /// Give the ranks of this host a /dev/shm of their own, SIZE large: 4g or 512m. With try:4g
    /// they use the host's /dev/shm if the host refuses
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    shm_size: Option<ShmSize>,
    /// Mount a bucket for the ranks of this host while they run: s3://BUCKET/PREFIX:/FOLDER; add
    /// :ro to refuse writing, or :shared-writes to let several hosts write one file at once. May
    /// be repeated
    #[arg(long = "mount", value_name = "MOUNT")]
    mounts: Vec<Mount>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM ARGS")]
    program: Vec<OsString>,
}

const AFTER_HELP: &str = "\
Examples:
  mpirun -n 4 weft exec -- ./code input.dat
  srun --mpi=pmix weft exec -- ./code input.dat
  FI_WEFT_REPORT=1 mpirun -n 4 weft exec -- ./code    rank 0 says at its end what Weft carried

weft exec sets variables and becomes the program. The launcher decides how many ranks there are, and
on which hosts and cores they run. docs/exec.md says more.

Exit codes:
  1             the program could not be started
  2             wrong usage
  5             the program succeeded, but something that it wrote is not in its bucket (--mount)
  126, 127      the program cannot be executed; there is no such program
  any other     the program's";

/// The command line of `weft exec`, as a shell completes it.
#[must_use]
pub fn command_line() -> clap::Command {
    ExecArguments::command()
}

/// Becomes the program that the words name; returns only where that fails, with the exit code.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    let arguments = match ExecArguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(error) => {
            let line = stderr::CommandLine {
                tool: "weft exec",
                example: "mpirun -n 4 weft exec -- ./code",
                command: command_line(),
                words: &words,
            };
            return stderr::refusal(&error, line);
        }
    };
    let fault = match prepare(&arguments) {
        Ok((mut command, None)) => started_not(&command.exec(), command.get_program()),
        Ok((command, Some(member))) => {
            let program = command.get_program().to_owned();
            match member.run(command) {
                Ok(exit_code) => return exit_code,
                Err(error) => started_not(&error, &program),
            }
        }
        Err(fault) => fault,
    };
    say!("weft exec: {fault}");
    fault.exit_code()
}

/// Why the program that was found does not run.
fn started_not(error: &std::io::Error, program: &OsStr) -> Fault {
    let path = PathBuf::from(program);
    match error.kind() {
        // The program is there: it is the interpreter that its first line names.
        std::io::ErrorKind::NotFound => Fault::ProgramMissing(path),
        _ => Fault::ProgramNotExecutable {
            path,
            reason: error.to_string(),
        },
    }
}

/// The program with its environment, ready to be executed; with the mounts of its job, if it has
/// any.
fn prepare(arguments: &ExecArguments) -> Result<(Command, Option<Member>), Fault> {
    let (name, rest) = program::split(&arguments.program)?;
    let place = Place::of_this_process()?;
    if let Some(world) = arguments.world {
        started::check_world(place.started.as_ref(), world)?;
    }
    let program = program::inspect_here(name)?;
    let rank = &arguments.rank;
    let chosen = place.mpi(&rank.mpi, &program)?;
    let standing = place.standing();
    if standing.spread {
        job_key::check(&rank.variables)?;
    }
    let ready = ranks::ready(rank, &program, &chosen.installation, standing)?;
    if place.started.as_ref().is_none_or(|rank| rank.rank == 0) {
        warn(&ready, chosen.note.as_deref());
    }
    let started = place.started.as_ref();
    if started.is_none_or(Started::is_first_of_host) {
        leftovers::remove_abandoned(chosen.installation.family);
    }
    let mut command = Command::new(&program.path);
    command.args(rest);
    ready.environment.apply(&mut command);
    let (size, mounts) = (arguments.shm_size, &arguments.mounts);
    if !mounts.is_empty() {
        let size = size.map(dev_shm::checked).transpose()?.flatten();
        let is_slurm = place.started.as_ref().map(|rank| rank.by) == Some(Starter::Slurm);
        // Without a key they would not hear each other, and so each fetches for itself.
        let nodes = (is_slurm && job_key::is_here())
            .then(|| Nodes::of_slurm(|name| std::env::var(name).ok()))
            .flatten();
        if nodes.is_none() && standing.spread {
            refuse_shared_writes(mounts)?;
        }
        let member = member::join(mounts, size, place.launcher(), nodes)?;
        return Ok((command, Some(member)));
    }
    if let Some(size) = size {
        dev_shm::give(size, &place)?;
    }
    Ok((command, None))
}

/// On several hosts whose mounts do not know each other, the last one to write a file would win, or
/// fail.
fn refuse_shared_writes(mounts: &[Mount]) -> Result<(), Fault> {
    match mounts.iter().find(|mount| mount.shared_writes) {
        None => Ok(()),
        Some(mount) => Err(Fault::Usage(format!(
            "--mount {mount}: the mounts of these hosts do not know each other, so files cannot be \
             shared for writing; start the job with weft run --hosts or, under Slurm, with srun \
             and FI_WEFT_JOB_KEY, or remove :shared-writes"
        ))),
    }
}

/// Once in a job.
fn warn(ready: &Ready, note: Option<&str>) {
    for note in note.into_iter().chain(ready.note.as_deref()) {
        say!("weft: note: {note}");
    }
    if let Some(warning) = &ready.caution {
        say!("weft: warning: {warning}");
    }
}
