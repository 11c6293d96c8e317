// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How senders say "look at my lane" to a receiver that does not poll it (docs/shm-layout.md,
//! clause 6).
//!
//! One bit for each slot and one summary bit for each word of them, so that a receiver with a
//! thousand silent remotes reads one word. Rung by shm after a push into a lane that is not polled;
//! answered by shm's progress.

use weft_memory::SharedLayout;
use weft_os::crash_point;

use crate::layout::SLOT_COUNT;
use crate::sync::{AtomicU64, Ordering, fence};

const WORDS: usize = SLOT_COUNT / 64;
const _: () = assert!(WORDS <= 64, "one summary word covers all words");

/// The bells of one region. The summary has a line of its own: it is what the receiver polls.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Doorbell {
    summary: AtomicU64,
    /// Not 0 while the receiver sleeps or is about to.
    sleeping: AtomicU64,
    #[cfg(not(loom))]
    reserved: [AtomicU64; 14],
    words: [AtomicU64; WORDS],
}

// SAFETY: repr(C), all fields atomic words; any bytes are valid.
unsafe impl SharedLayout for Doorbell {}

impl Doorbell {
    /// Rings for `slot`; true if the receiver sleeps and needs to be woken. Two locked operations:
    /// slow path.
    #[inline(never)]
    pub fn ring(&self, slot: usize) -> bool {
        // Pairs with the swaps in `collect`: word before summary here, summary before word there,
        // so that a summary bit never stands for a word bit that is not set yet.
        self.words[slot / 64 % WORDS].fetch_or(1 << (slot % 64), Ordering::AcqRel);
        crash_point!(14, "ring: the slot's bit is set, the summary's not");
        self.summary.fetch_or(1 << (slot / 64), Ordering::AcqRel);
        // Orders the bits above before the load below. Pairs with the fence in `begin_sleep`:
        // either the receiver sees our bit when it looks for the last time, or we see that it
        // sleeps.
        fence(Ordering::SeqCst);
        crash_point!(15, "ring: both bits are set, a sleeper is not woken");
        self.sleeping.load(Ordering::Relaxed) != 0
    }

    /// Whether any bell was rung. One load: fast path.
    #[inline(always)]
    pub fn is_rung(&self) -> bool {
        self.summary.load(Ordering::Relaxed) != 0
    }

    /// Takes all bells and calls `visit` with each slot that rang.
    #[inline(never)]
    pub fn collect(&self, mut visit: impl FnMut(usize)) {
        let mut summary = self.summary.swap(0, Ordering::AcqRel);
        crash_point!(16, "collect: the summary is taken, the bits are not");
        while summary != 0 {
            let word = summary.trailing_zeros() as usize;
            summary &= summary - 1;
            // Bits above the last word can only come from a remote that broke the layout.
            let Some(bells) = self.words.get(word) else {
                continue;
            };
            let mut bits = bells.swap(0, Ordering::AcqRel);
            while bits != 0 {
                visit(word * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    /// Announces that the receiver goes to sleep. It must look at everything once more after this
    /// call.
    pub fn begin_sleep(&self) {
        self.sleeping.store(1, Ordering::Relaxed);
        crash_point!(41, "sleep: announced, no barrier yet");
        // Pairs with the fence in `ring`.
        fence(Ordering::SeqCst);
    }

    /// Says that the receiver is awake.
    pub fn end_sleep(&self) {
        self.sleeping.store(0, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn new() -> Self {
        Self {
            summary: AtomicU64::new(0),
            sleeping: AtomicU64::new(0),
            #[cfg(not(loom))]
            reserved: [const { AtomicU64::new(0) }; 14],
            words: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_slot_that_rang_is_visited_once() {
        let bell = Doorbell::new();
        for slot in [0, 63, 64, 500, SLOT_COUNT - 1, 63] {
            assert!(!bell.ring(slot));
        }
        let mut visited = Vec::new();
        bell.collect(|slot| visited.push(slot));
        assert_eq!(visited, [0, 63, 64, 500, SLOT_COUNT - 1]);
        assert!(!bell.is_rung());
    }

    #[test]
    fn a_ring_tells_whether_the_receiver_sleeps() {
        let bell = Doorbell::new();
        bell.begin_sleep();
        assert!(bell.ring(1));
        bell.end_sleep();
        assert!(!bell.ring(1));
    }
}
