// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of the MPI that this library calls for itself: by their second names (`PMPI_`), so
//! that no other tool counts them. Found by mpi, once; called by all below entries. Source: MPI
//! 4.1, annex A.2.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;

/// A handle of any interface.
pub type Handle = usize;

type Code = c_int;
/// The functions that MPI calls for an attribute that is copied, and for one that goes.
pub type CopyAttribute =
    unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> Code;
/// See [`CopyAttribute`].
pub type DeleteAttribute = unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void) -> Code;
/// The functions that MPI calls for a request of the program's own.
pub type QueryRequest = unsafe extern "C" fn(*mut c_void, *mut c_void) -> Code;
/// See [`QueryRequest`].
pub type FreeRequest = unsafe extern "C" fn(*mut c_void) -> Code;
/// See [`QueryRequest`].
pub type CancelRequest = unsafe extern "C" fn(*mut c_void, c_int) -> Code;

macro_rules! functions {
    ($($(#[$about:meta])* $field:ident = $name:literal: fn($($argument:ty),*);)*) => {
        /// The MPI's own functions.
        #[derive(Debug)]
        pub struct Functions {
            $($(#[$about])* pub $field: unsafe extern "C" fn($($argument),*) -> Code,)*
        }

        impl Functions {
            /// All of them, if the MPI has them.
            pub fn find(find: &impl Fn(&CStr) -> Option<NonNull<c_void>>) -> Option<Self> {
                Some(Self {
                    $($field: {
                        type Function = unsafe extern "C" fn($($argument),*) -> Code;
                        let found = find($name)?.as_ptr();
                        // SAFETY: the name is the standard's and the type is the standard's for
                        // that name, with handles widened as crates/mpi-abi explains.
                        unsafe { std::mem::transmute::<*mut c_void, Function>(found) }
                    },)*
                })
            }
        }
    };
}

functions! {
    /// MPI_Query_thread.
    thread_level = c"PMPI_Query_thread": fn(*mut c_int);
    /// MPI_Finalized.
    finalized = c"PMPI_Finalized": fn(*mut c_int);
    /// MPI_Comm_test_inter.
    test_inter = c"PMPI_Comm_test_inter": fn(Handle, *mut c_int);
    /// MPI_Comm_rank.
    rank = c"PMPI_Comm_rank": fn(Handle, *mut c_int);
    /// MPI_Comm_size.
    size = c"PMPI_Comm_size": fn(Handle, *mut c_int);
    /// MPI_Comm_remote_size.
    remote_size = c"PMPI_Comm_remote_size": fn(Handle, *mut c_int);
    /// MPI_Comm_group.
    group = c"PMPI_Comm_group": fn(Handle, *mut Handle);
    /// MPI_Group_free.
    group_free = c"PMPI_Group_free": fn(*mut Handle);
    /// MPI_Group_translate_ranks.
    translate = c"PMPI_Group_translate_ranks":
        fn(Handle, c_int, *const c_int, Handle, *mut c_int);
    /// MPI_Comm_create_keyval.
    create_key = c"PMPI_Comm_create_keyval":
        fn(CopyAttribute, DeleteAttribute, *mut c_int, *mut c_void);
    /// MPI_Comm_set_attr.
    set_attribute = c"PMPI_Comm_set_attr": fn(Handle, c_int, *mut c_void);
    /// MPI_Comm_get_attr.
    get_attribute = c"PMPI_Comm_get_attr": fn(Handle, c_int, *mut c_void, *mut c_int);
    /// MPI_Comm_call_errhandler.
    call_error_handler = c"PMPI_Comm_call_errhandler": fn(Handle, c_int);
    /// MPI_Comm_set_errhandler.
    set_error_handler = c"PMPI_Comm_set_errhandler": fn(Handle, Handle);
    /// MPI_Comm_split.
    split = c"PMPI_Comm_split": fn(Handle, c_int, c_int, *mut Handle);
    /// MPI_Comm_free.
    free_communicator = c"PMPI_Comm_free": fn(*mut Handle);
    /// MPI_Bcast.
    broadcast = c"PMPI_Bcast": fn(*mut c_void, c_int, Handle, c_int, Handle);
    /// MPI_Isend.
    send = c"PMPI_Isend":
        fn(*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    /// MPI_Irecv.
    receive = c"PMPI_Irecv":
        fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    /// MPI_Allgather.
    allgather = c"PMPI_Allgather":
        fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
    /// MPI_Allreduce.
    allreduce = c"PMPI_Allreduce":
        fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    /// MPI_Type_size.
    type_size = c"PMPI_Type_size": fn(Handle, *mut c_int);
    /// MPI_Type_get_extent.
    type_extent = c"PMPI_Type_get_extent": fn(Handle, *mut isize, *mut isize);
    /// MPI_Type_contiguous.
    type_contiguous = c"PMPI_Type_contiguous": fn(c_int, Handle, *mut Handle);
    /// MPI_Type_commit.
    type_commit = c"PMPI_Type_commit": fn(*mut Handle);
    /// MPI_Type_free.
    type_free = c"PMPI_Type_free": fn(*mut Handle);
    /// MPI_Pack.
    pack = c"PMPI_Pack":
        fn(*const c_void, c_int, Handle, *mut c_void, c_int, *mut c_int, Handle);
    /// MPI_Unpack.
    unpack = c"PMPI_Unpack":
        fn(*const c_void, c_int, *mut c_int, *mut c_void, c_int, Handle, Handle);
    /// MPI_Grequest_start.
    start_request = c"PMPI_Grequest_start":
        fn(QueryRequest, FreeRequest, CancelRequest, *mut c_void, *mut Handle);
    /// MPI_Grequest_complete.
    complete_request = c"PMPI_Grequest_complete": fn(Handle);
    /// MPI_Status_set_elements.
    set_elements = c"PMPI_Status_set_elements": fn(*mut c_void, Handle, c_int);
    /// MPI_Status_set_cancelled.
    set_cancelled = c"PMPI_Status_set_cancelled": fn(*mut c_void, c_int);
    /// MPI_Test.
    test = c"PMPI_Test": fn(*mut Handle, *mut c_int, *mut c_void);
    /// MPI_Wait.
    wait = c"PMPI_Wait": fn(*mut Handle, *mut c_void);
}
