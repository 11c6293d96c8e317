// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The one door to atomics: the processor's, or loom's when its models run (`--cfg loom`). Used by
//! segment.rs alone.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

/// A word of shared memory, written by one rank and read by the others.
#[cfg_attr(not(loom), repr(transparent))]
#[derive(Debug)]
pub(crate) struct Word(AtomicU64);

impl Word {
    /// A word of 0, as fresh memory holds.
    #[cfg(loom)]
    pub(crate) fn zero() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The word, and with it all that its writer wrote before [`Self::publish`].
    #[inline(always)]
    pub(crate) fn observe(&self) -> u64 {
        // Pairs with the store in `publish`.
        self.0.load(Ordering::Acquire)
    }

    /// Stores the word, after all that was written and read before.
    #[inline(always)]
    pub(crate) fn publish(&self, value: u64) {
        // Pairs with the load in `observe`.
        self.0.store(value, Ordering::Release);
    }

    /// The word, without order: another word published it.
    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Stores the word, without order: another word will publish it.
    #[inline(always)]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}
