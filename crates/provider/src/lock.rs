// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How calls into one domain exclude each other: not at all, or by one lock.
//!
//! Chosen when a domain is opened, from the application's threading and progress models. All tables
//! of functions are made once for each kind, so that nothing on the fast path asks which one it is.
//! The third kind, with a thread that makes progress, is in progress_thread. Source: fi_domain(3),
//! threading models.

use std::cell::UnsafeCell;
use std::io;
use std::ops::DerefMut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::routes::Guarded;
use crate::tables::Tables;

/// Guards a value against calls from several threads. Each kind of lock has its own tables of
/// calls.
pub trait Lock: Tables + 'static {
    /// Makes a guard around a value.
    ///
    /// # Errors
    /// When the system refuses what the guard needs.
    fn new(value: Guarded) -> io::Result<Self>
    where
        Self: Sized;

    /// Access to the value, for the thread that entered.
    type Entered<'a>: DerefMut<Target = Guarded>;

    /// Gives the value to this thread alone, until the result is dropped. The fast path uses this
    /// and not `with`, because the compiler inlines a closure only if it is short.
    ///
    /// # Safety
    /// This thread must not be inside already.
    unsafe fn enter(&self) -> Self::Entered<'_>;

    /// Calls `work` with the value, while no other thread uses it. `work` must not call `with` on
    /// the same guard.
    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut Guarded) -> R) -> R {
        // SAFETY: `work` does not come back here (contract), nor did our caller come from there.
        let mut entered = unsafe { self.enter() };
        work(&mut entered)
    }

    /// Called when an endpoint was enabled. Setup.
    fn learn_transports(&self) {}
}

const fn assert_send<T: Send>() {}

// Pointers hide from the compiler that several threads reach one domain; this asks it nevertheless.
const _: () = assert_send::<Guarded>();

/// For FI_THREAD_DOMAIN: the application lets only one thread at a time into a domain.
pub struct Unlocked {
    value: UnsafeCell<Guarded>,
}

impl Lock for Unlocked {
    fn new(value: Guarded) -> io::Result<Self> {
        Ok(Self {
            value: UnsafeCell::new(value),
        })
    }

    type Entered<'a> = &'a mut Guarded;

    #[inline(always)]
    unsafe fn enter(&self) -> &mut Guarded {
        // SAFETY: the application promised FI_THREAD_DOMAIN, so no other thread is in this domain,
        // and this one is not inside already (contract): the reference is the only one.
        unsafe { &mut *self.value.get() }
    }
}

/// For every other threading model: one lock for the whole domain.
pub struct Locked {
    value: Mutex<Guarded>,
}

impl Lock for Locked {
    fn new(value: Guarded) -> io::Result<Self> {
        Ok(Self {
            value: Mutex::new(value),
        })
    }

    type Entered<'a> = MutexGuard<'a, Guarded>;

    #[inline(always)]
    unsafe fn enter(&self) -> MutexGuard<'_, Guarded> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
