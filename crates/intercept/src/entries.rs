// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of MPI that this library stands before, by both of the standard's names (`MPI_`
//! and `PMPI_`). Each serves the call, or hands it on as it came. Called by the program, by other
//! tools of the profiling interface, and by the MPI's Fortran library: MPICH's calls the first
//! names, Open MPI's the second ones. Source: MPI 4.1, 15.2 (profiling).

use std::ffi::{CStr, c_int, c_void};

use crate::buffers::Data;
use crate::calls::Call;
use crate::large::{ERROR_COUNT, Held, Narrow};
use crate::next::Next;
use crate::nonblocking::{self, Reducing, Request, Sum};
use crate::parts::{Described, Kinds};
use crate::{communicators, exchange, movement, reduction, sessions, start};

/// A handle of any interface (crates/mpi-abi).
type Handle = usize;
/// Where data are read.
type Source = *const c_void;
/// Where data are written.
type Target = *mut c_void;

/// What a call answers that finds no MPI behind this library: MPI_ERR_OTHER of most interfaces.
const NO_MPI: c_int = 16;

/// What MPI_Session_init answers if the MPI has no sessions (Open MPI 4.1): programs that ask the
/// loader whether there is such a function find ours. mpi4py reads this number as "the MPI lacks
/// the function" (PyMPI_ERR_UNAVAILABLE, its lib-mpi/defines.h); no interface has an error class of
/// it.
const NO_SESSIONS: c_int = -0x5555_5556;

/// A name with its zero.
const fn name_of(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name has no zero"),
    }
}

/// The types of blocks, all in one array.
type KindList = *const c_void;

/// Blocks of one type.
fn blocks<N>(address: *const c_void, counts: *const N, places: *const N, kind: Handle) -> Described
where
    crate::parts::List: From<*const N>,
{
    Described {
        address: address.cast_mut(),
        counts: counts.into(),
        places: places.into(),
        kinds: Kinds::One(kind),
    }
}

/// Blocks of a type each.
fn typed<N>(
    address: *const c_void,
    counts: *const N,
    places: *const N,
    kinds: KindList,
) -> Described
where
    crate::parts::List: From<*const N>,
{
    Described {
        kinds: Kinds::Each(kinds),
        ..blocks(address, counts, places, 0)
    }
}

/// One function: its name, the type of its counts, its arguments, and how it is served; what it
/// answers where there is none behind this library; and what to do once that one has answered.
macro_rules! entry {
    ($name:ident, $count:ty, ($($argument:ident: $kind:ty),*) => $served:expr) => {
        entry!($name, $count, ($($argument: $kind),*) => $served, or NO_MPI);
    };
    ($name:ident, $count:ty, ($($argument:ident: $kind:ty),*) => $served:expr, or $other:expr) => {
        entry!($name, $count, ($($argument: $kind),*) => $served, or $other, then |code| code);
    };
    ($name:ident, $count:ty, ($($argument:ident: $kind:ty),*) => $served:expr, or $other:expr,
        then $then:expr) => {
        #[allow(non_snake_case, reason = "the standard's name")]
        mod $name {
            use super::*;

            #[allow(dead_code, reason = "a barrier has no count")]
            type Count = $count;
            type Function = unsafe extern "C" fn($($kind),*) -> c_int;

            /// What stands behind this library.
            pub static NEXT: Next = Next::new(
                name_of(concat!(stringify!($name), "\0")),
                name_of(concat!("P", stringify!($name), "\0")),
            );

            // SAFETY: the name and the type are the standard's, and whoever defines the same name
            // elsewhere is called in the end.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
                match NEXT.tool() {
                    // It comes back by the second name.
                    // SAFETY: a function of that name has the standard's type; the arguments are
                    // the caller's.
                    Some(tool) => unsafe {
                        std::mem::transmute::<*mut c_void, Function>(tool.as_ptr())($($argument),*)
                    },
                    // SAFETY: the caller keeps the standard's promises about its arguments.
                    None => unsafe { carry_out($($argument),*) },
                }
            }

            // SAFETY: as above.
            #[unsafe(export_name = concat!("P", stringify!($name)))]
            unsafe extern "C" fn carry_out($($argument: $kind),*) -> c_int {
                // SAFETY: the caller keeps the standard's promises about its arguments.
                #[allow(unused_unsafe, reason = "some are only noted")]
                if let Some(code) = unsafe { $served } {
                    return code;
                }
                let Some(next) = NEXT.mpis() else {
                    // SAFETY: as above.
                    #[allow(unused_unsafe, reason = "a plain form has nothing to call")]
                    return unsafe { $other };
                };
                // SAFETY: as in the function above.
                let code = unsafe {
                    std::mem::transmute::<*mut c_void, Function>(next.as_ptr())($($argument),*)
                };
                $then(code)
            }
        }
    };
}

