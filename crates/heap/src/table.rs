// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which memory of this process is shared, and all that changes it. Asked by interface for each
//! long message, by interpose for memory that is freed or mapped anew, and by fork. Sources:
//! mmap(2), mremap(2).
//!
//! The steps are such that no thread ever finds other bytes than the program wrote: shared pages
//! come in the place of private ones, and back, in one step of the system's, with the same bytes.

use std::cell::UnsafeCell;

use crate::file::File;
use crate::filter::Filter;
use crate::offers::Offers;
use crate::real;
use crate::spans::{Span, Spans};

/// Bytes that are exchanged at once. Chosen: this much memory is in use twice meanwhile, and a
/// signal or another thread's free(3) waits for no more.
const PIECE_BYTES: usize = 1 << 20;

/// Spans of shared memory; half of them before programs cut them. Each costs the process two
/// mappings more, of 65530 that it may have.
pub(crate) const SHARED_SPANS: usize = 2048;

/// Spans that are never to be shared. Chosen: when there are more, what lies between two is not,
/// either.
const BARRED_SPANS: usize = 512;

/// Which memory may hold shared pages, without the lock.
pub static FILTER: Filter = Filter::new();

/// The table of this process.
pub static TABLE: Table = Table {
    lock: UnsafeCell::new(libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP),
    state: UnsafeCell::new(State {
        shared: Spans::new(),
        barred: Spans::new(),
        offers: Offers::new(),
        file: None,
        is_off: false,
        next_place: 0,
        most_bytes: 0,
        to_bytes: 0,
    }),
};

/// How far the sharing of a buffer has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// All of it is shared.
    Shared,
    /// There may be more to do.
    More,
    /// Some of it stays private.
    Private,
}

/// The state with its lock.
#[derive(Debug)]
pub struct Table {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    state: UnsafeCell<State>,
}

// SAFETY: the state is reached through the lock only.
unsafe impl Sync for Table {}

/// What the lock guards.
#[derive(Debug)]
pub struct State {
    shared: Spans<SHARED_SPANS>,
    /// Memory that the program wants as it is: advised, locked.
    barred: Spans<BARRED_SPANS>,
    pub(crate) offers: Offers,
    pub(crate) file: Option<File>,
    /// Nothing is shared from now on.
    is_off: bool,
    /// The first place in the file that no endpoint has.
    pub(crate) next_place: u64,
    /// Most shared memory.
    pub(crate) most_bytes: usize,
    /// Buffers of so many bytes and more stay private.
    pub(crate) to_bytes: usize,
}

impl Table {
    /// Keeps other threads out until [`Self::unlock`]. The thread that forks may come in again:
    /// other libraries' handlers of fork(2) free memory, and nothing is half done then.
    pub fn lock(&self) {
        // SAFETY: the mutex was initialised and does not move.
        unsafe { libc::pthread_mutex_lock(self.lock.get()) };
    }

    /// Lets other threads in again.
    pub fn unlock(&self) {
        // SAFETY: the mutex was initialised, does not move, and is held by this thread.
        unsafe { libc::pthread_mutex_unlock(self.lock.get()) };
    }

    /// In a child of fork(2): the lock was taken by a thread that has another number here.
    pub fn renew_lock(&self) {
        // SAFETY: the child has one thread, this one, so nobody else looks at the mutex.
        unsafe { *self.lock.get() = libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP };
    }

    /// Does something with the state under the lock. `act` neither allocates nor frees.
    #[inline]
    pub fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.lock();
        // SAFETY: the lock keeps other threads out, and `act` calls nothing that comes back here,
        // so this thread has no other reference.
        let result = act(unsafe { &mut *self.state.get() });
        self.unlock();
        result
    }

    /// The same for what changes mappings: no signal handler runs meanwhile, which might unmap,
    /// too.
    pub fn change<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        // SAFETY: both sets are ours; the thread gets its own back.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            let result = self.with(act);
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
            result
        }
    }
}

impl State {
    /// Whether all pages are shared. Fast path.
    #[inline]
    pub fn holds(&self, span: Span) -> bool {
        self.shared.holds(span)
    }

    /// The spans that are shared.
    pub fn shared(&self) -> &[Span] {
        self.shared.as_slice()
    }

    /// How many bytes of a span are not shared.
    pub fn private_bytes(&self, span: Span) -> usize {
        let mut rest = span;
        let mut bytes = 0;
        while let Some(gap) = self.shared.first_gap(rest) {
            bytes += gap.bytes();
            rest.start = gap.end;
            if rest.start >= rest.end {
                break;
            }
        }
        bytes
    }

    /// Whether the program has said nothing against sharing these pages.
    pub fn may_share(&self, span: Span) -> bool {
        !self.is_off
            && self.file.is_some()
            && span.bytes() < self.to_bytes
            && self.barred.first_common(span).is_none()
    }

