// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft logs`: prints the output of a job.
//!
//! Called by `weft`. The job itself records the file of its output when it begins (`record.rs`). If
//! there is no record, the file that Slurm names is taken.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::thread;

use clap::{CommandFactory, Parser};

use crate::fault::Fault;
use crate::job_id::JobId;
use crate::record::Records;
use crate::task::Task;
use crate::{tasks, wait};

/// The parsed command line of `weft logs`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "weft logs",
    no_binary_name = true,
    disable_version_flag = true,
    about = "Show the output of a job of Slurm",
    after_help = AFTER_HELP
)]
struct LogsArguments {
    /// Go on until the job has ended, and show what it writes meanwhile
    #[arg(short = 'f', long)]
    follow: bool,
    /// The job's number, as 12, or 12_3 for a task of an array
    #[arg(value_name = "JOB")]
    job: JobId,
}

const AFTER_HELP: &str = "\
Examples:
  weft logs 12               what it has written so far; of an array, task by task
  weft logs -f 12_3          one task, until it has ended

To have the rank in front of each line, submit the job with --label.

Exit codes: 0 shown, 1 the job is not known or has no output, 2 wrong usage. They say nothing of how
the job ended: weft wait does.";

/// The command line, as a shell completes it.
#[must_use]
pub fn command_line() -> clap::Command {
    LogsArguments::command()
}

/// Runs `weft logs`; answers its exit code.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    let read = crate::read::<LogsArguments>(&words);
    crate::carry_out("weft logs", read, |arguments| {
        let id = arguments.job;
        let shown = if arguments.follow {
            follow(id)
        } else {
            show(id)
        };
        shown.map(|()| 0)
    })
}

/// What there is now, of each task that has begun.
fn show(id: JobId) -> Result<(), Fault> {
    let records = tasks::records()?;
    let tasks = tasks::of_job(&id, records.as_ref())?;
    let outputs: Vec<(&Task, PathBuf)> = tasks
        .iter()
        .filter_map(|task| Some((task, output(task, records.as_ref())?)))
        .collect();
    if outputs.is_empty() {
        let state = tasks.first().map_or("", |task| &task.state);
        return Err(Fault::Slurm(format!(
            "job {id} has written nothing yet ({state}); weft logs -f {id} waits for it"
        )));
    }
    for (index, (task, path)) in outputs.iter().enumerate() {
        let mut file = File::open(path).map_err(|error| unread(path, &error))?;
        if tasks.len() > 1 {
            // As tail(1) does with several files.
            let gap = if index > 0 { "\n" } else { "" };
            written(
                io::stdout().write_all(format!("{gap}==> {} <==\n", task.number()).as_bytes()),
            )?;
        }
        copy(&mut file)?;
    }
    Ok(())
}

/// From the beginning until the job has ended.
fn follow(id: JobId) -> Result<(), Fault> {
    let records = tasks::records()?;
    let mut file = None;
    let mut pause = wait::first_pause();
    loop {
        let tasks = tasks::of_job(&id, records.as_ref())?;
        let [task] = &tasks[..] else {
            return Err(Fault::Usage(format!(
                "job {id} has {} tasks; follow one of them: weft logs -f {}",
                tasks.len(),
                tasks[0].number()
            )));
        };
        // Asked before the file is read: what a job writes is there when it is over.
        let is_over = task.is_over();
        if file.is_none() {
            file = opened(task, records.as_ref())?;
        }
        let more = match &mut file {
            Some(file) => copy(file)?,
            None => 0,
        };
        if is_over {
            return match file {
                Some(_) => Ok(()),
                None => Err(Fault::Slurm(format!(
                    "job {id} ({}) has no output here",
                    task.state
                ))),
            };
        }
        if task.can_never_begin() {
            return Err(Fault::Slurm(format!(
                "job {id} can never begin ({})",
                task.reason
            )));
        }
        pause = if more > 0 {
            wait::first_pause()
        } else {
            wait::longer(pause)
        };
        thread::sleep(pause);
    }
}

/// The file of a task that has begun; `None` where it is not there.
fn output(task: &Task, records: Option<&Records>) -> Option<PathBuf> {
    let recorded = records.and_then(|records| records.output(task.job, task.task));
    let named = || tasks::output_by_slurm(&task.number()).map(PathBuf::from);
    recorded.or_else(named).filter(|path| path.exists())
}

fn opened(task: &Task, records: Option<&Records>) -> Result<Option<File>, Fault> {
    let Some(path) = output(task, records) else {
        return Ok(None);
    };
    match File::open(&path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unread(&path, &error)),
    }
}

/// Copies what is there to standard output; answers how many bytes.
fn copy(file: &mut File) -> Result<u64, Fault> {
    let copied = io::copy(file, &mut io::stdout());
    let copied = copied.and_then(|count| io::stdout().flush().map(|()| count));
    copied.map_err(|error| Fault::Slurm(format!("the output cannot be shown: {error}")))
}

fn written(result: io::Result<()>) -> Result<(), Fault> {
    result.map_err(|error| Fault::Slurm(format!("writing to standard output: {error}")))
}

fn unread(path: &std::path::Path, error: &io::Error) -> Fault {
    Fault::Slurm(format!("{} cannot be read: {error}", path.display()))
}
