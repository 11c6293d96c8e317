// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Collectives that combine elements. Called by entries; calls communicators. Source: MPI 4.1, 6.9
//! to 6.12.

use std::ffi::{c_int, c_void};

use weft_collectives::Reduction;
use weft_memory::{BytesView, BytesViewMut};

use crate::buffers::{Checked, Data};
use crate::communicators::serve;
use crate::mpi::Mpi;

/// What is combined and how; `None` if it is for the MPI to do, or to refuse.
fn terms(mpi: &Mpi, data: Data, operation: usize) -> Option<(Checked, Reduction)> {
    let kind = mpi.handle(data.kind());
    let reduction = mpi.datatypes.reduction(kind, mpi.handle(operation))?;
    Some((data.checked(mpi)?, reduction))
}

/// MPI_Allreduce: `data` is where the result goes; `None` leaves it to the MPI, here and below.
///
/// # Safety
/// The arguments are a call's of the program, here and below.
pub unsafe fn to_all(
    communicator: usize,
    send: *const c_void,
    data: Data,
    operation: usize,
) -> Option<c_int> {
    serve(communicator, |mpi, served| {
        let (checked, reduction) = terms(mpi, data, operation)?;
        let is_in_place = mpi.is_in_place(send);
        if checked.bytes == 0 {
            return Some(Ok(0));
        }
        if send.is_null() || send == data.address() {
            return None;
        }
        // SAFETY: the program's promise about both buffers; their type is a predefined one, so
        // that the bytes lie side by side.
        let (send, receive) = unsafe {
            (
                BytesView::from_raw(send.cast(), if is_in_place { 0 } else { checked.bytes }),
                BytesViewMut::from_raw(data.address().cast_mut().cast(), checked.bytes),
            )
        };
        let send = (!is_in_place).then_some(send);
        let done = served
            .team
            .allreduce(&mut served.waiting, send, receive, reduction);
        Some(done.map(|()| 0))
    })
}

/// MPI_Reduce: `data` is where the result goes, at the root.
///
/// # Safety
/// As [`to_all`].
pub unsafe fn to_root(
    communicator: usize,
    send: *const c_void,
    data: Data,
    operation: usize,
    root: c_int,
) -> Option<c_int> {
    serve(communicator, |mpi, served| {
        let root = usize::try_from(root)
            .ok()
            .filter(|&root| root < served.team.ranks())?;
        let is_root = served.team.rank() == root;
        let is_in_place = is_root && mpi.is_in_place(send);
        // Only the root's address counts.
        let place = if is_root { data.address() } else { send };
        let (checked, reduction) = terms(mpi, data.at(place), operation)?;
        if checked.bytes == 0 {
            return Some(Ok(0));
        }
        if send.is_null() || (is_root && send == data.address()) {
            return None;
        }
        let receive_bytes = if is_root { checked.bytes } else { 0 };
        let send_bytes = if is_in_place { 0 } else { checked.bytes };
        // SAFETY: the program's promise about its buffers, as far as its rank uses them; the type
        // is a predefined one, so that the bytes lie side by side.
        let (send, receive) = unsafe {
            (
                BytesView::from_raw(send.cast(), send_bytes),
                BytesViewMut::from_raw(place.cast_mut().cast(), receive_bytes),
            )
        };
        let send = (!is_in_place).then_some(send);
        let done = served
            .team
            .reduce(&mut served.waiting, send, receive, reduction, root);
        Some(done.map(|()| 0))
    })
}
