// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The MPI functions this crate calls, as plain function pointers, looked up once.
//!
//! Filled by library through [`Functions::load`]; called by session, communicator, collective and requests. Signatures are those
//! of the MPI 3.1 standard with every handle as `usize` (see abi for why that fits both interfaces).

use crate::error::Result;
use crate::library::Library;
use std::ffi::{c_char, c_double, c_int, c_void};

pub(crate) type Handle = usize;
pub(crate) type Source = *const c_void;
pub(crate) type Target = *mut c_void;
pub(crate) type Counts = *const c_int;
type Code = c_int;

macro_rules! functions {
    ($(#[$about:meta])* $group:ident { $($field:ident = $name:literal: fn($($argument:ty),*) -> $result:ty;)* }) => {
        $(#[$about])*
        pub(crate) struct $group {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl $group {
            fn load(library: &Library) -> Result<Self> {
                Ok(Self {
                    // SAFETY: the name is the standard's and the pointer type is the standard's signature for that name, with
                    // handles widened as abi explains.
                    $($field: unsafe { library.function($name) }?,)*
                })
            }
        }
    };
}

functions! {
    /// Life of the library and of communicators.
    Environment {
        init = c"MPI_Init": fn(*mut c_int, *mut *mut *mut c_char) -> Code;
        init_thread = c"MPI_Init_thread": fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> Code;
        finalize = c"MPI_Finalize": fn() -> Code;
        abort = c"MPI_Abort": fn(Handle, c_int) -> Code;
        wtime = c"MPI_Wtime": fn() -> c_double;
        processor_name = c"MPI_Get_processor_name": fn(*mut c_char, *mut c_int) -> Code;
        error_string = c"MPI_Error_string": fn(c_int, *mut c_char, *mut c_int) -> Code;
        set_error_handler = c"MPI_Comm_set_errhandler": fn(Handle, Handle) -> Code;
        rank = c"MPI_Comm_rank": fn(Handle, *mut c_int) -> Code;
        size = c"MPI_Comm_size": fn(Handle, *mut c_int) -> Code;
        split = c"MPI_Comm_split": fn(Handle, c_int, c_int, *mut Handle) -> Code;
        free = c"MPI_Comm_free": fn(*mut Handle) -> Code;
    }
}

functions! {
    /// Messages between two ranks.
    PointToPoint {
        send = c"MPI_Send": fn(Source, c_int, Handle, c_int, c_int, Handle) -> Code;
        recv = c"MPI_Recv": fn(Target, c_int, Handle, c_int, c_int, Handle, Target) -> Code;
        isend = c"MPI_Isend": fn(Source, c_int, Handle, c_int, c_int, Handle, Target) -> Code;
        irecv = c"MPI_Irecv": fn(Target, c_int, Handle, c_int, c_int, Handle, Target) -> Code;
        waitall = c"MPI_Waitall": fn(c_int, Target, Target) -> Code;
        testall = c"MPI_Testall": fn(c_int, Target, *mut c_int, Target) -> Code;
        get_count = c"MPI_Get_count": fn(Source, Handle, *mut c_int) -> Code;
    }
}

functions! {
    /// Operations of a whole communicator.
    Collective {
        barrier = c"MPI_Barrier": fn(Handle) -> Code;
        bcast = c"MPI_Bcast": fn(Target, c_int, Handle, c_int, Handle) -> Code;
        reduce = c"MPI_Reduce": fn(Source, Target, c_int, Handle, Handle, c_int, Handle) -> Code;
        allreduce = c"MPI_Allreduce": fn(Source, Target, c_int, Handle, Handle, Handle) -> Code;
        gather = c"MPI_Gather": fn(Source, c_int, Handle, Target, c_int, Handle, c_int, Handle) -> Code;
        allgather = c"MPI_Allgather": fn(Source, c_int, Handle, Target, c_int, Handle, Handle) -> Code;
        alltoall = c"MPI_Alltoall": fn(Source, c_int, Handle, Target, c_int, Handle, Handle) -> Code;
        alltoallv = c"MPI_Alltoallv": fn(Source, Counts, Counts, Handle, Target, Counts, Counts, Handle, Handle) -> Code;
        alltoallw = c"MPI_Alltoallw": fn(Source, Counts, Counts, Source, Target, Counts, Counts, Source, Handle) -> Code;
    }
}

/// Every function, in three groups.
pub(crate) struct Functions {
    pub(crate) environment: Environment,
    pub(crate) point: PointToPoint,
    pub(crate) collective: Collective,
}

impl Functions {
    /// Looks every function up. Setup.
    pub(crate) fn load(library: &Library) -> Result<Self> {
        Ok(Self {
            environment: Environment::load(library)?,
            point: PointToPoint::load(library)?,
            collective: Collective::load(library)?,
        })
    }
}
