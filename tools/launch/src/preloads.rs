// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All libraries that the ranks of a job preload, as far as its options, program and MPI say.
//! Called by `job.rs` and `ranks.rs`; asks `libfabric.rs`, `heap.rs`,
//! `sched_yield.rs` and `collectives.rs`.

use crate::fault::Fault;
use crate::preload::{Library, Preloading};
use crate::rank_arguments::RankArguments;
use crate::{collectives, heap, libfabric, sched_yield};

/// The libraries, in the order in which the loader gets them.
///
/// # Errors
/// As `libfabric::library`, `heap::library`, `sched_yield::library` and `collectives::library`.
pub(crate) fn libraries(rank: &RankArguments, job: &Preloading<'_>) -> Result<Vec<Library>, Fault> {
    let libfabric = libfabric::library(rank, job)?;
    let heap = heap::library(rank, job)?;
    let yields = sched_yield::library(rank, job)?;
    let collectives = collectives::library(rank, job)?;
    let all = libfabric.into_iter().chain(heap);
    Ok(all.chain(yields).chain(collectives).collect())
}
