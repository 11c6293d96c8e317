// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a batch script. Written out by `directives.rs` and `body.rs`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::fault::Fault;
use crate::job::Job;

/// How the ranks of a job start inside its allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// By srun, which offers this PMI: `pmix`, `pmi2`.
    Srun {
        /// The value of `srun --mpi`.
        pmi: String,
    },
    /// By Open MPI's mpirun at this path, which asks Slurm for the nodes.
    OpenMpi(PathBuf),
    /// By Hydra's mpiexec (MPICH, Intel MPI) at this path, which asks Slurm for the nodes.
    Hydra(PathBuf),
    /// By `weft run --slurm`, which chooses one of these inside the allocation.
    Inside,
}

/// A batch script to be.
#[derive(Debug, Clone)]
pub struct Script<'a> {
    /// The job. Its `transport` is `weft`, `native` or nothing. What its ranks run stands below:
    /// the text of a job file does not hold what a command line does.
    pub job: &'a Job,
    /// The program and its arguments.
    pub program: &'a [OsString],
    /// Variables of the ranks.
    pub variables: &'a BTreeMap<String, OsString>,
    /// The value of `--mpi`, if there is one.
    pub mpi: Option<OsString>,
    /// How its ranks start.
    pub start: Start,
    /// The command `weft` on the nodes: a path or a name.
    pub weft: &'a OsStr,
    /// Further options of sbatch, each as it stands behind `#SBATCH`.
    pub options: &'a [String],
    /// Whether the rank stands in front of each line of output.
    pub label: bool,
    /// Further options of `weft exec`.
    pub exec_options: &'a [String],
}

impl Script<'_> {
    /// What no script can do.
    ///
    /// # Errors
    /// The field, with what to do instead.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let job = self.job;
        let wrong = |field: &str, text: String| Err(Fault::new(text).within(field));
        if let Some(transport) = &job.transport
            && !["weft", "native"].contains(&transport.as_str())
        {
            return wrong(
                "transport",
                format!("{transport} is not possible under Slurm; write weft or native"),
            );
        }
        if let Some(size) = job.shm_size.filter(|_| !self.is_over_weft()) {
            let text = format!("{size} is given by weft exec; write transport: weft, or remove it");
            return wrong("shm_size", text);
        }
        if let Some(mount) = job.mounts.first().filter(|_| !self.is_over_weft()) {
            let text = format!(
                "{} is mounted by weft exec; write transport: weft, or remove it",
                mount.source
            );
            return wrong("mounts", text);
        }
        if let Some(name) = self.variables.keys().find(|name| *name == KEY) {
            let text = format!(
                "{name} would stand in the script; the job makes a key of its own, so remove it, \
                 or set {KEY}_FILE to the path of a file"
            );
            return wrong("environment", text);
        }
        let is_name = |name: &str| {
            let mut letters = name.bytes();
            let begins = letters.next().is_some_and(|one| !one.is_ascii_digit());
            begins
                && name
                    .bytes()
                    .all(|one| one.is_ascii_alphanumeric() || one == b'_')
        };
        if let Some(name) = self.variables.keys().find(|name| !is_name(name)) {
            let text = format!(
                "`{name}` is no variable of a shell: letters, digits and `_`, no digit first; \
                 rename it"
            );
            return wrong("environment", text);
        }
        Ok(())
    }

    /// Whether Weft carries the messages.
    pub(super) fn is_over_weft(&self) -> bool {
        self.job.transport.as_deref() != Some("native")
    }
}

/// The variable that holds a job's key.
pub const KEY: &str = "FI_WEFT_JOB_KEY";
