// SPDX-License-Identifier: Apache-2.0 OR MIT
//! sched_yield(2) for ranks that have a core of their own: `libweft-yield.so`.
//!
//! - *Purpose*: MPICH and Intel MPI call sched_yield each time they look for a message and find
//!   none. The system call takes longer than the message, so they find the message late. If no
//!   other thread waits for the core, a pause instruction is enough, and the next look comes at
//!   once.
//! - *Used by*: `weft run`, which preloads it into each rank. No crate links to it.
//! - *Start at*: [`pace::Pace::next`], which decides.
//!
//! The kernel counts how often a thread was taken off its core ([`kernel::times_taken_off`]). From
//! this count the library knows, at most [`pace::LOOK_NS`] late, that a thread shares its core.
//! Then it calls the system's sched_yield, until no other thread takes the core any more.

pub mod kernel;
pub mod pace;

use std::cell::Cell;
use std::ffi::c_int;

use pace::{Pace, Step};

thread_local! {
    // Neither allocates nor registers a destructor: a signal handler may call sched_yield, too.
    static PACE: Cell<Pace> = const { Cell::new(Pace::new()) };
}

/// sched_yield(2): returns 0, and leaves errno as it is.
// SAFETY: the same name, arguments and promise as the function whose place it takes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn sched_yield() -> c_int {
    // While a thread ends its memory may be gone; then it is the kernel's call, as ever.
    let step = PACE.try_with(|kept| {
        let mut pace = kept.get();
        let step = pace.next(kernel::now_ns, kernel::times_taken_off);
        kept.set(pace);
        step
    });
    match step {
        Ok(Step::Pause) => std::hint::spin_loop(),
        Ok(Step::Yield) | Err(_) => kernel::yield_truly(),
    }
    0
}
