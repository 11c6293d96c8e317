// SPDX-License-Identifier: Apache-2.0 OR MIT
//! fork(2) without exec, as programs do that start a helper of their own.
//!
//! Called by the worker, which has one thread that holds locks at most when it is in the library,
//! and is not then.

use std::io;

/// Starts a child that runs `act` and ends at once. Returns its process number.
///
/// # Errors
/// Those of fork(2).
pub fn helper(act: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: the child runs `act` and _exit, and takes no lock that another thread of the parent
    // may hold: the thread that reads orders takes none but that of its channel, which the child
    // does not touch.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            act();
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(0) }
        }
        child => Ok(child),
    }
}

/// Takes the end of children that have ended.
pub fn reap() {
    // SAFETY: any child; a null status is allowed.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}

/// Sleeps, in a child that must not take locks.
pub fn sleep_ms(milliseconds: u64) {
    let pause = libc::timespec {
        tv_sec: (milliseconds / 1000) as libc::time_t,
        tv_nsec: (milliseconds % 1000 * 1_000_000) as libc::c_long,
    };
    // SAFETY: reads the structure; null is allowed for the rest.
    unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
}
