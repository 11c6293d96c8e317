// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The one door to atomics: the processor's, or loom's when its models run (`--cfg loom`).

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::cell::UnsafeCell;

/// `core::cell::UnsafeCell` with loom's closures in place of `get`, so that models see every
/// access.
#[cfg(not(loom))]
#[repr(transparent)]
#[derive(Debug)]
pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    #[cfg(test)]
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Hands out the address for reading.
    #[inline(always)]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Hands out the address for writing.
    #[inline(always)]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
