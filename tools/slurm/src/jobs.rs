// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft jobs`: a list of jobs with their state and exit code, for people or as JSON.
//!
//! Called by `weft`; gets the jobs from `tasks.rs`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{CommandFactory, Parser};
use serde::Serialize;

use crate::fault::Fault;
use crate::job_id::JobId;
use crate::task::Task;
use crate::tasks;

/// The version of the JSON.
const VERSION: u32 = 1;

/// The parsed command line of `weft jobs`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "weft jobs",
    no_binary_name = true,
    disable_version_flag = true,
    about = "List your Slurm jobs, also those that have ended",
    after_help = AFTER_HELP
)]
struct JobsArguments {
    /// Write JSON (docs/slurm.md)
    #[arg(long)]
    json: bool,
    /// List only these: numbers as 12, or 12_3 for a task of an array
    #[arg(value_name = "JOB")]
    jobs: Vec<JobId>,
}

const AFTER_HELP: &str = "\
Examples:
  weft jobs
  weft jobs --json 12 | jq -r '.tasks[].state'

Each task of an array has a line. Jobs that ended are listed as long as Slurm knows them, and those
of weft submit for 30 days.

Exit codes: 0 listed, 1 a job is not known or Slurm does not answer, 2 wrong usage.";

/// The command line, as a shell completes it.
#[must_use]
pub fn command_line() -> clap::Command {
    JobsArguments::command()
}

/// Runs `weft jobs`; answers its exit code.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    let read = crate::read::<JobsArguments>(&words);
    crate::carry_out("weft jobs", read, |arguments| list(arguments).map(|()| 0))
}

fn list(arguments: &JobsArguments) -> Result<(), Fault> {
    let records = tasks::records()?;
    let mut list = Vec::new();
    for id in &arguments.jobs {
        list.extend(tasks::of_job(id, records.as_ref())?);
    }
    if arguments.jobs.is_empty() {
        list = tasks::of_this_user(records.as_ref())?;
    }
    let text = if arguments.json {
        json(&list)
    } else {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        table(&list, now.map_or(0, |now| now.as_secs()))
    };
    let written = io::stdout().write_all(text.as_bytes());
    written.map_err(|error| Fault::Slurm(format!("writing to standard output: {error}")))
}

/// One task as JSON has it.
#[derive(Serialize)]
struct Shown<'a> {
    id: String,
    #[serde(flatten)]
    task: &'a Task,
    exit_code: Option<u8>,
}

#[derive(Serialize)]
struct List<'a> {
    version: u32,
    tasks: Vec<Shown<'a>>,
}

fn json(tasks: &[Task]) -> String {
    let shown = |task| Shown {
        id: Task::number(task),
        task,
        exit_code: task.exit_code(),
    };
    let list = List {
        version: VERSION,
        tasks: tasks.iter().map(shown).collect(),
    };
    let text = serde_json::to_string_pretty(&list);
    text.unwrap_or_default() + "\n"
}

/// The columns of the table.
const HEADINGS: [&str; 7] = [
    "JOB",
    "STATE",
    "EXIT",
    "NODES",
    "TIME",
    "NAME",
    "WHERE OR WHY",
];

/// The list for a person, at `now` in seconds since 1970.
fn table(tasks: &[Task], now: u64) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(tasks.iter().map(|task| row(task, now)));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..HEADINGS.len()).filter_map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, &width)| format!("{cell:width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn row(task: &Task, now: u64) -> [String; 7] {
    let ran = task.began.filter(|_| task.state != "PENDING").map(|began| {
        let end = task.ended.filter(|_| task.is_over()).unwrap_or(now);
        in_hours(end.saturating_sub(began))
    });
    let place = if task.reason.is_empty() || !task.node_list.is_empty() {
        &task.node_list
    } else {
        &task.reason
    };
    // A name is the user's own, and may hold anything.
    let name = task
        .name
        .chars()
        .map(|one| if one.is_control() { '?' } else { one });
    [
        task.number(),
        task.state.clone(),
        task.exit_code()
            .map_or_else(|| "-".into(), |code| code.to_string()),
        task.nodes.to_string(),
        ran.unwrap_or_else(|| "-".into()),
        name.collect(),
        place.clone(),
    ]
}

fn in_hours(seconds: u64) -> String {
    let (minutes, rest) = (seconds / 60, seconds % 60);
    format!("{}:{:02}:{rest:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Status;

    fn two() -> [Task; 2] {
        let ended = Task {
            job: 12,
            task: Some(3),
            name: "a\x1b[2J".into(),
            state: "FAILED".into(),
            reason: "NonZeroExitCode".into(),
            status: Status {
                exit_code: 7,
                signal: 0,
            },
            nodes: 2,
            node_list: "n[1-2]".into(),
            began: Some(100),
            ended: Some(3765),
            restarts: 0,
        };
        let waits = Task {
            job: 13,
            name: "b".into(),
            state: "PENDING".into(),
            reason: "Resources".into(),
            began: Some(5000),
            nodes: 1,
            ..Task::default()
        };
        [ended, waits]
    }

    #[test]
    fn the_table_says_where_a_job_ran_or_why_it_waits() {
        assert_eq!(
            table(&two(), 9999),
            "JOB   STATE    EXIT  NODES  TIME     NAME   WHERE OR WHY\n\
             12_3  FAILED   7     2      1:01:05  a?[2J  n[1-2]\n\
             13    PENDING  -     1      -        b      Resources\n"
        );
    }

    #[test]
    fn json_has_a_version_and_the_exit_code() {
        let value: serde_json::Value = serde_json::from_str(&json(&two())).unwrap();
        assert_eq!(value["version"], 1);
        assert_eq!(value["tasks"][0]["id"], "12_3");
        assert_eq!(value["tasks"][0]["exit_code"], 7);
        assert_eq!(value["tasks"][1]["state"], "PENDING");
        assert!(value["tasks"][1]["exit_code"].is_null());
    }
}
