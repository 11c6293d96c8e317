// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft cancel`: ends jobs, or sends their ranks a signal.
//!
//! Called by `weft`; scancel(1) does the work, and the job's record says that it was asked to.

use std::ffi::OsString;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{CommandFactory, Parser};

use crate::fault::Fault;
use crate::job_id::JobId;
use crate::record::Records;
use crate::task::Task;
use crate::{command, tasks, wait};

/// The parsed command line of `weft cancel`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "weft cancel",
    no_binary_name = true,
    disable_version_flag = true,
    about = "Cancel jobs of Slurm, or send their ranks a signal",
    after_help = AFTER_HELP
)]
struct CancelArguments {
    /// Send this signal to the ranks that srun started, as USR1, and let the job go on
    #[arg(short = 's', long, value_name = "NAME", conflicts_with = "wait")]
    signal: Option<String>,
    /// Wait until the jobs have ended
    #[arg(short = 'W', long)]
    wait: bool,
    /// The jobs' numbers, as 12, or 12_3 for a task of an array
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<JobId>,
}

const AFTER_HELP: &str = "\
Examples:
  weft cancel 12
  weft cancel --wait 12_3 13        one task of an array and another job, until they are gone
  weft cancel --signal USR1 12      the ranks get USR1

Ranks get TERM, and KILL after the cluster's KillWait (30 seconds by default).

Exit codes: 0 cancelled, or ended before; 1 a job is not known, or Slurm refused; 2 wrong usage.";

/// The command line, as a shell completes it.
#[must_use]
pub fn command_line() -> clap::Command {
    CancelArguments::command()
}

/// Runs `weft cancel`; answers its exit code.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    let read = crate::read::<CancelArguments>(&words);
    crate::carry_out("weft cancel", read, |arguments| {
        cancel(arguments).map(|()| 0)
    })
}

/// All of them, also where one cannot be cancelled; the last fault counts.
fn cancel(arguments: &CancelArguments) -> Result<(), Fault> {
    let records = tasks::records()?;
    let mut result = Ok(());
    let mut cancelled = Vec::new();
    for id in &arguments.jobs {
        match cancel_one(id, arguments.signal.as_deref(), records.as_ref()) {
            Ok(()) => cancelled.push(*id),
            Err(fault) => {
                if let Err(before) = std::mem::replace(&mut result, Err(fault)) {
                    crate::say(&format!("weft cancel: {before}"));
                }
            }
        }
    }
    if arguments.wait && !cancelled.is_empty() {
        wait::until_over(&cancelled, None)?;
    }
    result
}

/// The record says so only once Slurm has agreed.
fn cancel_one(id: &JobId, signal: Option<&str>, records: Option<&Records>) -> Result<(), Fault> {
    let tasks = tasks::of_job(id, records)?;
    if tasks.iter().all(Task::is_over) {
        let state = tasks.first().map_or("", |task| &task.state);
        crate::say(&format!(
            "weft cancel: job {id} has ended already ({state})"
        ));
        return Ok(());
    }
    if let Some(signal) = signal
        && tasks.iter().all(|task| task.state == "PENDING")
    {
        return Err(Fault::Slurm(format!(
            "job {id} has not begun, so there is no rank to send {signal} to; weft cancel {id} \
             removes it from the queue"
        )));
    }
    let (number, at) = (id.to_string(), SystemTime::now());
    let is_cancelled = signal.is_none();
    let signal = signal.map(|name| format!("--signal={name}"));
    let words: Vec<&str> = signal.as_deref().into_iter().chain([&*number]).collect();
    let answer = command::ask("scancel", &words)?;
    answer.or_fail(&format!("scancel {}", words.join(" ")))?;
    if is_cancelled && let Some(records) = records {
        let at = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let under_way = tasks.iter().filter(|task| !task.is_over());
        under_way.for_each(|task| records.note_cancelled(task.job, task.task, at));
    }
    Ok(())
}
