// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an endpoint asks of every route beside moving bytes: to open, to know remotes, to wake a
//! sleeper. Implemented by each transport crate; called by the endpoint, which knows routes by
//! these traits alone.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use crate::{DirectAccess, NoDirectAccess, Peer, RemoteId};

/// The address under which a route shall be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// This one; port 0, or no address at all, lets the route choose.
    pub address: Option<SocketAddr>,
    /// The route is also to be reached under every other address of the host.
    pub everywhere: bool,
    /// Another route of the endpoint holds the UDP port of the address: here the address is only a
    /// name, and what this route cannot send may go over the other
    /// ([`crate::Owner::on_turned_away`]).
    pub is_held: bool,
}

/// Why a route does not open, as far as programs tell reasons apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteErrorKind {
    /// Another endpoint has the address.
    AddressInUse,
    /// The address is none of this host.
    AddressNotAvailable,
    /// A setting has no meaning.
    Invalid,
    /// Memory, files or sockets ran out.
    NoResources,
}

/// Why a route does not open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteError {
    /// For programs.
    pub kind: RouteErrorKind,
    /// For people: what was wrong, the value, the limit, the fix.
    pub words: String,
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for RouteError {}

/// What a thread asks of a route before and after it sleeps. A route without a descriptor keeps
/// the defaults: nobody can sleep on it.
pub trait Sleep {
    /// A descriptor that becomes readable when there may be progress to make after `before_sleep`.
    fn wait_fd(&self) -> Option<RawFd> {
        None
    }

    /// Announces a sleep on the descriptor; false if there is something to do first. Slow path.
    fn before_sleep(&mut self) -> bool {
        false
    }

    /// Ends the announcement. Slow path.
    fn after_sleep(&mut self) {}

    /// Whether transfers are under way that move only while somebody makes progress, so that a
    /// progress thread must not stay asleep.
    fn is_busy(&self) -> bool {
        false
    }

    /// Whether the descriptor wakes a sleeper when `remote` has room again, after the route
    /// answered [`crate::PostError::Busy`].
    fn wakes_for_room(&self, _: RemoteId) -> bool {
        false
    }
}

/// A way to reach remotes: what an endpoint needs of it. All calls come from one thread at a time.
pub trait Route: Peer + Sleep + Sized {
    /// What the route wants to know when it is opened.
    type Settings: Clone + Default;
    /// What it counts.
    type Statistics;

    /// Opens the route at `place`. Setup.
    ///
    /// # Errors
    /// What failed.
    fn open(settings: &Self::Settings, place: Place) -> Result<Self, RouteError>;

    /// The address under which others reach us.
    fn local_address(&self) -> SocketAddr;

    /// Says who `remote` is; comes before any send to it. Ids come in order, each once. Slow path.
    fn add_remote(&mut self, remote: RemoteId, address: SocketAddr);

    /// The user has named the address of `remote` again: if it was lost, another process may be
    /// there now. Slow path.
    fn name_again(&mut self, remote: RemoteId);

    /// Messages to `remote` go this way from now on, in an endpoint that has other routes too: what
    /// only remotes in use need is begun now. Slow path.
    fn begin_use(&mut self, _remote: RemoteId) {}

    /// Asks that the death of `remote` be noticed even if nothing is sent to it, or no longer. If
    /// it is dead already, the next progress says so ([`crate::Owner::on_remote_lost`]), again if
    /// need be: a receive that names it waits. Saying so ends the watch. Slow path.
    fn watch(&mut self, remote: RemoteId, on: bool);

    /// What was counted so far.
    fn statistics(&self) -> Self::Statistics;

    /// Access to memory of remotes without their help, where the route has it. Fast path.
    #[inline]
    fn direct(&mut self) -> Option<&mut impl DirectAccess> {
        None::<&mut NoDirectAccess>
    }
}
