// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What calls with a block for each rank have in common. Called by movement and exchange.

use weft_collectives::Uneven;

use crate::buffers::{Bytes, Data};
use crate::mpi::Mpi;
use crate::outcome::{Outcome, Stop};
use crate::served::Served;

/// What a rank gives; `None` if that lies in its other buffer.
///
/// # Errors
/// As [`Data::checked`], and [`Stop::Code`].
///
/// # Safety
/// The data must be readable as they are described.
#[inline]
pub unsafe fn given(mpi: &Mpi, send: Data, is_in_place: bool) -> Result<Option<Bytes>, Stop> {
    if is_in_place {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { send.checked(mpi)?.read(mpi).map(Some) }
}

/// How a call without bytes ends, whose other buffer the MPI may refuse.
///
/// # Errors
/// As [`Data::checked`].
#[cold]
pub fn check_other(mpi: &Mpi, other: Data) -> Outcome {
    if mpi.is_in_place(other.address()) {
        return Ok(());
    }
    other.checked(mpi).map(|_| ())
}

/// What a rank gives of plain data, `None` if that lies in its other buffer; of others, which would
/// have to be packed, nothing: they are not read in place, and the call is refused by all.
///
/// # Errors
/// As [`Data::checked`].
///
/// # Safety
/// As [`given`].
pub unsafe fn given_in_place(
    mpi: &Mpi,
    send: Data,
    is_other_plain: bool,
) -> Result<Option<Bytes>, Stop> {
    if mpi.is_in_place(send.address()) {
        return Ok((!is_other_plain).then_some(Bytes::NONE));
    }
    let send = send.checked(mpi)?;
    if !send.is_plain() {
        return Ok(Some(Bytes::NONE));
    }
    // SAFETY: the caller's promise.
    unsafe { send.read(mpi).map(Some) }
}

/// What a rank has found of its arguments in a call whose lengths the others do not know. A rank
/// that cannot be served tells the others so, and all leave the call to the MPI.
///
/// # Errors
/// [`Stop::Left`], [`Stop::Fault`].
pub fn or_refuse<T>(found: Result<T, Stop>, served: &mut Served, call: Uneven) -> Result<T, Stop> {
    if found.is_err() {
        served.team.refuse(&mut served.waiting, call)?;
    }
    found
}
