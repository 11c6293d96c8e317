// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Open MPI's choice among providers, where there is nothing to choose. Before it looks at the list
//! that libfabric gave it, Open MPI has hwloc find all devices of the machine: those nearest to the
//! rank are to carry its messages. With Debian's Open MPI 4.1 hwloc loads its plugins for that
//! (OpenCL, X11), asks for ten X servers, and reads PCI's devices, 25 ms in all (measured). From a
//! list of one entry Open MPI can only take this entry, and over Weft the list has one. So it is
//! answered here, and hwloc is not asked; a longer list is Open MPI's to choose from. Called by
//! Open MPI's components for libfabric within MPI_Init. Source: Open MPI 4.1 and 5.0,
//! opal/mca/common/ofi/common_ofi.c.

use std::ffi::c_void;
use std::ptr::NonNull;

use weft_os::loaded::Loaded;

/// The beginning of libfabric's `struct fi_info`. Source: fi_getinfo(3).
#[repr(C)]
#[derive(Debug)]
pub struct Entry {
    /// The entry behind this one.
    next: *const Entry,
}

/// Answers an entry of the list: of one that is near, the one that is for this rank, which the
/// other arguments describe (4.1: peers, rank, processors, number; 5.0: a structure).
type Select = unsafe extern "C" fn(*const Entry, usize, usize, usize, usize) -> *const Entry;

/// One function: what it is called, and the same with its zero.
macro_rules! select {
    ($name:ident, $text:literal) => {
        // SAFETY: the name is Open MPI's, whose function this one stands before; all versions have
        // the list first, and at most four numbers and addresses behind it.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            list: *const Entry,
            peers: usize,
            rank: usize,
            processors: usize,
            number: usize,
        ) -> *const Entry {
            // SAFETY: Open MPI hands over libfabric's list, or none.
            if unsafe { has_choice(list) }
                && let Some(mpis) = Loaded::with($text).and_then(|mpi| mpi.function($text))
            {
                // SAFETY: this is the function's type, as far as its caller passes arguments.
                let choose = unsafe { std::mem::transmute::<NonNull<c_void>, Select>(mpis) };
                // SAFETY: the arguments are the caller's.
                return unsafe { choose(list, peers, rank, processors, number) };
            }
            list
        }
    };
}

// Open MPI 4.1, and 5.0.
select!(
    opal_mca_common_ofi_select_provider,
    c"opal_mca_common_ofi_select_provider"
);
select!(
    opal_common_ofi_select_provider,
    c"opal_common_ofi_select_provider"
);

/// Whether a list has several entries.
///
/// # Safety
/// The list is null, or its first entry is readable.
unsafe fn has_choice(list: *const Entry) -> bool {
    // SAFETY: the caller's promise.
    unsafe { list.as_ref() }.is_some_and(|first| !first.next.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{from_ref, null};

    #[test]
    fn the_only_entry_of_a_list_is_chosen() {
        let last = Entry { next: null() };
        let first = Entry { next: &last };
        // SAFETY: the entries outlive the calls.
        unsafe {
            for list in [null(), from_ref(&last)] {
                assert!(!has_choice(list));
                assert_eq!(opal_mca_common_ofi_select_provider(list, 0, 0, 0, 0), list);
                assert_eq!(opal_common_ofi_select_provider(list, 0, 0, 0, 0), list);
            }
            assert!(has_choice(&first));
        }
    }
}
