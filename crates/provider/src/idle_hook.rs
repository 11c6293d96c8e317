// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What else goes on when an MPI looks for messages and finds none: the non-blocking collectives of
//! libweft-mpi.so (crates/intercept), which finds `weft_also_when_idle` here by its name. Called by
//! cq, without a lock.

use std::cell::Cell;
use std::sync::OnceLock;

use weft_fabric_sys::errno::FI_EAGAIN;

use crate::waiter::Waiter;

/// What is called; set once in a process.
static ALSO: OnceLock<extern "C" fn()> = OnceLock::new();

/// Registers a function. From now on each read of a completion queue that finds nothing calls the
/// function, in the thread that reads. Some reads that find something call it too, so that a queue
/// that is never empty delays nothing. Queues on which a thread can sleep do not call it: there
/// nobody reads while the others go on. The function must live as long as the process, and must not
/// wait. Several threads may call it at the same time. The first function that is registered stays;
/// returns whether it is this one.
// SAFETY: a name of our own, which only libweft-mpi.so looks for.
#[unsafe(no_mangle)]
extern "C" fn weft_also_when_idle(function: extern "C" fn()) -> bool {
    std::ptr::fn_addr_eq(*ALSO.get_or_init(|| function), function)
}

/// Reads that find something, of which one calls the function. Chosen: a call of it takes some
/// nanoseconds, and a read that finds something takes some tens.
const READS_PER_CALL: u32 = 64;

thread_local! {
    /// Those reads of this thread.
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// Returns the result of a read of a queue, and calls the function if the read found nothing. Fast
/// path.
#[inline(always)]
pub fn unless_idle(waiter: &Waiter, read: isize) -> isize {
    if ALSO.get().is_some() {
        call_unless_idle(waiter, read);
    }
    read
}

/// The same where there is a function. Apart, so that without one a read keeps no register for it.
#[cold]
#[inline(never)]
fn call_unless_idle(waiter: &Waiter, read: isize) {
    if let Some(function) = ALSO.get()
        && !waiter.may_block()
    {
        let is_idle = read == -(FI_EAGAIN as isize);
        if is_idle || is_turn() {
            function();
        }
    }
}

/// Whether this read that found something is one that calls.
fn is_turn() -> bool {
    let reads = READS.get().wrapping_add(1);
    READS.set(reads);
    reads.is_multiple_of(READS_PER_CALL)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use weft_fabric_sys::eq::{FI_WAIT_FD, FI_WAIT_NONE};

    use super::*;
    use crate::wait_set::Calls;

    static CALLS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn count() {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }

    extern "C" fn other() {
        CALLS.fetch_add(1_000_000, Ordering::Relaxed);
    }

    #[test]
    fn a_function_is_called_by_reads_of_queues_that_nobody_sleeps_on() {
        let calls = Calls {
            try_wait: |_| 0,
            has_event: |_| false,
            wake_up: |_| {},
        };
        let waiter = |object| Waiter::new(object, calls).expect("a waiter");
        let (plain, sleeping) = (waiter(FI_WAIT_NONE), waiter(FI_WAIT_FD));
        let nothing = -(FI_EAGAIN as isize);
        assert_eq!(unless_idle(&plain, nothing), nothing);
        assert!(weft_also_when_idle(count), "the first one");
        assert!(weft_also_when_idle(count), "it is still that one");
        assert!(!weft_also_when_idle(other), "there is one");
        unless_idle(&sleeping, nothing);
        assert_eq!(CALLS.load(Ordering::Relaxed), 0);
        unless_idle(&plain, nothing);
        assert_eq!(CALLS.load(Ordering::Relaxed), 1);
        for _ in 0..2 * READS_PER_CALL {
            assert_eq!(unless_idle(&plain, 1), 1);
        }
        assert_eq!(CALLS.load(Ordering::Relaxed), 3);
    }
}
