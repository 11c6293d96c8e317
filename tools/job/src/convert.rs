// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files of other systems, read as jobs. Each field is taken, or listed with the reason why not;
//! none is lost without a word.
//!
//! - `object`: the fields of a map, taken one by one.
//! - `batch`: job definitions of AWS Batch; `container`: what a container of theirs runs;
//!   `launcher`: a command that begins with mpirun; `weft_run`: one that begins with weft run.
//! - `parallel_cluster`: configurations of AWS ParallelCluster.

pub(crate) mod batch;
mod container;
mod launcher;
mod object;
pub(crate) mod parallel_cluster;
mod weft_run;
