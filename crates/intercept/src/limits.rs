// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long the data of a call may be that goes through the segment, where two copies are made.
//! Longer ones are read where they lie if the ranks share their memory; else they go to the MPI,
//! whose messages Weft carries with one copy. Asked by movement, exchange and reduction.
//! docs/collectives.md, clause 6.

use weft_collectives::Leaving;
use weft_mpi_abi::Abi;

use crate::buffers::LONGEST_BYTES;
use crate::calls::Call;
use crate::mpi::Mpi;
use crate::outcome::{Outcome, Stop};
use crate::served::Served;

/// The longest block of one rank, or for all of them. Measured
/// (docs/lab/2026-11-24-collectives-under-four-mpis.md, and of two ranks
/// 2026-11-24-collectives-between-hosts.md, where Open MPI's messages take less time).
pub const fn longest_block_bytes(call: Call, abi: Abi, ranks: usize) -> usize {
    match (call, abi, ranks) {
        (Call::Reduce | Call::Allgather | Call::Alltoall, Abi::OpenMpi, 2) => 2 * 1024,
        (Call::Allreduce, Abi::OpenMpi, 2) | (Call::Allgather, _, 2) => 4 * 1024,
        (Call::Bcast | Call::Gather | Call::Allgather | Call::Scatter | Call::Alltoall, ..) => {
            32 * 1024
        }
        // Its root combines straight out of what it is sent.
        (Call::Reduce, Abi::OpenMpi, _) => 16 * 1024,
        // The arithmetic passes over the data anyway.
        _ => LONGEST_BYTES,
    }
}

/// Whether Weft serves a call in whose form with a length for each rank only some ranks know the
/// lengths (docs/collectives.md, clause 4.8); by whether it pays that all ranks wait for all.
/// Measured (docs/lab/2026-11-27-uneven-blocks.md): a rank of Open MPI sends and goes on, which
/// takes less time than to agree on a length first. Where ranks share cores, this holds under each
/// MPI (docs/lab/2026-11-28-uneven-blocks-on-shared-cores.md).
const fn are_parts_served(call: Call, abi: Abi, ranks: usize, waits_pay: bool) -> bool {
    match (call, abi, ranks) {
        (Call::Gather | Call::Scatter, Abi::OpenMpi, 2) => false,
        (Call::Gather | Call::Scatter, ..) => waits_pay,
        _ => true,
    }
}

/// Whether a call is served whose lengths only some ranks know; alike on all ranks.
///
/// # Errors
/// [`Stop::Left`] if it is not.
pub fn unless_parts_are_left(mpi: &Mpi, call: Call, served: &Served) -> Result<(), Stop> {
    match are_parts_served(call, mpi.abi, served.team.ranks(), served.waits_pay) {
        true => Ok(()),
        false => Err(Stop::Left),
    }
}

/// The most that ranks which share cores give each other in an alltoall, all together. Measured
/// (docs/lab/2026-11-24-collectives-between-hosts.md): with 2 MiB Intel MPI's messages are quicker.
const SHARED_CORES_BYTES: usize = 1 << 20;

/// Longer data are read in place where they can be. Measured
/// (docs/lab/2026-11-24-data-read-in-place.md). They have the 8 KiB of whole pages that it takes to
/// be shared, wherever they begin.
const READ_IN_PLACE_BYTES: usize = 12 * 1024;

/// From here up to that length it depends on where they begin, so that they are tried in place, and
/// seldom where that was refused. Measured (docs/lab/2026-11-27-middle-lengths-in-place.md), of
/// ranks with a core each.
const TRIED_IN_PLACE_BYTES: usize = 8 * 1024;

/// Whether blocks of so many bytes, one for each rank, are short enough for the segment; alike on
/// all ranks that name the same length.
///
/// # Errors
/// [`Stop::Long`] if they are not.
#[inline]
pub fn within(mpi: &Mpi, call: Call, block_bytes: usize, served: &Served) -> Result<(), Stop> {
    let all_bytes = block_bytes.saturating_mul(served.team.ranks());
    if block_bytes <= longest_block_bytes(call, mpi.abi, served.team.ranks())
        && all_bytes <= LONGEST_BYTES
    {
        Ok(())
    } else {
        Err(Stop::Long)
    }
}

/// [`within`], before all ranks leave a long call to the MPI. A rank that has named another length
/// has an error here, and the others would wait for it in the MPI. So all meet before they leave
/// the call, unless each has heard of all others while they tried to read in place.
///
/// # Errors
/// As there; [`Stop::Fault`].
#[inline]
pub fn within_or_agreed(
    mpi: &Mpi,
    call: Call,
    root: usize,
    block_bytes: usize,
    served: &mut Served,
) -> Result<(), Stop> {
    match within(mpi, call, block_bytes, served) {
        Err(stop) if block_bytes > READ_IN_PLACE_BYTES => {
            agree_to_leave(call, root, block_bytes, served)?;
            Err(stop)
        }
        end => end,
    }
}

#[cold]
fn agree_to_leave(
    call: Call,
    root: usize,
    block_bytes: usize,
    served: &mut Served,
) -> Result<(), Stop> {
    // Of these calls each rank but the root has heard the root only.
    let hears_one = matches!(call, Call::Bcast | Call::Scatter);
    if hears_one || !can_be_read_in_place(call, block_bytes, served) {
        let mut leaving = Leaving(&mut served.team);
        leaving.agree(&mut served.waiting, call as u8, root, block_bytes)?;
    }
    Ok(())
}

