// SPDX-License-Identifier: Apache-2.0 OR MIT
//! free(3) and realloc(3), before those of the C library or of the program's allocator, which unmap
//! and use memory again by calls that nobody else sees: pages of such a block are private first.
//! All other allocation is untouched. Called by the whole program; calls table where filter says
//! so. Source: malloc(3), "Replacing malloc" in the manual of the GNU C library.

use std::ffi::c_void;

use crate::interface;
use crate::real::{Real, is_one_library};
use crate::spans::{PAGE_BYTES, Span};
use crate::table::{FILTER, State, TABLE};

// SAFETY: the C library's own functions with its types, under the names by which it exports them
// beside the ones that are replaced here.
unsafe extern "C" {
    fn __libc_free(address: *mut c_void);
    fn __libc_realloc(address: *mut c_void, bytes: usize) -> *mut c_void;
}

static FREE: Real = Real::new(c"free");
static REALLOC: Real = Real::new(c"realloc");
static USABLE: Real = Real::new(c"malloc_usable_size");

/// Runs when the library is loaded, so that the first free(3) need not look for the next one's.
#[used]
// SAFETY: the section holds addresses of such functions.
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    for function in [&FREE, &REALLOC, &USABLE] {
        let _ = function.address();
    }
    // A length by one library of a block by another would be no length.
    if !is_one_library(&FREE, &USABLE) {
        TABLE.with(State::bar_all);
    }
    interface::open_at_load();
}

/// Keeps errno as it is while something of ours is done.
pub(crate) fn quietly<R>(act: impl FnOnce() -> R) -> R {
    // SAFETY: errno is this thread's.
    let errno = unsafe { *libc::__errno_location() };
    let result = act();
    // SAFETY: errno is this thread's.
    unsafe { *libc::__errno_location() = errno };
    result
}

/// The pages of a block that may be shared: whole pages inside it.
#[cold]
fn shared_pages(address: *mut c_void) -> Option<Span> {
    type Usable = unsafe extern "C" fn(*mut c_void) -> usize;
    // SAFETY: the function has that type, and the caller's block is its allocator's.
    let bytes = unsafe {
        let usable = std::mem::transmute::<*mut c_void, Usable>(USABLE.address()?);
        usable(address)
    };
    let may = bytes >= PAGE_BYTES && FILTER.may_hold(address as usize, bytes);
    Span::inside(address as usize, bytes).filter(|_| may)
}

/// As free(3).
///
/// # Safety
/// As malloc(3) says.
// SAFETY: the name is the C library's, whose function this one stands before, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(address: *mut c_void) {
    type Free = unsafe extern "C" fn(*mut c_void);
    if !FILTER.is_empty()
        && !address.is_null()
        && let Some(span) = shared_pages(address)
        && !quietly(|| TABLE.change(|state| state.discard(span)))
    {
        // Memory that is shared and cannot be made private is nobody's to use again.
        return;
    }
    // SAFETY: the caller's promise is that of whoever gave the block.
    unsafe {
        match FREE.address() {
            Some(real) => std::mem::transmute::<*mut c_void, Free>(real)(address),
            None => __libc_free(address),
        }
    }
}

/// As realloc(3).
///
/// # Safety
/// As malloc(3) says.
// SAFETY: the name is the C library's, whose function this one stands before, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(address: *mut c_void, bytes: usize) -> *mut c_void {
    type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
    if !FILTER.is_empty()
        && !address.is_null()
        && let Some(span) = shared_pages(address)
        && !quietly(|| TABLE.change(|state| state.make_private(span)))
    {
        // SAFETY: errno is this thread's.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
        return std::ptr::null_mut();
    }
    // SAFETY: the caller's promise is that of whoever gave the block.
    unsafe {
        match REALLOC.address() {
            Some(real) => std::mem::transmute::<*mut c_void, Realloc>(real)(address, bytes),
            None => __libc_realloc(address, bytes),
        }
    }
}
