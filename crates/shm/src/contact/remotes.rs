// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All remotes by their ids, which are dense.

use std::net::SocketAddr;
use std::ops::{Index, IndexMut};

use weft_contract::RemoteId;

use crate::contact::remote::Remote;

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Remotes {
    remotes: Vec<Remote>,
}

impl Remotes {
    /// Makes room for a remote, of which nothing is known but its address.
    pub(crate) fn add(&mut self, remote: RemoteId, address: SocketAddr) {
        while self.remotes.len() <= remote.index() {
            self.remotes.push(Remote::new(address));
        }
    }

    /// A remote, if it was named.
    pub(crate) fn known(&mut self, remote: RemoteId) -> Option<&mut Remote> {
        self.remotes.get_mut(remote.index())
    }

    /// All ids there are now.
    pub(super) fn ids(&self) -> impl Iterator<Item = RemoteId> + use<> {
        (0..self.remotes.len() as u32).map(RemoteId)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Remote> {
        self.remotes.iter()
    }

    /// The addresses of those that wait for answers of ours, which find no room.
    pub(crate) fn owed(&self) -> impl Iterator<Item = SocketAddr> {
        let owed = self
            .iter()
            .filter(|entry| entry.waiting_counts().answers > 0);
        owed.map(|entry| entry.address)
    }

    /// Sends and answers that wait for room.
    pub(crate) fn waiting_count(&self) -> usize {
        self.iter().map(|entry| entry.waiting_counts().all()).sum()
    }
}

impl Index<RemoteId> for Remotes {
    type Output = Remote;

    #[inline(always)]
    fn index(&self, remote: RemoteId) -> &Remote {
        &self.remotes[remote.index()]
    }
}

impl IndexMut<RemoteId> for Remotes {
    #[inline(always)]
    fn index_mut(&mut self, remote: RemoteId) -> &mut Remote {
        &mut self.remotes[remote.index()]
    }
}
