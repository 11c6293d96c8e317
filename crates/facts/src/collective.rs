// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The collectives that Weft may carry out, and where a process shows how many calls of each went
//! which way (docs/collectives.md, clause 9). Kept to by crates/intercept; read by `weft top`.

/// What they are called in reports, each with all its forms.
pub const NAMES: [&str; 11] = [
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "gather",
    "allgather",
    "scatter",
    "alltoall",
    "reduce_scatter",
    "scan",
    "exscan",
];

/// The name of the anonymous file with the counts; it ends with the version of its format.
pub const FILE_NAME: &str = "weft-collectives-1";

/// Slots of the file: the first for communicators that are gone or have none, the others for one
/// communicator each. Specified: clause 9.
pub const SLOTS: usize = 64;

/// Bytes of a slot: for each collective a word with the calls that Weft served, then for each one
/// with those that the MPI did. Specified: clause 9.
pub const SLOT_BYTES: usize = 2 * NAMES.len() * size_of::<u64>();

/// Bytes of the file: whole pages.
pub const FILE_BYTES: usize = (SLOTS * SLOT_BYTES).next_multiple_of(4096);
