// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long the data of a call may be that goes through the segment, where two copies are made.
//! Longer ones are read where they lie if the ranks share their memory; else they go to the MPI,
//! whose messages Weft carries with one copy. Asked by movement, exchange and reduction.
//! docs/collectives.md, clause 6.

use weft_mpi_abi::Abi;

use crate::buffers::LONGEST_BYTES;
use crate::calls::Call;
use crate::mpi::Mpi;
use crate::outcome::Stop;
use crate::served::Served;

/// The longest block of one rank, or for all of them. Measured
/// (docs/lab/2026-11-24-collectives-under-four-mpis.md).
const fn longest_block_bytes(call: Call, abi: Abi) -> usize {
    match (call, abi) {
        (Call::Bcast | Call::Gather | Call::Allgather | Call::Scatter | Call::Alltoall, _) => {
            32 * 1024
        }
        // Its root combines straight out of what it is sent.
        (Call::Reduce, Abi::OpenMpi) => 16 * 1024,
        // The arithmetic passes over the data anyway.
        _ => LONGEST_BYTES,
    }
}

/// Longer data are read in place where they can be. Measured
/// (docs/lab/2026-11-24-data-read-in-place.md); shorter ones are mostly too short to be shared.
const READ_IN_PLACE_BYTES: usize = 12 * 1024;

/// Whether blocks of so many bytes, one for each rank, are short enough for the segment; alike on
/// all ranks that name the same length.
///
/// # Errors
/// [`Stop::Left`] if they are not.
#[inline]
pub fn within(mpi: &Mpi, call: Call, block_bytes: usize, served: &Served) -> Result<(), Stop> {
    let all_bytes = block_bytes.saturating_mul(served.team.ranks());
    if block_bytes <= longest_block_bytes(call, mpi.abi) && all_bytes <= LONGEST_BYTES {
        Ok(())
    } else {
        Err(Stop::Left)
    }
}

/// Whether blocks of so many bytes, one for each rank, are read where they lie, if they can be;
/// alike on all ranks that name the same length. If they cannot, [`within`] decides.
#[inline]
pub fn are_read_in_place(block_bytes: usize, served: &Served) -> bool {
    block_bytes > READ_IN_PLACE_BYTES
        && served.memories.is_some()
        && block_bytes.saturating_mul(served.team.ranks()) <= LONGEST_BYTES
}
