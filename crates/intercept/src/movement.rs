// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Collectives that bring bytes to ranks as they are. Called by entries; calls communicators.
//! Source: MPI 4.1, 6.3 to 6.8.

use std::ffi::c_int;

use crate::buffers::Data;
use crate::communicators::serve;

/// MPI_Barrier; `None` leaves it to the MPI, here and below.
///
/// # Safety
/// The arguments are a call's of the program, here and below.
pub unsafe fn barrier(communicator: usize) -> Option<c_int> {
    serve(communicator, |_, served| {
        Some(served.team.barrier(&mut served.waiting).map(|()| 0))
    })
}

/// MPI_Bcast.
///
/// # Safety
/// As [`barrier`].
pub unsafe fn broadcast(communicator: usize, data: Data, root: c_int) -> Option<c_int> {
    serve(communicator, |mpi, served| {
        let root = usize::try_from(root)
            .ok()
            .filter(|&root| root < served.team.ranks())?;
        let data = data.checked(mpi)?;
        if data.bytes == 0 {
            return Some(Ok(0));
        }
        let is_root = served.team.rank() == root;
        // SAFETY: the program's promise about the data.
        let bytes = unsafe {
            if is_root {
                data.read(mpi)
            } else {
                Ok(data.room())
            }
        };
        let mut bytes = match bytes {
            Ok(bytes) => bytes,
            Err(code) => return Some(Ok(code)),
        };
        // SAFETY: as above; the root's bytes are not written.
        let view = unsafe { bytes.view_mut() };
        if let Err(fault) = served.team.bcast(&mut served.waiting, view, root) {
            return Some(Err(fault));
        }
        if is_root {
            return Some(Ok(0));
        }
        // SAFETY: as above.
        Some(Ok(unsafe { data.written(mpi, bytes) }))
    })
}
