// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks that the types of `job.rs` cannot express: fields that must agree, and the form of texts.
//!
//! Called by `file.rs` with every job that was read or imported. Nothing here looks at the machine.

use std::collections::BTreeSet;

use crate::fault::Fault;
use crate::job::{Array, Dependency, Job, Mount, SHARED_WRITES_SINCE};
use crate::node::shortened;

/// Looks for what cannot be meant.
///
/// # Errors
/// The first fault, with its field; the caller knows the places.
pub(crate) fn check(job: &Job) -> Result<(), Fault> {
    if let Some(name) = &job.name {
        check_name(name)?;
    }
    for (field, text) in [
        ("program", Some(&job.program)),
        ("folder", job.folder.as_ref()),
        ("mpi", job.mpi.as_ref()),
        ("transport", job.transport.as_ref()),
    ] {
        if text.is_some_and(String::is_empty) {
            return Err(wrong(field, "is empty; give a value, or remove the field"));
        }
    }
    check_lengths(job)?;
    for name in job.environment.keys() {
        if name.is_empty() || name.contains('=') {
            let text = format!(
                "`{}` cannot be the name of a variable: it must have a letter and no `=`",
                shortened(name)
            );
            return Err(wrong("environment", &text));
        }
    }
    check_counts(job)?;
    check_hosts(job)?;
    mounts(&job.mounts)?;
    check_version(job)?;
    if let Some(array) = &job.array {
        check_array(array)?;
    }
    check_dependencies(&job.dependencies)
}

fn wrong(field: &str, text: &str) -> Fault {
    Fault::new(text).within(field)
}