/// The communicator among some arguments.
macro_rules! communicator {
    ($last:ident) => { $last };
    ($last:ident, request) => { $last };
    ($first:ident, $($others:ident),+) => { communicator!($($others),+) };
}

/// The two forms of a function with counts: of `int`, and of `MPI_Count`. All have the communicator
/// last, or before the request.
macro_rules! both {
    ($plain:ident, $large:ident, ($($argument:ident: $kind:ty),*) => $served:expr) => {
        entry!($plain, c_int, ($($argument: $kind),*) => $served);
        entry!($large, i64, ($($argument: $kind),*) => $served, or {
            let Some(next) = super::$plain::NEXT.mpis() else {
                return NO_MPI;
            };
            let communicator = communicator!($($argument),*);
            $(let Some($argument) = $argument.hold(communicator) else {
                return ERROR_COUNT;
            };)*
            type Function =
                unsafe extern "C" fn($(<<$kind as Narrow>::Held as Held>::Plain),*) -> c_int;
            let next = std::mem::transmute::<*mut c_void, Function>(next.as_ptr());
            next($($argument.plain()),*)
        });
    };
}

entry!(MPI_Barrier, c_int, (communicator: Handle) => movement::barrier(communicator));
both!(MPI_Bcast, MPI_Bcast_c,
    (buffer: Target, count: Count, kind: Handle, root: c_int, communicator: Handle) =>
    movement::broadcast(communicator, Data::new(buffer, count, kind), root));
both!(MPI_Allreduce, MPI_Allreduce_c,
    (send: Source, receive: Target, count: Count, kind: Handle, operation: Handle,
        communicator: Handle) =>
    reduction::whole(Call::Allreduce, communicator, send, Data::new(receive, count, kind),
        operation));
both!(MPI_Reduce, MPI_Reduce_c,
    (send: Source, receive: Target, count: Count, kind: Handle, operation: Handle, root: c_int,
        communicator: Handle) =>
    reduction::to_root(communicator, send, Data::new(receive, count, kind), operation,
        root));
both!(MPI_Allgather, MPI_Allgather_c,
    (send: Source, send_count: Count, send_kind: Handle, receive: Target, count: Count,
        kind: Handle, communicator: Handle) =>
    movement::to_all(communicator, Data::new(send, send_count, send_kind),
        Data::new(receive, count, kind)));
both!(MPI_Allgatherv, MPI_Allgatherv_c,
    (send: Source, send_count: Count, send_kind: Handle, receive: Target, counts: *const Count,
        places: *const Count, kind: Handle, communicator: Handle) =>
    movement::parts_to_all(communicator, Data::new(send, send_count, send_kind),
        blocks(receive, counts, places, kind)));
both!(MPI_Gather, MPI_Gather_c,
    (send: Source, send_count: Count, send_kind: Handle, receive: Target, count: Count,
        kind: Handle, root: c_int, communicator: Handle) =>
    movement::to_root(communicator, Data::new(send, send_count, send_kind),
        Data::new(receive, count, kind), root));
