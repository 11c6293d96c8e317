// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starting threads in a program that is not ours: they get none of its signals
//! (pthread_sigmask(3)). Used by udp for the thread that answers heartbeats, and by the provider
//! for FI_PROGRESS_AUTO.

/// Calls `start`, in which a thread is started, with all signals blocked; the thread inherits that.
pub fn without_signals<R>(start: impl FnOnce() -> R) -> R {
    // SAFETY: signal sets are plain data, filled by the calls; the mask of this thread is put back.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let started = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        started
    }
}
