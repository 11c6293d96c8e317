// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft wait`: waits until jobs have ended, and returns their exit code.
//!
//! Called by `weft` and by `submit.rs`; asks `tasks.rs` again and again, at growing intervals.

use std::ffi::OsString;
use std::thread;
use std::time::{Duration, Instant};

use clap::{CommandFactory, Parser};

use crate::fault::Fault;
use crate::job_id::JobId;
use crate::task::Task;
use crate::tasks;

/// The parsed command line of `weft wait`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "weft wait",
    no_binary_name = true,
    disable_version_flag = true,
    about = "Wait until jobs of Slurm have ended; end with their exit code",
    after_help = AFTER_HELP
)]
struct WaitArguments {
    /// Give up after SECONDS; the jobs go on
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,
    /// The jobs' numbers, as 12, or 12_3 for a task of an array
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<JobId>,
}

const AFTER_HELP: &str = "\
Examples:
  weft wait 12
  weft wait 12_3 13          one task of an array, and another job

Exit codes; of several jobs or tasks the highest one:
  0             all succeeded
  1             a job is not known, or can never begin
  2             wrong usage
  4             a node was lost
  124           a time limit ended it: the job's, or --timeout
  137           it was killed: out of memory, or lost (Slurm forgot it; docs/slurm.md)
  143           it was cancelled
  any other     the program's, as the launcher passes it on (docs/run.md)";

/// The command line, as a shell completes it.
#[must_use]
pub fn command_line() -> clap::Command {
    WaitArguments::command()
}

/// Runs `weft wait`; answers its exit code.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    let read = crate::read::<WaitArguments>(&words);
    crate::carry_out("weft wait", read, |arguments| {
        let patience = arguments
            .timeout
            .map(|seconds| Duration::from_secs(seconds.into()));
        until_over(&arguments.jobs, patience)
    })
}

/// The first pause between two questions to the controller, and the longest: it answers all users.
/// Chosen.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MOST: Duration = Duration::from_secs(10);

/// The next pause.
#[must_use]
pub(crate) fn longer(pause: Duration) -> Duration {
    (pause + pause / 4).min(PAUSE_MOST)
}

/// The first pause.
#[must_use]
pub(crate) fn first_pause() -> Duration {
    PAUSE
}

/// Waits; answers the highest exit code. A controller that goes away meanwhile is waited for, too.
///
/// # Errors
/// `Fault::Slurm` for a job that is not known or can never begin, `Fault::Away` where Slurm does
/// not answer the first question.
pub fn until_over(jobs: &[JobId], patience: Option<Duration>) -> Result<u8, Fault> {
    let records = tasks::records()?;
    let begin = Instant::now();
    let mut pause = PAUSE;
    let mut highest = 0;
    let mut is_away = false;
    for id in jobs {
        loop {
            let tasks = match tasks::of_job(id, records.as_ref()) {
                Err(Fault::Away(text)) => {
                    if !is_away {
                        crate::say(&format!("weft wait: {text}; asking again until it is back"));
                    }
                    is_away = true;
                    Vec::new()
                }
                answer => {
                    is_away = false;
                    answer?
                }
            };
            if let Some(codes) = codes(&tasks) {
                say_ends(&tasks);
                highest = highest.max(codes);
                break;
            }
            if let Some(task) = tasks.iter().find(|task| task.can_never_begin()) {
                return Err(Fault::Slurm(format!(
                    "job {} can never begin ({}); weft cancel {} removes it",
                    task.number(),
                    task.reason,
                    task.number()
                )));
            }
            if patience.is_some_and(|patience| begin.elapsed() >= patience) {
                crate::say(&format!("weft wait: job {id} has not ended yet"));
                return Ok(124);
            }
            thread::sleep(pause);
            pause = longer(pause);
        }
    }
    Ok(highest)
}

/// The highest exit code; `None` while a task is under way, and of no tasks.
fn codes(tasks: &[Task]) -> Option<u8> {
    let codes: Option<Vec<u8>> = tasks.iter().map(Task::exit_code).collect();
    codes?.into_iter().max()
}

/// Says of each task that did not succeed how it ended.
fn say_ends(tasks: &[Task]) {
    for task in tasks {
        let code = task.exit_code().unwrap_or(0);
        if code != 0 {
            crate::say(&format!(
                "weft: job {}: {}, exit code {code}",
                task.number(),
                task.state
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_code_counts_once_all_are_over() {
        let task = |state: &str| Task {
            state: state.to_owned(),
            ..Task::default()
        };
        assert_eq!(codes(&[task("COMPLETED"), task("RUNNING")]), None);
        assert_eq!(codes(&[task("COMPLETED"), task("TIMEOUT")]), Some(124));
        assert_eq!(codes(&[task("COMPLETED")]), Some(0));
    }

    #[test]
    fn the_controller_is_asked_ever_less_often() {
        let mut pause = PAUSE;
        for _ in 0..100 {
            assert!(longer(pause) > pause || pause == PAUSE_MOST);
            pause = longer(pause);
        }
        assert_eq!(pause, PAUSE_MOST);
    }
}