    /// Shares the first pages that are not shared, of at most [`PIECE_BYTES`]. The caller has seen
    /// that they are plain private memory which nobody writes meanwhile.
    pub fn share_next(&mut self, span: Span) -> Step {
        let Some(gap) = self.shared.first_gap(span) else {
            return Step::Shared;
        };
        let piece = gap.beginning(PIECE_BYTES);
        let fits = self.shared.bytes() + piece.bytes() <= self.most_bytes;
        let file = self
            .file
            .filter(|_| fits && self.shared.has_room() && self.may_share(span));
        let Some(file) = file.filter(|file| file.take(piece)) else {
            return Step::Private;
        };
        // SAFETY: the file holds what the memory holds, which nobody writes.
        if !unsafe { file.map_over(piece) } {
            file.give_back(piece);
            self.is_off = true;
            return Step::Private;
        }
        self.shared.add(piece);
        FILTER.add(piece);
        // SAFETY: the mapping just made; the advice changes no bytes.
        if !unsafe { real::advise(piece.start, piece.bytes(), libc::MADV_DONTFORK) } {
            self.is_off = true;
            self.make_private(piece);
            return Step::Private;
        }
        Step::More
    }

    /// Forgets pages that are mapped no longer, or by something else, and gives their memory back.
    pub fn forget(&mut self, span: Span) {
        while let Some(part) = self.shared.first_common(span) {
            self.take_out(part);
        }
    }

    /// Ends the sharing of pages whose bytes nobody needs; false if the system refuses.
    pub fn discard(&mut self, span: Span) -> bool {
        const FLAGS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        while let Some(part) = self.shared.first_common(span) {
            // SAFETY: nobody needs what is there.
            if unsafe { real::map(part.start, part.bytes(), FLAGS, -1, 0) }.is_none() {
                return false;
            }
            self.take_out(part);
        }
        true
    }

    /// Ends the sharing of pages, which keep their bytes; false if the system refuses.
    pub fn make_private(&mut self, span: Span) -> bool {
        while let Some(part) = self.shared.first_common(span) {
            let piece = part.beginning(PIECE_BYTES);
            if !self.exchange(piece) {
                return false;
            }
            self.take_out(piece);
        }
        true
    }

    /// Private memory with the bytes of shared pages, at an address of the system's choice.
    pub fn copy_of(&self, span: Span) -> Option<usize> {
        const FLAGS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: fresh memory, which nobody else knows; the pages are mapped, as the table says.
        unsafe {
            let fresh = real::map(0, span.bytes(), FLAGS, -1, 0)?;
            // The program may not let us read its pages; the file does.
            if !self.file.is_some_and(|file| file.read(span, fresh)) {
                let (from, to) = (span.start as *const u8, fresh as *mut u8);
                std::ptr::copy_nonoverlapping(from, to, span.bytes());
            }
            Some(fresh)
        }
    }

    /// Puts private pages with the same bytes in the place of shared ones; false if the system
    /// refuses.
    fn exchange(&self, span: Span) -> bool {
        let Some(fresh) = self.copy_of(span) else {
            return false;
        };
        // SAFETY: the copy is ours, and takes the place of what holds the same.
        unsafe {
            let moved = real::move_to(fresh, span.bytes(), span.start);
            if !moved {
                real::unmap(fresh, span.bytes());
            }
            moved
        }
    }

    /// Takes pages out of the table, which are mapped no longer.
    fn take_out(&mut self, part: Span) {
        self.offers.end(part);
        if let Some(file) = &self.file {
            file.give_back(part);
        }
        FILTER.remove(part);
        if let Err(rest) = self.shared.remove(part) {
            // There is no room to remember these; so they are shared no longer, nor is anything
            // else from now on. Without memory for that a child will not have them.
            FILTER.remove(rest);
            self.is_off = true;
            self.exchange(rest);
        }
    }

    /// Throws away what pages hold, which stay shared: they read as zero.
    pub fn clear(&mut self, span: Span) {
        let mut rest = span;
        while let Some(part) = self.shared.first_common(rest) {
            // SAFETY: the program has asked for it.
            if !unsafe { real::advise(part.start, part.bytes(), libc::MADV_REMOVE) }
                && let Some(file) = &self.file
            {
                file.give_back(part);
            }
            if part.end == rest.end {
                return;
            }
            rest.start = part.end;
        }
    }

    /// The program has told the system something about these pages: those that are private stay so.
    pub fn bar(&mut self, span: Span) {
        self.barred.add_coarsely(span);
        FILTER.note_barred();
    }

    /// The program has unmapped these pages; what comes there next is as any memory.
    pub fn unbar(&mut self, span: Span) {
        if let Err(rest) = self.barred.remove(span) {
            self.barred.add_coarsely(rest);
        }
    }

    /// Nothing more is shared from now on.
    pub fn bar_all(&mut self) {
        self.is_off = true;
    }

    /// The program has had children inherit these pages, which is not for those that are shared.
    pub fn keep_from_children(&mut self, span: Span) {
        let mut rest = span;
        while let Some(part) = self.shared.first_common(rest) {
            // SAFETY: shared pages; the advice changes no bytes.
            unsafe { real::advise(part.start, part.bytes(), libc::MADV_DONTFORK) };
            rest.start = part.end;
            if rest.start >= rest.end {
                return;
            }
        }
    }

    /// In a child, whose memory is all its own.
    pub fn begin_anew(&mut self) {
        for &span in self.shared.as_slice() {
            FILTER.remove(span);
        }
        self.shared.clear();
        self.next_place = 0;
        if let Some(file) = self.file.take() {
            file.close();
        }
    }
}
