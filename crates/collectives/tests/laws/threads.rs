// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads as the ranks of one team, over memory that they share. Used by the tests beside this
//! file.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weft_collectives::{Shape, Stopped, Team, Wait, segment_bytes};

/// Guards against hanging alone. Chosen: a thousand times what any test takes.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// A segment on the heap.
pub struct Memory {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory belongs to the process, and teams only touch it as shared memory.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn new(ranks: usize) -> Self {
        let layout = Layout::from_size_align(segment_bytes(ranks), 4096).expect("a layout");
        // SAFETY: the layout is not empty.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory");
        Self { base, layout }
    }

    /// A rank's team; must not outlive the memory.
    pub fn team(&self, rank: usize, shape: &Shape) -> Team {
        let ranks = shape.domains.len();
        // SAFETY: the memory has as many bytes, was zero, and outlives the teams of a test.
        unsafe { Team::attach(self.base, ranks, rank, shape) }.expect("attached")
    }

    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Writes over a word of the segment, as a bad process would: another word of it, or a number
    /// near it, or anything.
    pub fn spoil(&self, rng: &mut fastrand::Rng) {
        // Half of the time a control page, where the marks are.
        let pages = self.layout.size() / 4096;
        let words = if rng.bool() {
            pages.min(3) * 512
        } else {
            pages * 512
        };
        let (from, to) = (rng.usize(..words), rng.usize(..words));
        let seen = self.word(from).load(Ordering::Relaxed);
        let value = match rng.u8(..4) {
            0 => rng.u64(..),
            1 => seen.wrapping_add(1 << 16),
            2 => seen.wrapping_sub(1 << 16),
            _ => seen,
        };
        self.word(to).store(value, Ordering::Relaxed);
    }

    /// How many pages behind the ranks' control pages hold anything but zeros.
    pub fn staging_pages(&self, ranks: usize) -> usize {
        let pages = ranks..self.layout.size() / 4096;
        let is_used = |page: &usize| {
            let mut words = page * 512..(page + 1) * 512;
            words.any(|at| self.word(at).load(Ordering::Relaxed) != 0)
        };
        pages.filter(is_used).count()
    }

    /// A word of the segment, by its place.
    pub fn word(&self, index: usize) -> &AtomicU64 {
        assert!((index + 1) * 8 <= self.layout.size());
        let word = self.base.as_ptr().wrapping_add(index * 8).cast();
        // SAFETY: the word lies in the memory and is aligned.
        unsafe { AtomicU64::from_ptr(word) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

/// Yields; gives up when another rank has panicked.
pub struct Yielding<'a> {
    stop: &'a AtomicBool,
    begun: Instant,
}

impl Wait for Yielding<'_> {
    fn pause(&mut self, _: u32) -> Result<(), Stopped> {
        std::thread::yield_now();
        if self.stop.load(Ordering::Relaxed) || self.begun.elapsed() > LONGEST_WAIT {
            return Err(Stopped);
        }
        Ok(())
    }
}

/// Says that a rank has ended before its work was done.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs `work` as every rank; what each of them answers.
pub fn run<T: Send>(
    shape: &Shape,
    work: impl Fn(&mut Team, &mut Yielding<'_>) -> T + Sync,
) -> Vec<T> {
    run_in(&Memory::new(shape.domains.len()), shape, work)
}

/// As [`run`], in memory of the caller's.
pub fn run_in<T: Send>(
    memory: &Memory,
    shape: &Shape,
    work: impl Fn(&mut Team, &mut Yielding<'_>) -> T + Sync,
) -> Vec<T> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let start = |rank| {
            let (stop, work) = (&stop, &work);
            scope.spawn(move || {
                let _ended = Ended(stop);
                let mut wait = Yielding {
                    stop,
                    begun: Instant::now(),
                };
                work(&mut memory.team(rank, shape), &mut wait)
            })
        };
        let threads: Vec<_> = (0..shape.domains.len()).map(start).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|end| end.expect("no rank panics")).collect()
    })
}
