// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What this process was given: its variables and its limits; and short files of the system's.
//! Asked when the provider first asks, and by keepers. Sources: getenv(3), getrlimit(2).

use std::ffi::{CStr, c_int};

/// The value of a variable. Only when the provider asks: within MPI_Init nobody changes them.
pub(crate) fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: getenv reads the environment, which nobody changes within MPI_Init.
    unsafe {
        let text = libc::getenv(name.as_ptr());
        (!text.is_null()).then(|| CStr::from_ptr(text))
    }
}

/// The present limit of a resource; `None` if the system does not say.
pub(crate) fn limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is ours to write.
    let asked = unsafe { libc::getrlimit(resource, &mut limit) };
    (asked == 0).then_some(limit.rlim_cur)
}

/// What a file holds, as far as one read(2) into `text` gives it; nothing if it cannot be read.
/// Allocates nothing: a file of /proc is made anew for each look, in one piece.
pub(crate) fn read<'a>(name: &CStr, text: &'a mut [u8]) -> &'a [u8] {
    // SAFETY: plain calls on a name and on the descriptor that the first one made; the buffer is as
    // long as is said.
    let count = unsafe {
        let file = libc::open(name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return &[];
        }
        let count = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        count
    };
    text.get(..usize::try_from(count).unwrap_or(0))
        .unwrap_or(&[])
}

/// What fstat(2) says of a descriptor; `None` if it is not open.
pub(crate) fn status_of(descriptor: c_int) -> Option<libc::stat> {
    // SAFETY: stat is plain data, for which zero is valid, and ours to write.
    unsafe {
        let mut status = std::mem::zeroed();
        (libc::fstat(descriptor, &mut status) == 0).then_some(status)
    }
}

/// The beginning of what a link says; nothing if it cannot be read. Allocates nothing.
pub(crate) fn link<'a>(name: &CStr, text: &'a mut [u8]) -> &'a [u8] {
    // SAFETY: the buffer is as long as is said.
    let count = unsafe { libc::readlink(name.as_ptr(), text.as_mut_ptr().cast(), text.len()) };
    text.get(..usize::try_from(count).unwrap_or(0))
        .unwrap_or(&[])
}