both!(MPI_Gatherv, MPI_Gatherv_c,
    (send: Source, send_count: Count, send_kind: Handle, receive: Target, counts: *const Count,
        places: *const Count, kind: Handle, root: c_int, communicator: Handle) =>
    movement::parts_to_root(communicator, Data::new(send, send_count, send_kind),
        blocks(receive, counts, places, kind), root));
both!(MPI_Scatter, MPI_Scatter_c,
    (send: Source, send_count: Count, send_kind: Handle, receive: Target, count: Count,
        kind: Handle, root: c_int, communicator: Handle) =>
    exchange::from_root(communicator, Data::new(send, send_count, send_kind),
        Data::new(receive, count, kind), root));
both!(MPI_Scatterv, MPI_Scatterv_c,
    (send: Source, counts: *const Count, places: *const Count, send_kind: Handle, receive: Target,
        count: Count, kind: Handle, root: c_int, communicator: Handle) =>
    exchange::parts_from_root(communicator, blocks(send, counts, places, send_kind),
        Data::new(receive, count, kind), root));
both!(MPI_Alltoall, MPI_Alltoall_c,
    (send: Source, send_count: Count, send_kind: Handle, receive: Target, count: Count,
        kind: Handle, communicator: Handle) =>
    exchange::all_to_all(communicator, Data::new(send, send_count, send_kind),
        Data::new(receive, count, kind)));
both!(MPI_Alltoallv, MPI_Alltoallv_c,
    (send: Source, send_counts: *const Count, send_places: *const Count, send_kind: Handle,
        receive: Target, counts: *const Count, places: *const Count, kind: Handle,
        communicator: Handle) =>
    exchange::parts_to_parts(communicator, blocks(send, send_counts, send_places, send_kind),
        blocks(receive, counts, places, kind)));
both!(MPI_Alltoallw, MPI_Alltoallw_c,
    (send: Source, send_counts: *const Count, send_places: *const Count, send_kinds: KindList,
        receive: Target, counts: *const Count, places: *const Count, kinds: KindList,
        communicator: Handle) =>
    exchange::parts_to_parts(communicator, typed(send, send_counts, send_places, send_kinds),
        typed(receive, counts, places, kinds)));
both!(MPI_Reduce_scatter_block, MPI_Reduce_scatter_block_c,
    (send: Source, receive: Target, count: Count, kind: Handle, operation: Handle,
        communicator: Handle) =>
    reduction::block_to_each(communicator, send, Data::new(receive, count, kind), operation));
both!(MPI_Reduce_scatter, MPI_Reduce_scatter_c,
    (send: Source, receive: Target, counts: *const Count, kind: Handle, operation: Handle,
        communicator: Handle) =>
    reduction::part_to_each(communicator, send, Data::new(receive, 0, kind), counts.into(),
        operation));
both!(MPI_Scan, MPI_Scan_c,
    (send: Source, receive: Target, count: Count, kind: Handle, operation: Handle,
        communicator: Handle) =>
    reduction::whole(Call::Scan, communicator, send, Data::new(receive, count, kind), operation));
both!(MPI_Exscan, MPI_Exscan_c,
    (send: Source, receive: Target, count: Count, kind: Handle, operation: Handle,
        communicator: Handle) =>
    reduction::whole(Call::Exscan, communicator, send, Data::new(receive, count, kind), operation));

entry!(MPI_Ibarrier, c_int, (communicator: Handle, request: Request) =>
    nonblocking::barrier(communicator, request));
both!(MPI_Ibcast, MPI_Ibcast_c,
    (buffer: Target, count: Count, kind: Handle, root: c_int, communicator: Handle,
        request: Request) =>
    nonblocking::broadcast(communicator, Data::new(buffer, count, kind), root, request));
