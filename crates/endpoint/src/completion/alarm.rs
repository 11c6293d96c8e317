// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wakes who sleeps on a queue or a counter when another thread's call brings what it sleeps for.
//!
//! The transports' descriptors wake a sleeper for what other processes send; but the message may be
//! received, or the send be completed, by a thread that is awake. Armed by the calls on sleepers,
//! sounded by `queue` and `counter`.

use std::fmt;

/// The alarm of one queue or counter.
#[derive(Default)]
pub(crate) struct Alarm {
    /// Somebody sleeps and has not been rung for.
    armed: bool,
    sleepers_count: u32,
    bell: Option<Box<dyn Fn() + Send>>,
}

impl fmt::Debug for Alarm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Alarm")
            .field("armed", &self.armed)
            .field("sleepers_count", &self.sleepers_count)
            .finish_non_exhaustive()
    }
}

impl Alarm {
    /// Says what to call when there is something for a sleeper. Setup.
    pub(crate) fn set(&mut self, bell: Box<dyn Fn() + Send>) {
        self.bell = Some(bell);
    }

    /// One more sleeps.
    pub(crate) fn arm(&mut self) {
        self.sleepers_count += 1;
        self.armed = self.bell.is_some();
    }

    /// One sleeps no longer; true if it was the last.
    pub(crate) fn disarm(&mut self) -> bool {
        self.sleepers_count = self.sleepers_count.saturating_sub(1);
        self.armed &= self.sleepers_count > 0;
        self.sleepers_count == 0
    }

    /// Something came. Fast path: one look while nobody sleeps.
    #[inline(always)]
    pub(crate) fn sound(&mut self) {
        if self.armed {
            self.ring();
        }
    }

    #[cold]
    fn ring(&mut self) {
        self.armed = false;
        if let Some(bell) = &self.bell {
            bell();
        }
    }
}
