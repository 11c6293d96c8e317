// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Jobs that Slurm's accounting (slurmdbd) knows. Many clusters have no accounting; then sacct
//! fails, and this module finds no tasks.
//!
//! Called by `tasks.rs`. Source: sacct(1), --parsable2.

use crate::command;
use crate::job_id::JobId;
use crate::task::{Status, Task};

/// The fields in the order in which `read_line` takes them.
const FIELDS: &str = "JobID,State,ExitCode,NNodes,NodeList,Start,End,JobName";

/// The tasks of a job; none where accounting is missing or does not know the job.
#[must_use]
pub fn tasks(id: &JobId) -> Vec<Task> {
    let number = id.to_string();
    let words = ["--noheader", "--allocations", "--parsable2", "--array"];
    let words = [&words[..], &["--format", FIELDS, "--jobs", &number]].concat();
    let answer = command::ask("sacct", &words);
    let text = answer
        .ok()
        .filter(|answer| answer.is_ok)
        .map(|answer| answer.out);
    text.iter()
        .flat_map(|text| text.lines())
        .filter_map(read_line)
        .collect()
}

fn read_line(line: &str) -> Option<Task> {
    let parts: Vec<&str> = line.splitn(8, '|').collect();
    let &[id, state, status, nodes, list, began, ended, name] = &parts[..] else {
        return None;
    };
    let id: JobId = id.parse().ok()?;
    let (code, signal) = status.split_once(':')?;
    Some(Task {
        job: id.job,
        task: id.task,
        name: name.to_owned(),
        // `CANCELLED by 1000`.
        state: state.split_whitespace().next()?.to_owned(),
        reason: String::new(),
        status: Status {
            exit_code: code.parse().ok()?,
            signal: signal.parse().ok()?,
        },
        nodes: nodes.parse().unwrap_or(0),
        node_list: list.to_owned(),
        began: began.parse().ok(),
        ended: ended.parse().ok(),
        restarts: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_sacct_become_tasks() {
        let task = read_line("6_1|CANCELLED by 0|0:15|2|n[1-2]|1763936586|1763936590|a|b").unwrap();
        assert_eq!(
            (task.number().as_str(), task.exit_code()),
            ("6_1", Some(143))
        );
        assert_eq!(
            (task.name.as_str(), task.began),
            ("a|b", Some(1_763_936_586))
        );
        let task = read_line("7|FAILED|3:0|1|n1|1|Unknown|x").unwrap();
        assert_eq!((task.exit_code(), task.ended), (Some(3), None));
        assert_eq!(read_line("7.batch|FAILED|3:0|1|n1|1|2|x"), None);
        assert_eq!(read_line(""), None);
    }
}
