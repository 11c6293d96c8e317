// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line of the `weft run` that the other system starts.
//!
//! `convert/weft_run.rs` reads this command line back.

use crate::job::Job;

/// What the command line says besides the program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Included<'a> {
    /// The file in which the system lists the job's hosts.
    pub hostfile: Option<&'a str>,
    /// Whether it sets the job's variables.
    pub has_variables: bool,
    /// Whether it mounts the job's buckets.
    pub has_mounts: bool,
}

/// The words of the command line, each by itself.
pub(super) fn command_line(job: &Job, included: Included<'_>) -> Vec<String> {
    let mut words = vec!["weft".to_owned(), "run".to_owned()];
    let mut option = |name: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    };
    option("--hostfile", included.hostfile.map(str::to_owned));
    option("-n", job.ranks.map(|ranks| ranks.to_string()));
    option("--ppn", job.ranks_per_node.map(|each| each.to_string()));
    option("--mpi", job.mpi.clone());
    option("--transport", job.transport.clone());
    option("--wdir", job.folder.clone());
    if included.has_variables {
        for (name, value) in &job.environment {
            option("--env", Some(format!("{name}={value}")));
        }
    }
    if included.has_mounts {
        for mount in &job.mounts {
            option("--mount", Some(mount.to_string()));
        }
    }
    words.push("--".to_owned());
    words.push(job.program.clone());
    words.extend(job.arguments.iter().cloned());
    words
}
