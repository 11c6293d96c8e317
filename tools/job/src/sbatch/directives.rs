// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The `#SBATCH` lines of a script: the fields of the job as options of sbatch(1).

use crate::fault::Fault;
use crate::job::{Array, Dependency, Job, When};
use crate::sbatch::script::Script;
use crate::shell::quote_as_text;

/// Each line's option. Those of the user come last and so win: sbatch takes the last of two.
///
/// # Errors
/// A field that sbatch has no option for, or a value that no comment of a shell holds.
pub(super) fn of(script: &Script<'_>) -> Result<Vec<String>, Fault> {
    let job = script.job;
    let mut lines = Vec::new();
    let mut add = |name: &str, value: String| lines.push(format!("--{name}={}", word(&value)));
    if let Some(name) = &job.name {
        add("job-name", name.clone());
    }
    if let Some(nodes) = nodes(job) {
        add("nodes", nodes.to_string());
    }
    if let Some(ranks) = ranks(job) {
        add("ntasks", ranks.to_string());
    }
    if let Some(each) = job.ranks_per_node {
        add("ntasks-per-node", each.to_string());
    }
    if !job.hosts.is_empty() {
        add("nodelist", hosts(job)?);
    }
    if let Some(folder) = &job.folder {
        add("chdir", folder.clone());
    }
    if let Some(limit) = job.time_limit {
        add("time", in_minutes(limit.seconds()));
    }
    if let Some(array) = &job.array {
        add("array", tasks(array));
    }
    if !job.dependencies.is_empty() {
        let list: Vec<String> = job.dependencies.iter().map(dependency).collect();
        add("dependency", list.join(","));
    }
    if job.retries.is_some_and(|retries| retries.get() > 0) {
        lines.push("--requeue".to_owned());
        // Slurm would begin the output anew with each attempt.
        lines.push("--open-mode=append".to_owned());
    } else {
        lines.push("--no-requeue".to_owned());
    }
    lines.extend(script.options.iter().map(|option| word(option)));
    lines.iter().try_for_each(|line| check(line))?;
    Ok(lines)
}

/// For the shell a directive is a comment. A line break in a value would end it, also between
/// quotes, and the rest would be a command of the script.
fn check(line: &str) -> Result<(), Fault> {
    if line.contains(char::is_control) {
        return Err(Fault::new(format!(
            "{line:?} has a control character, and no option of sbatch can be given such a value \
             in a script; write another one"
        )));
    }
    Ok(())
}

/// A word as sbatch reads it behind `#SBATCH`: quoted as for a shell.
fn word(text: &str) -> String {
    quote_as_text(text.as_ref())
}

/// How many nodes hold the ranks, where the job says so.
fn nodes(job: &Job) -> Option<u32> {
    let of_ranks = || match (job.ranks, job.ranks_per_node) {
        (Some(ranks), Some(each)) => Some(ranks.get().div_ceil(each.get())),
        _ => None,
    };
    let of_hosts = (!job.hosts.is_empty()).then(|| u32::try_from(job.hosts.len()).ok());
    let given = job.nodes.map(u32::from);
    given.or(of_hosts.flatten()).or_else(of_ranks)
}

/// All ranks, where the job says so.
pub(super) fn ranks(job: &Job) -> Option<u32> {
    let each = job.ranks_per_node.map_or(1, u32::from);
    let all = || nodes(job).and_then(|nodes| nodes.checked_mul(each));
    job.ranks.map(u32::from).or_else(all)
}

/// The hosts as a node list, which has no ranks of its own for each.
fn hosts(job: &Job) -> Result<String, Fault> {
    if let Some(host) = job.hosts.iter().find(|host| host.contains(':')) {
        return Err(Fault::new(format!(
            "sbatch cannot be told how many ranks {host} takes; write the names alone, with \
             ranks_per_node"
        ))
        .within("hosts"));
    }
    Ok(job.hosts.join(","))
}

/// Slurm counts in minutes, and rounds up.
fn in_minutes(seconds: f64) -> String {
    let minutes = (seconds / 60.0).ceil() as u64;
    format!("{}:{:02}:00", minutes / 60, minutes % 60)
}

fn tasks(array: &Array) -> String {
    let last = array.size.get() - 1;
    match array.at_once {
        Some(most) => format!("0-{last}%{most}"),
        None => format!("0-{last}"),
    }
}

fn dependency(one: &Dependency) -> String {
    let when = match one.when {
        When::Succeeded => "afterok",
        When::Started => "after",
        When::Ended => "afterany",
        When::Failed => "afternotok",
    };
    format!("{when}:{}", one.job)
}
