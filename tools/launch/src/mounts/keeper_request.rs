// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a keeper is asked for: one word on its command line, which holds nothing secret.

use serde::{Deserialize, Serialize};
use weft_job::job::Mount;
use weft_job::size::ShmSize;
use weft_os::process;

use crate::fault::Fault;
use crate::mounts::nodes::Nodes;

/// What to keep, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeeperRequest {
    /// The abstract socket on which it answers ranks.
    pub name: String,
    /// The rank that started it; none where a process holds it by a pipe.
    pub first: Option<u32>,
    /// The size of `/dev/shm`, where one was asked for.
    pub shm_size: Option<ShmSize>,
    /// The buckets, in the order in which they are mounted.
    pub mounts: Vec<Mount>,
    /// The hosts whose mounts fetch together, if there are several.
    pub nodes: Option<Nodes>,
}

impl KeeperRequest {
    /// The name for what nobody else has: a job's random mark, or a launcher's process and start.
    pub(crate) fn name(of: &str) -> String {
        format!("weft-mounts/{}/{of}", process::own_uid())
    }

    /// As it stands on a command line.
    ///
    /// # Errors
    /// `Fault::System` where it cannot be written.
    pub(crate) fn to_word(&self) -> Result<String, Fault> {
        serde_json::to_string(self)
            .map_err(std::io::Error::from)
            .map_err(Fault::system("writing what to mount"))
    }

    /// As [`KeeperRequest::to_word`] wrote it.
    ///
    /// # Errors
    /// `Fault::Usage` for anything else.
    pub(crate) fn from_word(word: &str) -> Result<Self, Fault> {
        serde_json::from_str(word)
            .map_err(|why| Fault::Usage(format!("mounts is not started by hand: {why}")))
    }
}
