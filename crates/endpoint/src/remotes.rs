// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The remotes of an endpoint: turns the user's names for them (`fi_addr_t`) into our ids and back.
//!
//! Asked by send.rs and receive.rs for every call; changed by address_vector.rs and by first
//! contacts. Which route leads to a remote: routes.rs.

use std::collections::HashMap;
use std::net::SocketAddr;

use weft_contract::RemoteId;

use crate::ids::FiAddr;

/// What an endpoint knows of one remote.
#[derive(Debug)]
struct Remote {
    /// The remote's first name in the address vector; [`FiAddr::UNSPEC`] if it has none.
    name: FiAddr,
    /// Whether the transport was asked to notice its death.
    watched: bool,
    /// Sends to it wait for room.
    held: bool,
}

/// Marks a name that leads to no remote. Chosen: ids are dense, so the largest is never reached.
const NOBODY: RemoteId = RemoteId(u32::MAX);

/// The remotes of one endpoint, by name, by id and by address.
#[derive(Debug, Default)]
pub(crate) struct Remotes {
    by_name: Vec<RemoteId>,
    /// As `by_name`, but without remotes to which sends wait for room: later sends must go behind
    /// those.
    open: Vec<RemoteId>,
    by_id: Vec<Remote>,
    by_address: HashMap<SocketAddr, RemoteId>,
}

impl Remotes {
    /// The remote that the user calls `name`. Fast path.
    #[inline(always)]
    pub(crate) fn named(&self, name: FiAddr) -> Option<RemoteId> {
        let found = *self.by_name.get(usize::try_from(name.0).ok()?)?;
        (found != NOBODY).then_some(found)
    }

    /// The remote that the user calls `name`, if no sends to it wait. Fast path.
    #[inline(always)]
    pub(crate) fn open(&self, name: FiAddr) -> Option<RemoteId> {
        let found = *self.open.get(usize::try_from(name.0).ok()?)?;
        (found != NOBODY).then_some(found)
    }

    /// Notes that sends to `remote` wait for room from now on. Slow path.
    pub(crate) fn hold(&mut self, remote: RemoteId) {
        self.set_held(remote, true);
    }

    /// Notes that no more sends to `remote` wait. Slow path.
    pub(crate) fn release(&mut self, remote: RemoteId) {
        self.set_held(remote, false);
    }

    fn set_held(&mut self, remote: RemoteId, held: bool) {
        let Some(known) = self.by_id.get_mut(remote.index()) else {
            return;
        };
        if std::mem::replace(&mut known.held, held) == held {
            return;
        }
        for (open, &named) in self.open.iter_mut().zip(&self.by_name) {
            if named == remote {
                *open = if held { NOBODY } else { remote };
            }
        }
    }

    /// The user's name for `remote`. Fast path.
    #[inline(always)]
    pub(crate) fn name_of(&self, remote: RemoteId) -> FiAddr {
        self.by_id
            .get(remote.index())
            .map_or(FiAddr::UNSPEC, |known| known.name)
    }

    /// The id of an address, and whether it is new. Slow path.
    pub(crate) fn at(&mut self, address: SocketAddr) -> (RemoteId, bool) {
        let next = RemoteId(self.by_id.len() as u32);
        let found = *self.by_address.entry(address).or_insert(next);
        if found == next {
            self.by_id.push(Remote {
                name: FiAddr::UNSPEC,
                watched: false,
                held: false,
            });
        }
        (found, found == next)
    }

    /// The address of a remote. Slow path: linear.
    pub(crate) fn address(&self, remote: RemoteId) -> Option<SocketAddr> {
        let mut known = self.by_address.iter();
        known.find_map(|(&address, &id)| (id == remote).then_some(address))
    }

    /// Notes that `name` leads to `remote`, whose first name is `first`. Slow path.
    pub(crate) fn set_name(&mut self, name: FiAddr, remote: RemoteId, first: FiAddr) {
        let index = name.0 as usize;
        if index >= self.by_name.len() {
            self.by_name.resize(index + 1, NOBODY);
            self.open.resize(index + 1, NOBODY);
        }
        self.by_name[index] = remote;
        let held = self.by_id[remote.index()].held;
        self.open[index] = if held { NOBODY } else { remote };
        self.by_id[remote.index()].name = first;
    }

    /// Forgets `name`; the first name of its remote is now `first`. Slow path.
    pub(crate) fn clear_name(&mut self, name: FiAddr, first: FiAddr) {
        if let Some(remote) = self.named(name) {
            self.by_name[name.0 as usize] = NOBODY;
            self.open[name.0 as usize] = NOBODY;
            self.by_id[remote.index()].name = first;
        }
    }

    /// Marks `remote` as watched; returns whether it was not watched before. Fast path.
    #[inline(always)]
    pub(crate) fn start_watching(&mut self, remote: RemoteId) -> bool {
        match self.by_id.get_mut(remote.index()) {
            Some(known) => !std::mem::replace(&mut known.watched, true),
            None => false,
        }
    }

    /// Whether `remote` is watched.
    pub(crate) fn is_watched(&self, remote: RemoteId) -> bool {
        self.by_id
            .get(remote.index())
            .is_some_and(|known| known.watched)
    }

    /// Notes that `remote` is no longer watched.
    pub(crate) fn stop_watching(&mut self, remote: RemoteId) {
        if let Some(known) = self.by_id.get_mut(remote.index()) {
            known.watched = false;
        }
    }
}
