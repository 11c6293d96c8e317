// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What else goes on when an MPI looks for messages and finds none: the non-blocking collectives of
//! libweft-mpi.so (crates/intercept), which finds `weft_also_when_idle` here by its name. Called by
//! cq, without a lock.

use std::sync::OnceLock;

use weft_fabric_sys::errno::FI_EAGAIN;

/// What is called; set once in a process.
static ALSO: OnceLock<extern "C" fn()> = OnceLock::new();

/// From now on calls a function whenever a completion queue is read that has nothing, in whatever
/// thread reads it. The function lives as long as the process, does not wait, and may be called by
/// several threads at a time. The first one stays.
// SAFETY: a name of our own, which only libweft-mpi.so looks for.
#[unsafe(no_mangle)]
extern "C" fn weft_also_when_idle(function: extern "C" fn()) {
    ALSO.get_or_init(|| function);
}

/// Answers what a read of a queue answers, and calls the function if that was nothing. Fast path.
#[inline(always)]
pub fn unless_idle(read: isize) -> isize {
    if read == -(FI_EAGAIN as isize)
        && let Some(function) = ALSO.get()
    {
        function();
    }
    read
}