/// The longest block of a call that does not wait. Measured
/// (docs/lab/2026-11-26-calls-that-do-not-wait.md): of 8 KiB the MPI's messages are quicker.
const NONBLOCKING_BYTES: usize = 2 * 1024;

/// Whether blocks of so many bytes are served in a call that does not wait; alike on all ranks that
/// name the same length.
///
/// # Errors
/// [`Stop::Left`] if they are not, or have no bytes, which the MPI does as quickly.
pub fn within_nonblocking(mpi: &Mpi, call: Call, block_bytes: usize) -> Result<(), Stop> {
    match (call, mpi.abi) {
        // Its root has sent before the others look. Measured, as above.
        (Call::Bcast, Abi::OpenMpi) => Err(Stop::Left),
        _ if (1..=NONBLOCKING_BYTES).contains(&block_bytes) => Ok(()),
        _ => Err(Stop::Left),
    }
}

/// Whether blocks of so many bytes, one for each rank, are read where they lie, if they can be;
/// alike on all ranks that name the same length. If so, [`unless_refused`] must hear how it went.
/// If not, [`within`] decides.
#[inline]
pub fn are_read_in_place(call: Call, block_bytes: usize, served: &mut Served) -> bool {
    if block_bytes < TRIED_IN_PLACE_BYTES || !can_be_read_in_place(call, block_bytes, served) {
        return false;
    }
    let shares_cores = served.waiting.shares_cores();
    block_bytes > READ_IN_PLACE_BYTES || (!shares_cores && served.in_place_tries.is_due(call))
}

#[inline]
fn can_be_read_in_place(call: Call, block_bytes: usize, served: &Served) -> bool {
    let all_bytes = block_bytes.saturating_mul(served.team.ranks());
    let most_bytes = match call {
        Call::Alltoall if served.waiting.shares_cores() => SHARED_CORES_BYTES,
        _ => LONGEST_BYTES,
    };
    served.memories.is_some() && all_bytes <= most_bytes
}

/// Whether a rank that knows of blocks up to so long in an alltoall shows its own to the others.
/// Each rank decides by itself, since in the call all find out whether all do. A try that fails
/// costs no step, so none is put off.
#[inline]
pub fn are_parts_shown(longest_bytes: usize, served: &Served) -> bool {
    let is_long = match served.waiting.shares_cores() {
        true => longest_bytes > READ_IN_PLACE_BYTES,
        false => longest_bytes >= TRIED_IN_PLACE_BYTES,
    };
    is_long && can_be_read_in_place(Call::Alltoall, longest_bytes, served)
}

/// How a call ends that was tried in place: `None` if it was refused, by all ranks alike.
#[inline]
pub fn unless_refused(
    call: Call,
    block_bytes: usize,
    served: &mut Served,
    outcome: Outcome,
) -> Option<Outcome> {
    let is_refused = outcome == Err(Stop::Left);
    note_try(call, block_bytes, served, is_refused);
    (!is_refused).then_some(outcome)
}

/// Notes whether a call could be carried out in place.
#[inline]
pub fn note_try(call: Call, block_bytes: usize, served: &mut Served, is_refused: bool) {
    if block_bytes <= READ_IN_PLACE_BYTES {
        served.in_place_tries.note(call, is_refused);
    }
}

/// Whether data of so many bytes, or a barrier, are served between hosts; alike on all ranks.
/// Measured (docs/lab/2026-11-24-collectives-between-hosts.md).
///
/// # Errors
/// [`Stop::Left`] if they are not.
pub fn within_hosts(mpi: &Mpi, call: Call, bytes: usize) -> Result<(), Stop> {
    let most_bytes = match (call, mpi.abi) {
        // Its root has sent all before others look, and goes on.
        (Call::Bcast, Abi::OpenMpi) => return Err(Stop::Left),
        (Call::Bcast, _) => LONGEST_BYTES,
        // Longer ones the MPI splits among all ranks, which sends fewer bytes.
        (Call::Allreduce, _) => 8 * 1024,
        _ => 0,
    };
    if bytes <= most_bytes {
        Ok(())
    } else {
        Err(Stop::Left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gatherv_and_scatterv_of_two_ranks_of_open_mpi_are_left_to_it() {
        for call in [Call::Gather, Call::Scatter] {
            assert!(!are_parts_served(call, Abi::OpenMpi, 2, true));
            assert!(are_parts_served(call, Abi::OpenMpi, 3, true));
            assert!(are_parts_served(call, Abi::Mpich, 2, true));
            assert!(are_parts_served(call, Abi::Standard, 2, true));
        }
        assert!(are_parts_served(Call::Alltoall, Abi::OpenMpi, 2, true));
    }

    #[test]
    fn gatherv_and_scatterv_are_left_to_each_mpi_where_waits_do_not_pay() {
        for abi in [Abi::OpenMpi, Abi::Mpich, Abi::Standard] {
            assert!(!are_parts_served(Call::Gather, abi, 3, false));
            assert!(!are_parts_served(Call::Scatter, abi, 3, false));
            assert!(are_parts_served(Call::Alltoall, abi, 3, false));
        }
    }

    /// Measured (docs/lab/2026-11-27-what-to-leave-to-intel-mpi.md): to leave them costs more.
    #[test]
    fn two_ranks_of_intel_mpi_are_served_where_its_own_transport_is_a_little_faster() {
        assert_eq!(
            longest_block_bytes(Call::Alltoall, Abi::Mpich, 2),
            32 * 1024
        );
        assert_eq!(
            longest_block_bytes(Call::Allgather, Abi::Mpich, 2),
            4 * 1024
        );
        assert!(are_parts_served(Call::Alltoall, Abi::Mpich, 2, true));
    }
}
