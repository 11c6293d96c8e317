// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Jobs that the controller knows: those that wait or run, and those that ended some minutes ago
//! (slurm.conf(5), MinJobAge).
//!
//! Called by `tasks.rs`. Source: squeue(1), --Format.

use crate::command::{self, Answer};
use crate::fault::Fault;
use crate::task::{Status, Task};

/// What stands between the fields, and in none of them but the name, which is the last.
const BETWEEN: &str = " |";

/// The fields in the order in which `read_line` takes them.
const FIELDS: [&str; 12] = [
    "JobID",
    "ArrayJobID",
    "ArrayTaskID",
    "State",
    "Reason",
    "exit_code",
    "NumNodes",
    "NodeList",
    "StartTime",
    "EndTime",
    "RestartCnt",
    "Name",
];

/// Whose jobs are wanted.
#[derive(Debug, Clone, Copy)]
pub enum Whose<'a> {
    /// All of this user.
    Mine,
    /// One job, or one task of an array.
    Job(&'a str),
}

/// Asks the controller; no tasks for a job that it does not know.
///
/// # Errors
/// `Fault::Slurm` where it does not answer.
pub fn tasks(whose: Whose<'_>) -> Result<Vec<Task>, Fault> {
    let fields = FIELDS.map(|name| format!("{name}:{BETWEEN}")).join(",");
    let mut words = vec![
        "--noheader",
        "--all",
        "--array",
        "--states=all",
        "--Format",
        &fields,
    ];
    match whose {
        Whose::Mine => words.push("--me"),
        Whose::Job(id) => words.extend(["--jobs", id]),
    }
    let answer = command::ask("squeue", &words)?;
    if !answer.is_ok && is_unknown(&answer) {
        return Ok(Vec::new());
    }
    let text = answer.or_fail("squeue")?;
    Ok(text.lines().filter_map(read_line).collect())
}

/// Whether the controller says that there is no such job.
fn is_unknown(answer: &Answer) -> bool {
    answer.err.contains("Invalid job id")
}

fn read_line(line: &str) -> Option<Task> {
    let parts: Vec<&str> = line.splitn(FIELDS.len(), BETWEEN).collect();
    let &[
        id,
        array,
        task,
        state,
        reason,
        status,
        nodes,
        list,
        began,
        ended,
        restarts,
        name,
    ] = &parts[..]
    else {
        return None;
    };
    // Slurm's default for both is N/A, and the array's number is the job's own without an array.
    let task = task.trim().parse().ok();
    let job = task.map_or(id, |_| array);
    let reason = reason.trim();
    Some(Task {
        job: job.trim().parse().ok()?,
        task,
        name: name.strip_suffix(BETWEEN).unwrap_or(name).to_owned(),
        state: state.trim().to_owned(),
        reason: if reason == "None" { "" } else { reason }.to_owned(),
        status: Status::of_wait(status.trim().parse().unwrap_or(0)),
        nodes: nodes.trim().parse().unwrap_or(0),
        node_list: list.trim().to_owned(),
        began: began.trim().parse().ok(),
        ended: ended.trim().parse().ok(),
        restarts: restarts.trim().parse().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_a_task_whatever_its_name_is() {
        let line = "7 |6 |1 |FAILED |NonZeroExitCode |256 |2 |n[1-2] |1763936586 |1763936590 |3 \
                    |a |b c |";
        let task = read_line(line).unwrap();
        assert_eq!(task.number(), "6_1");
        assert_eq!((task.name.as_str(), task.exit_code()), ("a |b c", Some(1)));
        assert_eq!((task.nodes, task.restarts), (2, 3));
        assert_eq!(
            (task.began, task.ended),
            (Some(1_763_936_586), Some(1_763_936_590))
        );
        let line = "9 |9 |N/A |PENDING |None |0 |1 | |N/A |N/A |0 |x |";
        let task = read_line(line).unwrap();
        assert_eq!((task.number().as_str(), task.reason.as_str()), ("9", ""));
        assert_eq!((task.began, task.exit_code()), (None, None));
        assert_eq!(read_line("odd"), None);
    }
}
