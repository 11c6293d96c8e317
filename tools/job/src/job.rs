// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The contents of a job file: the types behind docs/job-file.md, version 2.
//!
//! Read by `file.rs`, checked by `check.rs`, written by `write.rs`. `weft run` takes from a job
//! what its options did not say. The comments of the fields are also the texts of the JSON schema.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::size::ShmSize;
use crate::time::TimeLimit;
use crate::whole::Whole;

/// The newest version of the format; all older ones are read, too.
pub const VERSION: u32 = 2;
/// From this version on a mount may have `shared_writes`.
pub const SHARED_WRITES_SINCE: u32 = 2;

/// The most `retries`, here and for `weft run`.
pub const RETRIES_MOST: u32 = 9;

/// A job: a program, its ranks, where they run and what they need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
// structure: allow struct-fields because each is a field of the file
pub struct Job {
    /// The version of the format, 1 or 2.
    pub version: Whole<1, VERSION>,
    /// The name under which lists of jobs show it: 1 to 128 letters, digits, `.`, `-` and `_`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The program: a path, or a name to be found on PATH.
    #[cfg_attr(test, schemars(with = "crate::schema::Text"))]
    pub program: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<crate::schema::Text>"))]
    pub arguments: Vec<String>,
    /// The folder that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Ranks in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Whole<1, 2_147_483_647>>,
    /// Nodes that the job takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Whole<1, 65_536>>,
    /// Ranks on each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks_per_node: Option<Whole<1, 65_536>>,
    /// Hosts, each a name or `name:ranks`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Which MPI: auto, openmpi, mpich, intel, debian-openmpi, debian-mpich, or the path of an
    /// mpiexec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi: Option<String>,
    /// What carries the messages: weft, native, tcp, or ofi:PROVIDER.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Variables of the ranks: name and value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, crate::schema::Text>"))]
    pub environment: BTreeMap<String, String>,
    /// The size of /dev/shm on each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shm_size: Option<ShmSize>,
    /// Buckets to be mounted on each node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// How long the job may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<TimeLimit>,
    /// How often a job that failed is run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Whole<0, RETRIES_MOST>>,
    /// Many jobs of one kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Array>,
    /// Jobs that this one waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
}

impl Job {
    /// A job of this program and nothing else.
    #[must_use]
    pub fn of(program: String) -> Self {
        Self {
            version: Whole::least(),
            name: None,
            program,
            arguments: Vec::new(),
            folder: None,
            ranks: None,
            nodes: None,
            ranks_per_node: None,
            hosts: Vec::new(),
            mpi: None,
            transport: None,
            environment: BTreeMap::new(),
            shm_size: None,
            mounts: Vec::new(),
            time_limit: None,
            retries: None,
            array: None,
            dependencies: Vec::new(),
        }
    }

    /// Gives the file the least version that has all its fields, so that as many releases of Weft
    /// as possible read it.
    pub(crate) fn set_version(&mut self) {
        let is_shared = self.mounts.iter().any(|mount| mount.shared_writes);
        let newer = Whole::new(SHARED_WRITES_SINCE).filter(|_| is_shared);
        self.version = newer.unwrap_or_else(Whole::least);
    }
}

/// A bucket in the place of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// The bucket, with a prefix or without: `s3://bucket/prefix`.
    pub source: String,
    /// Where it appears: an absolute path.
    pub target: String,
    /// Whether writing to it is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// Whether several hosts may write one file of it at once (from version 2 on).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_writes: bool,
}

/// Tasks that differ only in their number, which begins at 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// How many tasks.
    pub size: Whole<1, 10_000>,
    /// How many of them may run together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<Whole<1, 10_000>>,
}

/// A job that another one waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Dependency {
    /// Its number, as the scheduler gave it.
    #[cfg_attr(test, schemars(with = "crate::schema::Text"))]
    pub job: String,
    /// What must have become of it.
    #[serde(default)]
    pub when: When,
}

/// What must have become of a job before another one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// It ended with success.
    #[default]
    Succeeded,
    /// It began.
    Started,
    /// It ended, however.
    Ended,
    /// It failed.
    Failed,
}
