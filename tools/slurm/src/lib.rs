// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Jobs under Slurm: `weft submit`, `weft jobs`, `weft logs`, `weft cancel` and `weft wait`. Slurm
//! schedules; Weft has no daemon and no database.
//!
//! The modules for a job that is submitted, in their order:
//!
//! - `arguments`: what the user writes; `pass_through`: options of sbatch among it.
//! - `requested_job`: the job that the user wants, from a job file and the options.
//! - `command`: Slurm's commands and their version; `fields` reads their answers.
//! - `partition`: what a partition allows.
//! - `submit`: all of this together; the script itself is `weft_job::sbatch`, and
//!   `weft_launch::slurm_start` starts the ranks.
//!
//! The modules for a job that was submitted:
//!
//! - `task`: one task of a job, its state and exit code; `job_id`: its number.
//! - `queue`: what the controller knows, `accounting`: what sacct knows, `record`: what the job
//!   wrote down; `tasks` puts the three together.
//! - `jobs`, `logs`, `cancel`, `wait`: the commands.
//!
//! `fault`: what can be wrong, with its exit code.
#![forbid(unsafe_code)]

mod accounting;
mod arguments;
pub mod cancel;
mod command;
mod fault;
mod fields;
mod job_id;
pub mod jobs;
pub mod logs;
mod partition;
mod pass_through;
mod queue;
mod record;
mod requested_job;
pub mod submit;
mod task;
mod tasks;
pub mod wait;

use std::ffi::OsString;

use clap::Parser;
use clap::error::ErrorKind;
use fault::Fault;
use weft_job::answer::answer;

/// One line for the user.
fn say(text: &str) {
    use std::io::Write;
    let line = format!("{text}\n");
    let _: std::io::Result<()> = std::io::stderr().write_all(line.as_bytes());
}

/// The words as clap reads them; a word that should be UTF-8 and is not is shown with its bytes.
fn read<A: Parser>(words: &[OsString]) -> Result<A, clap::Error> {
    A::try_parse_from(words).map_err(|error| {
        if error.kind() != ErrorKind::InvalidUtf8 {
            return error;
        }
        let text = weft_launch::stderr::not_utf8(A::command(), words);
        clap::Error::raw(error.kind(), text + "\n").with_cmd(&A::command())
    })
}

/// Carries a command out if its words could be read, and says why it could not do what it was
/// asked; answers its exit code.
fn carry_out<A>(
    command: &str,
    read: Result<A, clap::Error>,
    act: impl FnOnce(&A) -> Result<u8, Fault>,
) -> u8 {
    match read {
        Ok(arguments) => act(&arguments).unwrap_or_else(|fault| {
            say(&format!("{command}: {fault}"));
            fault.exit_code()
        }),
        Err(error) => answer(command, &error),
    }
}
