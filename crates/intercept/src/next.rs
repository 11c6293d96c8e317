// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions that entries stands before: the MPI's, or another profiling library's that leads
//! to them in its turn. Called by entries and fortran for what is not served.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

use weft_os::loaded::{Loaded, next_definition};

/// The function of a name behind ours; looked for when it is first called.
#[derive(Debug)]
pub struct Next {
    name: &'static CStr,
    found: OnceLock<Option<Address>>,
}

#[derive(Clone, Copy, Debug)]
struct Address(NonNull<c_void>);

// SAFETY: the address of a function, which any thread may call.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Next {
    /// Not looked for yet.
    pub const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            found: OnceLock::new(),
        }
    }

    /// Its address; `None` if no library has one. The first call looks through the libraries.
    #[inline]
    pub fn address(&self) -> Option<NonNull<c_void>> {
        let found = self.found.get_or_init(|| {
            // A Python extension's MPI is in nobody's search order but the extension's.
            let elsewhere = || Loaded::with(self.name)?.function(self.name);
            next_definition(self.name).or_else(elsewhere).map(Address)
        });
        found.map(|Address(address)| address)
    }
}
