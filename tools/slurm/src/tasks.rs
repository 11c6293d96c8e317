// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state of jobs, from three sources: first the controller, then accounting, then the records
//! that the jobs wrote.
//!
//! Called by `jobs.rs`, `wait.rs`, `logs.rs` and `cancel.rs`.

use std::collections::BTreeSet;

use crate::accounting;
use crate::command;
use crate::fault::Fault;
use crate::fields::Fields;
use crate::job_id::JobId;
use crate::queue::{self, Whose};
use crate::record::Records;
use crate::task::Task;

/// The records of this user on this cluster.
///
/// # Errors
/// `Fault::Slurm` where Slurm does not answer.
pub fn records() -> Result<Option<Records>, Fault> {
    let text = command::ask("scontrol", &["show", "config"])?.or_fail("scontrol show config")?;
    Ok(Records::of_this_user(cluster(&text)))
}

/// The cluster's name in the answer of `scontrol show config`.
fn cluster(text: &str) -> &str {
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    let line = lines.find(|(name, _)| name.trim() == "ClusterName");
    line.map_or("cluster", |(_, value)| value.trim())
}

/// All tasks of a job that anybody knows; the controller's word wins.
///
/// # Errors
/// `Fault::Slurm` where Slurm does not answer, or nobody knows the job.
pub fn of_job(id: &JobId, records: Option<&Records>) -> Result<Vec<Task>, Fault> {
    let mut tasks = queue::tasks(Whose::Job(&id.to_string()))?;
    let is_wanted = |task: &Task| id.task.is_none() || task.task == id.task;
    tasks.retain(is_wanted);
    let is_known = |tasks: &[Task], task: &Task| tasks.iter().any(|one| one.task == task.task);
    let mut add = |more: Vec<Task>| {
        for task in more.into_iter().filter(is_wanted) {
            if !is_known(&tasks, &task) {
                tasks.push(task);
            }
        }
    };
    add(accounting::tasks(id));
    add(records
        .map(|records| records.tasks(id.job))
        .unwrap_or_default());
    if tasks.is_empty() {
        return Err(Fault::Slurm(format!(
            "job {id} is not known: the queue does not have it, accounting neither, and it left no \
             record here; weft jobs lists those that are known"
        )));
    }
    tasks.sort_by_key(|task| task.task);
    Ok(tasks)
}

/// All tasks of this user that are known, the newest jobs last.
///
/// # Errors
/// `Fault::Slurm` where Slurm does not answer.
pub fn of_this_user(records: Option<&Records>) -> Result<Vec<Task>, Fault> {
    let mut tasks = queue::tasks(Whose::Mine)?;
    let queued: BTreeSet<u64> = tasks.iter().map(|task| task.job).collect();
    if let Some(records) = records {
        let forgotten = records
            .jobs()
            .into_iter()
            .filter(|job| !queued.contains(job));
        tasks.extend(forgotten.flat_map(|job| records.tasks(job)));
    }
    tasks.sort_by_key(|task| (task.job, task.task));
    Ok(tasks)
}

/// The file to which a job that was not begun by a script of Weft writes.
#[must_use]
pub fn output_by_slurm(number: &str) -> Option<String> {
    let answer = command::ask("scontrol", &["show", "job", "--oneliner", number]).ok()?;
    let line = answer.out.lines().next()?.to_owned();
    Fields::of(&line).get("StdOut").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clusters_name_is_found_among_the_settings() {
        let text = "Configuration data as of now\nCheckpointType = none\nClusterName             = \
                    weft\n";
        assert_eq!(cluster(text), "weft");
        assert_eq!(cluster(""), "cluster");
    }
}
