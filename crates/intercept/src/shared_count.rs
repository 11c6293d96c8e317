// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A number that threads of a process read without a lock. Used by pending, for what is asked
//! whenever the MPI looks for messages in vain.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The number. What was written before it was set is seen by who reads it.
#[derive(Debug)]
pub struct SharedCount(AtomicUsize);

impl SharedCount {
    /// Zero.
    pub const fn zero() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// From now on this number.
    pub fn set(&self, number: usize) {
        self.0.store(number, Ordering::Release);
    }

    /// Whether it is zero. Fast path.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}
