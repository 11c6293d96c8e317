// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions that entries stands before: the MPI's, and those of another tool of the profiling
//! interface, which leads back to us by the second name (`PMPI_`). Called by entries. Source: MPI
//! 4.1, 15.2.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

use weft_os::loaded::{Loaded, file_of, next_definition};

/// The functions of a name behind ours; looked for when one is first asked for.
#[derive(Debug)]
pub struct Next {
    /// Which programs call.
    first: &'static CStr,
    /// Which tools call.
    second: &'static CStr,
    found: OnceLock<Found>,
}

#[derive(Clone, Copy, Debug)]
struct Address(NonNull<c_void>);

// SAFETY: the address of a function, which any thread may call.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

#[derive(Clone, Copy, Debug)]
struct Found {
    tool: Option<Address>,
    mpis: Option<Address>,
}

impl Next {
    /// Not looked for yet.
    pub const fn new(first: &'static CStr, second: &'static CStr) -> Self {
        Self {
            first,
            second,
            found: OnceLock::new(),
        }
    }

    /// The function of another tool that the program would call without this library; `None` where
    /// the MPI's own is next. The first call looks through the libraries, here and below.
    #[inline]
    pub fn tool(&self) -> Option<NonNull<c_void>> {
        self.found().tool.map(|Address(address)| address)
    }

    /// The MPI's own; `None` if no library has one.
    #[inline]
    pub fn mpis(&self) -> Option<NonNull<c_void>> {
        self.found().mpis.map(|Address(address)| address)
    }

    #[inline]
    fn found(&self) -> &Found {
        self.found.get_or_init(|| {
            let first = definition(self.first);
            let second = definition(self.second);
            let file = |function: NonNull<c_void>| file_of(function.as_ptr() as usize);
            // A tool has first names only, since it calls the MPI by the second ones.
            let is_tools =
                |&first: &NonNull<c_void>| second.is_some_and(|second| file(second) != file(first));
            Found {
                tool: first.filter(is_tools).map(Address),
                mpis: second.or(first).map(Address),
            }
        })
    }
}

/// An MPI that is in nobody's search order but that of the library which is linked to it, such as a
/// Python extension.
static LOCAL_MPI: OnceLock<Loaded> = OnceLock::new();

/// What a name stands for behind this library; looks through the libraries. Not while the process
/// ends.
pub fn definition(name: &CStr) -> Option<NonNull<c_void>> {
    next_definition(name).or_else(|| {
        let library = Loaded::with(name)?;
        LOCAL_MPI.get_or_init(|| library).function(name)
    })
}

/// The same while the process ends, when libraries can no longer be opened: of an MPI in nobody's
/// search order only if a name of it was looked for before.
pub fn definition_at_exit(name: &CStr) -> Option<NonNull<c_void>> {
    next_definition(name).or_else(|| LOCAL_MPI.get()?.function(name))
}
