// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests that never complete, by which a rank that waits drives the MPI's progress: generalised
//! ones (MPI 4.1, 13.2), which take part in no communication. Used by waiting and driver, a request
//! for each communicator; ended by communicators.
//!
//! When a communicator goes, its request is kept for another. To end it there would be to call the
//! MPI from inside: MPICH frees a communicator with operations under way as the last of them ends,
//! in any call, and holds a lock that MPI_Grequest_complete takes, too (seen: MPICH 5.0.2 at
//! MPI_THREAD_MULTIPLE ends the program).

use std::ffi::{c_int, c_void};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::functions::{Functions, Handle};
use crate::mpi::Mpi;

/// Those that no communicator has.
static SPARE: Mutex<Vec<Handle>> = Mutex::new(Vec::new());

fn spare() -> MutexGuard<'static, Vec<Handle>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" fn query(_: *mut c_void, _: *mut c_void) -> c_int {
    0
}

unsafe extern "C" fn free(_: *mut c_void) -> c_int {
    0
}

unsafe extern "C" fn cancel(_: *mut c_void, _: c_int) -> c_int {
    0
}

/// A request that never completes, while somebody has it.
#[derive(Debug)]
pub struct IdleRequest {
    mpi: &'static Functions,
    status_ignore: usize,
    request: Handle,
}

impl IdleRequest {
    /// One that nobody else has; `None` if the MPI gives none.
    pub fn take(mpi: &'static Mpi) -> Option<Self> {
        let kept = spare().pop();
        Some(Self {
            mpi: &mpi.functions,
            status_ignore: mpi.abi.status_ignore(),
            request: kept.or_else(|| start(mpi))?,
        })
    }

    /// Has the MPI take what has come.
    #[inline]
    pub fn progress(&mut self) {
        let mut flag = 0;
        let status = self.status_ignore as *mut c_void;
        // SAFETY: our own request, which no other thread has.
        unsafe { (self.mpi.test)(&mut self.request, &mut flag, status) };
    }
}

impl Drop for IdleRequest {
    fn drop(&mut self) {
        spare().push(self.request);
    }
}

fn start(mpi: &Mpi) -> Option<Handle> {
    let (mut request, nothing) = (0, std::ptr::null_mut());
    // SAFETY: the functions have the standard's types, and take nothing.
    let code = unsafe { (mpi.functions.start_request)(query, free, cancel, nothing, &mut request) };
    (code == 0).then_some(request)
}

/// Ends those that nobody has: MPI_Finalize has begun.
pub fn end_all(mpi: &Mpi) {
    let status = mpi.abi.status_ignore() as *mut c_void;
    for mut request in mem::take(&mut *spare()) {
        // SAFETY: our own request, completed once and waited for; the MPI still lives, since it
        // calls us.
        unsafe {
            if (mpi.functions.complete_request)(request) == 0 {
                (mpi.functions.wait)(&mut request, status);
            }
        }
    }
}
