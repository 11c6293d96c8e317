// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A launcher that writes to a closed connection gets an error, and no SIGPIPE ends it.
//!
//! When a rank calls MPI_Abort, Intel's mpiexec tells each host twice to end its ranks. After the
//! first time a host may be gone, and mpiexec dies by SIGPIPE, in place of ending with the code of
//! the MPI_Abort. The error EPIPE it handles. Sources: write(2), send(2).

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use crate::word::{rank_number, variable};

/// The variable that asks for this; its value does not matter.
pub const VARIABLE: &CStr = c"WEFT_LAUNCHER_WITHOUT_SIGPIPE";

/// Set in a launcher that the variable was given to, and not in ranks that MPI_Comm_spawn starts,
/// which have it, too.
static IS_ON: OnceLock<()> = OnceLock::new();

// SAFETY: the C library's own name of write(2), which it exports; the same arguments and promise.
unsafe extern "C" {
    fn __write(file: c_int, data: *const c_void, bytes: usize) -> isize;
}

#[used]
// SAFETY: the section holds addresses of functions that the loader calls.
#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    if variable(VARIABLE).is_some() && rank_number().is_none() {
        let _ = IS_ON.set(());
    }
}

/// write(2). Standard output and error stay as they are: who reads no more of a job's output ends
/// the job, as with any program.
///
/// # Safety
/// As the function of this name.
// SAFETY: the same name, arguments and promise as the function whose place it takes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn write(file: c_int, data: *const c_void, bytes: usize) -> isize {
    if file > libc::STDERR_FILENO && IS_ON.get().is_some() {
        // SAFETY: the address of this thread's errno is always valid; else the caller's promise.
        let sent = unsafe {
            let errno = libc::__errno_location();
            let before = *errno;
            let sent = libc::send(file, data, bytes, libc::MSG_NOSIGNAL);
            let is_socket = sent >= 0 || *errno != libc::ENOTSOCK;
            if !is_socket {
                // A signal handler may have called this.
                *errno = before;
            }
            is_socket.then_some(sent)
        };
        if let Some(sent) = sent {
            return sent;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { __write(file, data, bytes) }
}