both!(MPI_Iallreduce, MPI_Iallreduce_c,
    (send: Source, receive: Target, count: Count, kind: Handle, operation: Handle,
        communicator: Handle, request: Request) =>
    nonblocking::reduce(Reducing { sum: Sum::All, operation }, communicator, send,
        Data::new(receive, count, kind), request));
both!(MPI_Ireduce, MPI_Ireduce_c,
    (send: Source, receive: Target, count: Count, kind: Handle, operation: Handle, root: c_int,
        communicator: Handle, request: Request) =>
    nonblocking::reduce(Reducing { sum: Sum::To(root), operation }, communicator, send,
        Data::new(receive, count, kind), request));
both!(MPI_Iscan, MPI_Iscan_c,
    (send: Source, receive: Target, count: Count, kind: Handle, operation: Handle,
        communicator: Handle, request: Request) =>
    nonblocking::reduce(Reducing { sum: Sum::UpTo, operation }, communicator, send,
        Data::new(receive, count, kind), request));
both!(MPI_Iexscan, MPI_Iexscan_c,
    (send: Source, receive: Target, count: Count, kind: Handle, operation: Handle,
        communicator: Handle, request: Request) =>
    nonblocking::reduce(Reducing { sum: Sum::Below, operation }, communicator, send,
        Data::new(receive, count, kind), request));
both!(MPI_Ireduce_scatter_block, MPI_Ireduce_scatter_block_c,
    (send: Source, receive: Target, count: Count, kind: Handle, operation: Handle,
        communicator: Handle, request: Request) =>
    nonblocking::reduce(Reducing { sum: Sum::Scattered, operation }, communicator, send,
        Data::new(receive, count, kind), request));
both!(MPI_Iallgather, MPI_Iallgather_c,
    (send: Source, send_count: Count, send_kind: Handle, receive: Target, count: Count,
        kind: Handle, communicator: Handle, request: Request) =>
    nonblocking::gather(communicator, Data::new(send, send_count, send_kind),
        Data::new(receive, count, kind), None, request));
both!(MPI_Igather, MPI_Igather_c,
    (send: Source, send_count: Count, send_kind: Handle, receive: Target, count: Count,
        kind: Handle, root: c_int, communicator: Handle, request: Request) =>
    nonblocking::gather(communicator, Data::new(send, send_count, send_kind),
        Data::new(receive, count, kind), Some(root), request));
both!(MPI_Iscatter, MPI_Iscatter_c,
    (send: Source, send_count: Count, send_kind: Handle, receive: Target, count: Count,
        kind: Handle, root: c_int, communicator: Handle, request: Request) =>
    nonblocking::scatter(communicator, Data::new(send, send_count, send_kind),
        Data::new(receive, count, kind), root, request));
both!(MPI_Ialltoall, MPI_Ialltoall_c,
    (send: Source, send_count: Count, send_kind: Handle, receive: Target, count: Count,
        kind: Handle, communicator: Handle, request: Request) =>
    nonblocking::all_to_all(communicator, Data::new(send, send_count, send_kind),
        Data::new(receive, count, kind), request));

entry!(MPI_Init, c_int, (count: Target, arguments: Target) => start::prepare(), or NO_MPI,
    then communicators::note_begin);
entry!(MPI_Init_thread, c_int, (count: Target, arguments: Target, level: c_int, given: Target) =>
    start::prepare(), or NO_MPI, then communicators::note_begin);
entry!(MPI_Finalize, c_int, () => None, or NO_MPI, then communicators::note_end);
entry!(MPI_Comm_free, c_int, (communicator: Target) =>
    communicators::free(communicator, NEXT.mpis()));
entry!(MPI_Comm_disconnect, c_int, (communicator: Target) =>
    communicators::free(communicator, NEXT.mpis()));
entry!(MPI_Session_init, c_int, (info: Handle, handler: Handle, session: Target) =>
{
    start::prepare();
    sessions::note_begin()
}, or NO_SESSIONS);
