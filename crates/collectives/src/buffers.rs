// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A rank's buffers in one call, as team.rs hands them to the algorithms.

use weft_memory::{BytesView, BytesViewMut};

use crate::fault::Fault;

/// One rank's buffers: what it gives, and where the result goes, which may hold what it gives.
#[derive(Debug)]
pub(crate) struct Buffers<'a> {
    /// None: what we give lies in `recv`.
    pub(crate) send: Option<BytesView<'a>>,
    /// Empty on ranks that do not get the result.
    pub(crate) recv: BytesViewMut<'a>,
}

impl Buffers<'_> {
    /// # Errors
    /// [`Fault::Length`] if a result as long as what is given does not fit.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.check_recv(self.given().length_bytes())
    }

    /// # Errors
    /// [`Fault::Length`] if so many bytes do not fit.
    pub(crate) fn check_recv(&self, needed_bytes: usize) -> Result<(), Fault> {
        let given_bytes = self.recv.length_bytes();
        if given_bytes < needed_bytes {
            return Err(Fault::Length {
                given_bytes,
                needed_bytes,
            });
        }
        Ok(())
    }

    /// What this rank gives.
    pub(crate) fn given(&self) -> BytesView<'_> {
        match self.send {
            Some(send) => send,
            None => self.recv.as_view(),
        }
    }
}

/// Which ranks get the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Receivers {
    All,
    Only(usize),
}

impl Receivers {
    pub(crate) fn include(self, rank: usize) -> bool {
        self == Self::All || self == Self::Only(rank)
    }
}
