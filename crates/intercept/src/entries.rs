// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of MPI that this library stands before, by the standard's names. Each serves the
//! call, or hands it on as it came. Called by the program. Source: MPI 4.1, 15.2 (profiling).
//!
//! Fortran programs come here through the MPI's own Fortran library where that calls the names of C
//! (MPICH and relatives). Open MPI's calls the second names, and is not served.

use std::ffi::{c_int, c_void};

use crate::buffers::Data;
use crate::next::Next;
use crate::{movement, reduction};

/// A handle of any interface (crates/mpi-abi).
type Handle = usize;
/// Where data are read.
type Source = *const c_void;
/// Where data are written.
type Target = *mut c_void;

/// What a call answers that finds no MPI behind this library: MPI_ERR_OTHER of most interfaces.
const NO_MPI: c_int = 16;

/// One function: its name, the type of its counts, its arguments, and how it is served.
macro_rules! entry {
    ($name:ident, $count:ty, ($($argument:ident: $kind:ty),*) => $served:expr) => {
        #[allow(non_snake_case, reason = "the standard's name")]
        mod $name {
            use super::*;

            #[allow(dead_code, reason = "a barrier has no count")]
            type Count = $count;

            // SAFETY: the section is C's, and CStr ends at the only zero.
            static NEXT: Next = Next::new(
                match std::ffi::CStr::from_bytes_with_nul(
                    concat!(stringify!($name), "\0").as_bytes(),
                ) {
                    Ok(name) => name,
                    Err(_) => panic!("a name has no zero"),
                },
            );

            // SAFETY: the name and the type are the standard's, and whoever defines the same name
            // elsewhere is called in the end.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
                // SAFETY: the caller keeps the standard's promises about its arguments.
                if let Some(code) = unsafe { $served } {
                    return code;
                }
                let Some(next) = NEXT.address() else {
                    return NO_MPI;
                };
                type Function = unsafe extern "C" fn($($kind),*) -> c_int;
                // SAFETY: a function of that name has the standard's type; the arguments are the
                // caller's.
                unsafe {
                    let next = std::mem::transmute::<*mut c_void, Function>(next.as_ptr());
                    next($($argument),*)
                }
            }
        }
    };
}

/// The two forms of a function with counts: of `int`, and of `MPI_Count`.
macro_rules! both {
    ($plain:ident, $large:ident, $arguments:tt => $served:expr) => {
        entry!($plain, c_int, $arguments => $served);
        entry!($large, i64, $arguments => $served);
    };
}

entry!(MPI_Barrier, c_int, (communicator: Handle) => movement::barrier(communicator));
both!(MPI_Bcast, MPI_Bcast_c,
    (buffer: Target, count: Count, kind: Handle, root: c_int, communicator: Handle) =>
    movement::broadcast(communicator, Data::new(buffer, count, kind), root));
both!(MPI_Allreduce, MPI_Allreduce_c,
    (send: Source, receive: Target, count: Count, kind: Handle, operation: Handle,
        communicator: Handle) =>
    reduction::to_all(communicator, send, Data::new(receive, count, kind), operation));
both!(MPI_Reduce, MPI_Reduce_c,
    (send: Source, receive: Target, count: Count, kind: Handle, operation: Handle, root: c_int,
        communicator: Handle) =>
    reduction::to_root(communicator, send, Data::new(receive, count, kind), operation,
        root));
