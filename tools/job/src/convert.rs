// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads files of other systems as jobs. Each field is taken, or listed with the reason why not; no
//! field is dropped silently.
//!
//! - `object`: the fields of a map, taken one by one.
//! - `batch`: job definitions of AWS Batch; `container`: what a container of such a job runs;
//!   `launcher`: a command that begins with mpirun; `weft_run`: one that begins with weft run.
//! - `parallel_cluster`: configurations of AWS ParallelCluster.

pub(crate) mod batch;
mod container;
mod launcher;
mod object;
pub(crate) mod parallel_cluster;
mod weft_run;

use crate::fault::Fault;
use crate::whole::Whole;

/// A number that stands behind an option of a launcher.
///
/// # Errors
/// It is none, or not within the bounds.
fn count<const LEAST: u32, const MOST: u32>(
    option: &str,
    text: String,
) -> Result<Whole<LEAST, MOST>, Fault> {
    Whole::try_from(text).map_err(|error| Fault::new(format!("{option}: {error}")))
}
