// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A communicator that several threads use at once, where MPI allows it.
//!
//! Made by programs from a communicator; all of its methods are the communicator's.

use crate::communicator::Communicator;
use crate::session::ThreadLevel;
use std::ops::Deref;

/// A communicator for threads; exists only when MPI granted [`ThreadLevel::Multiple`].
#[derive(Clone, Copy)]
pub struct Shared<'a>(&'a Communicator<'a>);

// SAFETY: MPI_THREAD_MULTIPLE allows any thread to call MPI at any time (checked in
// `Shared::of`); the communicator and its session are only read after they were made, and
// the borrow keeps both alive.
unsafe impl Send for Shared<'_> {}
// SAFETY: the communicator and its session are only read, and MPI may be called by any thread.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    /// A communicator for use by several threads; `None` when MPI allows less than
    /// [`ThreadLevel::Multiple`].
    pub fn of(communicator: &'a Communicator<'a>) -> Option<Self> {
        (communicator.session.granted() == ThreadLevel::Multiple).then_some(Self(communicator))
    }
}

impl<'a> Deref for Shared<'a> {
    type Target = Communicator<'a>;

    #[inline]
    fn deref(&self) -> &Communicator<'a> {
        self.0
    }
}
