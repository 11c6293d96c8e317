// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bucket that a job has mounted. Found by `mounts.rs`, part of a report of `rates.rs`.

use serde::Serialize;

/// A bucket in a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MountRow {
    /// The job, where it is known.
    pub job: Option<String>,
    /// The bucket and the prefix, as `s3://data/run7/`.
    pub source: String,
    /// Where it appears.
    pub folder: String,
    /// Whether writing is refused.
    pub read_only: bool,
    /// How many processes with endpoints see it.
    pub processes: u32,
}
