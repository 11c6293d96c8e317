// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which way messages to a remote go, and the user's names for remotes turned into ours and back.
//!
//! Asked by send.rs and receive.rs for every call; changed by address_vector.rs and by first contacts. An endpoint has
//! one transport; joined.rs makes one of two, and chooses between them once per remote.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use weft_contract::{DirectOp, Peer, Range, Registration, RemoteId};

use crate::error::Error;
use crate::ids::FiAddr;

/// The address under which a transport shall be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// This one; port 0, or no address at all, lets the transport choose.
    Wanted(Option<SocketAddr>),
    /// This one, whose UDP port another route of the endpoint holds: what one of them cannot send
    /// may go over the other.
    Held(SocketAddr),
}

impl Place {
    /// The address, as far as it is given.
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Wanted(address) => address,
            Self::Held(address) => Some(address),
        }
    }
}

/// What the endpoint asks of its transport beyond moving bytes.
// structure: allow trait-methods because sleeping takes four of them, and touching memory directly three with a default
pub trait LocalRoute: Peer + Sized {
    /// What else the transport wants to know when it is opened.
    type Settings: Clone + Default;
    /// What the transport counts.
    type Statistics;

    /// Opens the transport at `place`. Setup.
    ///
    /// # Errors
    /// What failed, as the user will see it, and in words for the log.
    fn open(settings: &Self::Settings, place: Place) -> Result<Self, (Error, String)>;

    /// Has others of this host reach the transport under every address of the host, too. Setup.
    fn listen_everywhere(&mut self) {}

    /// Says who `remote` is; comes before any send to it. Slow path.
    fn add_remote(&mut self, remote: RemoteId, address: SocketAddr);

    /// The user has named the address of `remote` again: if it was lost, another process may be there now. Slow path.
    fn name_again(&mut self, _: RemoteId) {}

    /// The address under which others reach us.
    fn local_address(&self) -> SocketAddr;

    /// Asks that the death of `remote` be noticed even if nothing is sent to it, or no longer. If it is dead
    /// already, the next progress says so ([`weft_contract::Owner::on_remote_lost`]), again if need be: a
    /// receive that names it waits. Saying so ends the watch. Slow path.
    fn watch(&mut self, remote: RemoteId, on: bool);

    /// A descriptor that becomes readable when there may be progress to make after `before_sleep`.
    fn wait_fd(&self) -> Option<RawFd>;

    /// Announces a sleep on the descriptor; false if there is something to do first.
    fn before_sleep(&mut self) -> bool;

    /// Ends the announcement.
    fn after_sleep(&mut self);

    /// Whether transfers are under way that move only while somebody makes progress, so that a progress thread
    /// must not stay asleep.
    fn is_busy(&self) -> bool {
        false
    }

    /// A remote is known that this transport leads to: from now on whoever asks whether this process lives gets an answer,
    /// as far as the transport can, while its program computes. Setup; nothing when it was called before.
    fn expect_remotes(&mut self) {}

    /// Says whether who makes progress waits for nothing that comes another way: then one call may look several times. Fast path.
    fn set_undisturbed(&mut self, _: bool) {}

    /// Lets remotes of this host touch memory without our help, as far as the transport can. Setup.
    fn publish_registration(&mut self, _: &Registration) {}

    /// Takes it back; false if a remote is at it and does not come to an end. Setup.
    fn withdraw_registration(&mut self, _key: u64) -> bool {
        true
    }

    /// Reads or writes registered memory of a remote now, without its help; false if that cannot
    /// be, and nothing was done.
    fn access_directly(&mut self, _: RemoteId, _: &Range, _: &mut DirectOp<'_>) -> bool {
        false
    }

    /// Whether the transport's descriptor wakes a sleeper when `remote` has room again, after it
    /// answered that it is busy.
    fn wakes_for_room(&self, _: RemoteId) -> bool {
        false
    }

    /// What was counted so far.
    fn statistics(&self) -> Self::Statistics;
}

/// What an endpoint knows of one remote.
#[derive(Debug)]
struct Remote {
    /// Its first name in the address vector; [`FiAddr::UNSPEC`] if it has none.
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
    /// The same, but nobody where sends wait for room: others must go behind them.
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

    /// The same, if no sends to it wait. Fast path.
    #[inline(always)]
    pub(crate) fn open(&self, name: FiAddr) -> Option<RemoteId> {
        let found = *self.open.get(usize::try_from(name.0).ok()?)?;
        (found != NOBODY).then_some(found)
    }

    /// Sends to `remote` wait from now on. Slow path.
    pub(crate) fn hold(&mut self, remote: RemoteId) {
        self.set_held(remote, true);
    }

    /// Sends to `remote` wait no longer. Slow path.
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

    /// What the user calls `remote`. Fast path.
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

    /// Learns that `name` leads to `remote`, whose first name is `first`. Slow path.
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

    /// Forgets `name`; its remote is now first called `first`. Slow path.
    pub(crate) fn clear_name(&mut self, name: FiAddr, first: FiAddr) {
        if let Some(remote) = self.named(name) {
            self.by_name[name.0 as usize] = NOBODY;
            self.open[name.0 as usize] = NOBODY;
            self.by_id[remote.index()].name = first;
        }
    }

    /// Whether `remote` is still to be watched; marks it so. Fast path.
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
