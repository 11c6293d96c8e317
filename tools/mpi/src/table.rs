// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The MPI functions this crate calls, as plain function pointers, looked up once.
//!
//! Filled by library through [`Functions::load`]; called by session, communicator, collective,
//! requests, persistent, prepared and window. Signatures are those of the MPI 3.1 standard with
//! every handle as `usize` (see abi for why that fits both interfaces).

use crate::error::Result;
use crate::library::Library;
use std::ffi::{c_char, c_double, c_int, c_void};

pub(crate) type Handle = usize;
pub(crate) type Source = *const c_void;
pub(crate) type Target = *mut c_void;
pub(crate) type Counts = *const c_int;
type Code = c_int;

macro_rules! functions {
    ($(#[$about:meta])* $group:ident {
        $($field:ident = $name:literal: fn($($argument:ty),*) -> $result:ty;)*
    }) => {
        $(#[$about])*
        pub(crate) struct $group {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl $group {
            fn load(library: &Library) -> Result<Self> {
                Ok(Self {
                    // SAFETY: the name is the standard's and the pointer type is the standard's
                    // signature for that name, with handles widened as abi explains.
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
        init_thread = c"MPI_Init_thread":
            fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> Code;
        finalize = c"MPI_Finalize": fn() -> Code;
        abort = c"MPI_Abort": fn(Handle, c_int) -> Code;
        wtime = c"MPI_Wtime": fn() -> c_double;
        processor_name = c"MPI_Get_processor_name": fn(*mut c_char, *mut c_int) -> Code;
        error_string = c"MPI_Error_string": fn(c_int, *mut c_char, *mut c_int) -> Code;
        set_error_handler = c"MPI_Comm_set_errhandler": fn(Handle, Handle) -> Code;
        rank = c"MPI_Comm_rank": fn(Handle, *mut c_int) -> Code;
        size = c"MPI_Comm_size": fn(Handle, *mut c_int) -> Code;
        split = c"MPI_Comm_split": fn(Handle, c_int, c_int, *mut Handle) -> Code;
        group = c"MPI_Comm_group": fn(Handle, *mut Handle) -> Code;
        group_include = c"MPI_Group_incl": fn(Handle, c_int, Counts, *mut Handle) -> Code;
        group_free = c"MPI_Group_free": fn(*mut Handle) -> Code;
        graph = c"MPI_Dist_graph_create_adjacent":
            fn(Handle, c_int, Counts, Counts, c_int, Counts, Counts, Handle, c_int,
                *mut Handle) -> Code;
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
        send_init = c"MPI_Send_init":
            fn(Source, c_int, Handle, c_int, c_int, Handle, Target) -> Code;
        recv_init = c"MPI_Recv_init":
            fn(Target, c_int, Handle, c_int, c_int, Handle, Target) -> Code;
        start_all = c"MPI_Startall": fn(c_int, Target) -> Code;
        start = c"MPI_Start": fn(Target) -> Code;
        wait = c"MPI_Wait": fn(Target, Target) -> Code;
        test = c"MPI_Test": fn(Target, *mut c_int, Target) -> Code;
        request_free = c"MPI_Request_free": fn(Target) -> Code;
    }
}

functions! {
    /// Operations of a whole communicator.
    Collective {
        barrier = c"MPI_Barrier": fn(Handle) -> Code;
        bcast = c"MPI_Bcast": fn(Target, c_int, Handle, c_int, Handle) -> Code;
        allreduce = c"MPI_Allreduce": fn(Source, Target, c_int, Handle, Handle, Handle) -> Code;
        allgather = c"MPI_Allgather":
            fn(Source, c_int, Handle, Target, c_int, Handle, Handle) -> Code;
        alltoall = c"MPI_Alltoall":
            fn(Source, c_int, Handle, Target, c_int, Handle, Handle) -> Code;
        alltoallv = c"MPI_Alltoallv":
            fn(Source, Counts, Counts, Handle, Target, Counts, Counts, Handle, Handle) -> Code;
    }
}

functions! {
    /// Windows: memory that other ranks reach, and the ways to agree on when.
    WindowCalls {
        create = c"MPI_Win_create": fn(Target, isize, c_int, Handle, Handle, *mut Handle) -> Code;
        allocate = c"MPI_Win_allocate":
            fn(isize, c_int, Handle, Handle, *mut Target, *mut Handle) -> Code;
        create_dynamic = c"MPI_Win_create_dynamic": fn(Handle, Handle, *mut Handle) -> Code;
        attach = c"MPI_Win_attach": fn(Handle, Target, isize) -> Code;
        detach = c"MPI_Win_detach": fn(Handle, Source) -> Code;
        free = c"MPI_Win_free": fn(*mut Handle) -> Code;
        set_error_handler = c"MPI_Win_set_errhandler": fn(Handle, Handle) -> Code;
        lock = c"MPI_Win_lock": fn(c_int, c_int, c_int, Handle) -> Code;
        unlock = c"MPI_Win_unlock": fn(c_int, Handle) -> Code;
        lock_all = c"MPI_Win_lock_all": fn(c_int, Handle) -> Code;
        unlock_all = c"MPI_Win_unlock_all": fn(Handle) -> Code;
        flush = c"MPI_Win_flush": fn(c_int, Handle) -> Code;
        flush_local = c"MPI_Win_flush_local": fn(c_int, Handle) -> Code;
        fence = c"MPI_Win_fence": fn(c_int, Handle) -> Code;
        post = c"MPI_Win_post": fn(Handle, c_int, Handle) -> Code;
        start = c"MPI_Win_start": fn(Handle, c_int, Handle) -> Code;
        complete = c"MPI_Win_complete": fn(Handle) -> Code;
        wait = c"MPI_Win_wait": fn(Handle) -> Code;
    }
}

functions! {
    /// What reaches into a window of another rank.
    OneSided {
        put = c"MPI_Put": fn(Source, c_int, Handle, c_int, isize, c_int, Handle, Handle) -> Code;
        get = c"MPI_Get": fn(Target, c_int, Handle, c_int, isize, c_int, Handle, Handle) -> Code;
        accumulate = c"MPI_Accumulate":
            fn(Source, c_int, Handle, c_int, isize, c_int, Handle, Handle, Handle) -> Code;
        get_accumulate = c"MPI_Get_accumulate":
            fn(Source, c_int, Handle, Target, c_int, Handle, c_int, isize, c_int, Handle, Handle,
                Handle) -> Code;
        fetch_and_op = c"MPI_Fetch_and_op":
            fn(Source, Target, Handle, c_int, isize, Handle, Handle) -> Code;
        compare_and_swap = c"MPI_Compare_and_swap":
            fn(Source, Source, Target, Handle, c_int, isize, Handle) -> Code;
    }
}

/// Every function, in groups.
pub(crate) struct Functions {
    pub(crate) environment: Environment,
    pub(crate) point: PointToPoint,
    pub(crate) collective: Collective,
    pub(crate) window: WindowCalls,
    pub(crate) one_sided: OneSided,
}

impl Functions {
    /// Looks every function up. Setup.
    pub(crate) fn load(library: &Library) -> Result<Self> {
        Ok(Self {
            environment: Environment::load(library)?,
            point: PointToPoint::load(library)?,
            collective: Collective::load(library)?,
            window: WindowCalls::load(library)?,
            one_sided: OneSided::load(library)?,
        })
    }
}