/// How many there may be of each: far more than a job needs, and few enough to be compared with
/// each other at once. Chosen.
fn check_lengths(job: &Job) -> Result<(), Fault> {
    for (field, count, most) in [
        ("environment", job.environment.len(), 4096),
        ("hosts", job.hosts.len(), 4096),
        ("mounts", job.mounts.len(), 64),
        ("dependencies", job.dependencies.len(), 256),
    ] {
        if count > most {
            let text = format!("{count} are too many; a job has at most {most}");
            return Err(wrong(field, &text));
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), Fault> {
    let is_good = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
    let begins_well = name.starts_with(|one: char| one.is_ascii_alphanumeric());
    if begins_well && name.len() <= 128 && name.chars().all(is_good) {
        return Ok(());
    }
    let text = format!(
        "`{}` must be 1 to 128 letters, digits, `.`, `-` and `_`, and begin with a letter or a \
         digit",
        shortened(name)
    );
    Err(wrong("name", &text))
}

/// The nodes hold the ranks, and none stays empty.
fn check_counts(job: &Job) -> Result<(), Fault> {
    let ranks = job.ranks.map(|ranks| u64::from(ranks.get()));
    let nodes = job.nodes.map(|nodes| u64::from(nodes.get()));
    let each = job.ranks_per_node.map(|each| u64::from(each.get()));
    let (Some(ranks), Some(nodes)) = (ranks, nodes) else {
        return Ok(());
    };
    if nodes > ranks {
        let text =
            format!("{nodes} nodes for {ranks} ranks leave some empty; take at most {ranks} nodes");
        return Err(wrong("nodes", &text));
    }
    let Some(each) = each else {
        return Ok(());
    };
    let room = nodes * each;
    if ranks > room {
        let text = format!(
            "{ranks} ranks do not fit: {nodes} nodes of {each} ranks hold {room}; lower `ranks`, \
             or raise `nodes` or `ranks_per_node`"
        );
        return Err(wrong("ranks", &text));
    }
    let needed = ranks.div_ceil(each);
    if needed < nodes {
        let text = format!(
            "{ranks} ranks, {each} on each node, fill {needed} of {nodes} nodes; write \
             `nodes: {needed}`"
        );
        return Err(wrong("nodes", &text));
    }
    Ok(())
}

fn check_hosts(job: &Job) -> Result<(), Fault> {
    for (index, host) in job.hosts.iter().enumerate() {
        let is_bad = |one: char| one == ',' || one.is_whitespace();
        if host.is_empty() || host.contains(is_bad) {
            let text = format!(
                "`{}` is no host; write one in each entry, as `a` or `a:4`",
                shortened(host)
            );
            return Err(wrong(&format!("hosts[{index}]"), &text));
        }
    }
    let names: BTreeSet<&str> = job.hosts.iter().map(|host| name_of(host)).collect();
    match job.nodes {
        Some(nodes) if !names.is_empty() && nodes.get() as usize != names.len() => {
            let text = format!(
                "{nodes} nodes, and `hosts` names {}; make them agree, or remove `nodes`",
                names.len()
            );
            Err(wrong("nodes", &text))
        }
        _ => Ok(()),
    }
}

fn name_of(host: &str) -> &str {
    host.split(':').next().unwrap_or(host)
}

/// Fields that a version of the format does not have.
fn check_version(job: &Job) -> Result<(), Fault> {
    let shared = job.mounts.iter().position(|mount| mount.shared_writes);
    match shared {
        Some(index) if job.version.get() < SHARED_WRITES_SINCE => {
            let text = format!(
                "version {} of job files has no such field; write `version: {SHARED_WRITES_SINCE}`",
                job.version
            );
            Err(wrong(&format!("mounts[{index}].shared_writes"), &text))
        }
        _ => Ok(()),
    }
}

/// Each names a bucket and a folder, and no two the same folder.
///
/// # Errors
/// The first that cannot be, with its field.
pub(crate) fn mounts(mounts: &[Mount]) -> Result<(), Fault> {
    for (index, mount) in mounts.iter().enumerate() {
        let field = |name: &str| format!("mounts[{index}].{name}");
        if !is_bucket(&mount.source) {
            let text = format!(
                "`{}` is no bucket; write s3://BUCKET or s3://BUCKET/PREFIX, with a name of 3 to \
                 63 small letters, digits, `.` and `-`",
                shortened(&mount.source)
            );
            return Err(wrong(&field("source"), &text));
        }
        let target = mount.target.trim_end_matches('/');
        let is_plain = |part: &str| !matches!(part, "" | "." | "..");
        if !target.starts_with('/') || !target[1..].split('/').all(is_plain) {
            let text = format!(
                "`{}` must be an absolute path below `/`, without `.` and `..`, as /data",
                shortened(&mount.target)
            );
            return Err(wrong(&field("target"), &text));
        }
        let is_same = |other: &Mount| other.target.trim_end_matches('/') == target;
        if mounts[..index].iter().any(is_same) {
            let text = format!("two buckets cannot be mounted at {}", shortened(target));
            return Err(wrong(&field("target"), &text));
        }
        if mount.read_only && mount.shared_writes {
            let text = "nobody writes to a bucket that is read-only; give one of the two";
            return Err(wrong(&field("shared_writes"), text));
        }
    }
    Ok(())
}

/// Names of buckets: Amazon S3's rules for general purpose buckets.
fn is_bucket(source: &str) -> bool {
    let Some(rest) = source.strip_prefix("s3://") else {
        return false;
    };
    let bucket = rest.split('/').next().unwrap_or_default();
    let is_end = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit();
    (3..=63).contains(&bucket.len())
        && bucket
            .chars()
            .all(|one| is_end(one) || one == '.' || one == '-')
        && bucket.starts_with(is_end)
        && bucket.ends_with(is_end)
}

fn check_array(array: &Array) -> Result<(), Fault> {
    match array.at_once {
        Some(at_once) if at_once.get() > array.size.get() => {
            let text = format!(
                "{at_once} tasks cannot run together: the array has {}; take at most that",
                array.size
            );
            Err(wrong("array.at_once", &text))
        }
        _ => Ok(()),
    }
}

fn check_dependencies(dependencies: &[Dependency]) -> Result<(), Fault> {
    for (index, dependency) in dependencies.iter().enumerate() {
        let is_good = |one: char| one.is_ascii_alphanumeric() || "_-".contains(one);
        let job = &dependency.job;
        let begins_well = job.starts_with(|one: char| one.is_ascii_alphanumeric());
        if !begins_well || !job.chars().all(is_good) {
            let text = format!(
                "`{}` is no number of a job, as 1234 or 1234_5",
                shortened(job)
            );
            return Err(wrong(&format!("dependencies[{index}].job"), &text));
        }
    }
    Ok(())
}
