// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `weft run` and its node agents on other hosts say to each other: one JSON object on a line,
//! over the standard streams of the remote shell. Paths and values of variables stand there byte
//! for byte (`exact_bytes.rs`).
//!
//! Used by `node_agents.rs` (here) and `node_agent.rs` (there). A node agent is ours and started by
//! us, but its host's shell may print a greeting first: lines that do not parse are passed over.
//! A first order that does not parse comes from another Weft, and is answered with the version.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weft_job::size::ShmSize;

use crate::exact_bytes;
use crate::mounts::keeper_request::KeeperRequest;
use crate::report::Report;

/// The variable that marks every process of a job, so that a node agent finds them. Its value is
/// random.
pub const MARK: &str = "WEFT_JOB";

/// To a node agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    /// The first line.
    Begin(Box<Begin>),
    /// Every second: this side is alive.
    Tick,
    /// The job has ended: tell what came in, end what is left after a while, and go.
    End,
    /// The same, but the user does not want to wait: end what is left at once.
    Kill,
}

/// What a node agent needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// Our version, which must be the node agent's too.
    pub weft: String,
    /// The value of `MARK` in this job.
    pub job: String,
    /// The name of the socket for reports, where they are wanted.
    pub report: Option<String>,
    /// Files that must be there.
    #[serde(with = "exact_bytes::paths")]
    pub files: Vec<PathBuf>,
    /// How the names of the shared memory begin that ranks of this MPI leave when they are killed.
    pub leftovers: Vec<String>,
    /// After how many seconds without a line the other side counts as gone.
    pub patience_seconds: f64,
    /// The size of the `/dev/shm` that the ranks there shall have, where one was asked for.
    pub shm_size: Option<ShmSize>,
    /// What is to be mounted there, if anything.
    pub mounts: Option<KeeperRequest>,
    /// Variables by which the stores of `mounts` are reached, credentials among them.
    #[serde(with = "exact_bytes::variables")]
    pub variables: BTreeMap<String, OsString>,
}

impl Begin {
    /// The same for one host, by the name that the job has for it.
    #[must_use]
    pub fn for_host(&self, host: &str) -> Self {
        let mut begin = self.clone();
        if let Some(mounts) = &mut begin.mounts {
            mounts.nodes = mounts.nodes.take().and_then(|nodes| nodes.seen_from(host));
        }
        begin
    }
}

/// From a node agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromAgent {
    /// The answer to `Begin`.
    Ready(Ready),
    /// Every second.
    Tick,
    /// The last line.
    Ended(Ended),
}

/// What a node agent found on its host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The version there.
    pub weft: String,
    /// Ranks that find a core there.
    pub cores: u32,
    /// The names of the cores.
    pub core_names: BTreeSet<String>,
    /// The kernel's boot id.
    pub boot: Option<String>,
    /// Those of the files that are not there.
    #[serde(with = "exact_bytes::paths")]
    pub missing: Vec<PathBuf>,
    /// Why the ranks there cannot have such a `/dev/shm`.
    pub shm_refusal: Option<String>,
    /// Why the buckets are not mounted there.
    pub mount_refusal: Option<String>,
}

/// What a node agent saw of the job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Reports of the ranks on this host.
    pub reports: Vec<Report>,
    /// Datagrams that were none.
    pub unreadable: u32,
    /// Processes of the job that had to be ended.
    pub ended_count: usize,
    /// What was written there and is not in its bucket.
    pub unpublished: Option<String>,
}
