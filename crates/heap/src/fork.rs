// SPDX-License-Identifier: Apache-2.0 OR MIT
//! fork(2): the child gets a copy of its own of what is shared; all other memory is the system's to
//! copy, page by page, as it is written. Called by the C library's fork() through
//! pthread_atfork(3); vfork, posix_spawn, system and popen share the parent's memory until they
//! execute and need none.
//!
//! Shared mappings are not inherited, so a child made by a raw clone(2) finds nothing there rather
//! than its parent's memory. The parent copies them into private memory before it forks, which the
//! child inherits and moves to where it belongs. No descriptor is needed for that, and nobody
//! waits.

use std::cell::UnsafeCell;
use std::sync::OnceLock;

use crate::real;
use crate::spans::Span;
use crate::table::{SHARED_SPANS, TABLE};

/// Copies of shared spans, each with the address where it lies now; 0 if there was no memory for
/// it.
struct Copies(UnsafeCell<([(Span, usize); SHARED_SPANS], usize)>);

// SAFETY: used by the thread that forks, under the table's lock.
unsafe impl Sync for Copies {}

static COPIES: Copies = Copies(UnsafeCell::new((
    [(Span { start: 0, end: 0 }, 0); SHARED_SPANS],
    0,
)));

static REGISTERED: OnceLock<()> = OnceLock::new();

/// Registers what is to be done at a fork. Setup, once.
pub fn register() {
    REGISTERED.get_or_init(|| {
        // SAFETY: the functions live as long as the process: a preloaded library is never unloaded.
        unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
    });
}

extern "C" fn prepare() {
    TABLE.lock();
    // SAFETY: under the lock.
    let (copies, count) = unsafe { &mut *COPIES.0.get() };
    *count = TABLE.with(|state| {
        for (copy, span) in copies.iter_mut().zip(state.shared()) {
            *copy = (*span, state.copy_of(*span).unwrap_or(0));
        }
        state.shared().len()
    });
}

fn copies() -> &'static [(Span, usize)] {
    // SAFETY: under the lock, or in a child, which has one thread.
    let (copies, count) = unsafe { &*COPIES.0.get() };
    &copies[..*count]
}

extern "C" fn in_parent() {
    for &(span, fresh) in copies() {
        if fresh != 0 {
            // SAFETY: the copy is ours.
            unsafe { real::unmap(fresh, span.bytes()) };
        }
    }
    TABLE.unlock();
}

extern "C" fn in_child() {
    TABLE.renew_lock();
    TABLE.with(|state| {
        for &(span, fresh) in copies() {
            // Other handlers may have freed some of it since.
            let mut rest = span;
            while let Some(part) = first_of(state.shared(), rest) {
                let from = fresh + (part.start - span.start);
                // SAFETY: nothing is mapped there in a child, and the copy is ours.
                if fresh == 0 || !unsafe { real::move_to(from, part.bytes(), part.start) } {
                    give_up();
                }
                rest.start = part.end;
                if rest.start >= rest.end {
                    break;
                }
            }
        }
        state.begin_anew();
    });
}

/// The first pages of a span that are shared.
fn first_of(shared: &[Span], span: Span) -> Option<Span> {
    shared.iter().find_map(|held| held.common(&span))
}

/// A child without its memory cannot go on.
fn give_up() -> ! {
    const WHY: &str = "weft-heap: a child process could not get its copy of shared \
                       memory: there is no more \
                       for it (see the job's limits, or run with --heap private)\n";
    // SAFETY: plain system calls on a constant.
    unsafe {
        libc::write(2, WHY.as_ptr().cast(), WHY.len());
        libc::_exit(127);
    }
}
