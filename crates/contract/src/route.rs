// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an endpoint needs of every route besides moving bytes: to open, to know remotes, to wake a
//! thread that sleeps. Implemented by each transport crate; called by the endpoint, which knows
//! routes only by these traits.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use crate::{DirectAccess, NoDirectAccess, Peer, RemoteId};

/// The address by which remotes reach a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// This one; port 0, or no address at all, lets the route choose.
    pub address: Option<SocketAddr>,
    /// Whether remotes also reach the route by every other address of the host.
    pub everywhere: bool,
    /// Another route of the endpoint holds the UDP port of the address. For this route the address
    /// is only a name, and sends that it gives back may go over the other route
    /// ([`crate::Owner::on_turned_away`]).
    pub is_held: bool,
}

/// Why a route does not open, as far as programs tell reasons apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteErrorKind {
    /// Another endpoint has the address.
    AddressInUse,
    /// The address does not belong to this host.
    AddressNotAvailable,
    /// A setting has no meaning.
    Invalid,
    /// Memory, files or sockets ran out.
    NoResources,
}

/// Why a route does not open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteError {
    /// The reason, for programs.
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
/// the defaults: no thread can sleep on it.
pub trait Sleep {
    /// A descriptor that becomes readable when there may be progress to make after `before_sleep`.
    fn wait_fd(&self) -> Option<RawFd> {
        None
    }

    /// Announces a sleep on the descriptor; returns false if there is something to do first. Slow
    /// path.
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

    /// Whether the descriptor wakes a thread when there is room again for sends to `remote`, after
    /// the route returned [`crate::PostError::Busy`].
    fn wakes_for_room(&self, _: RemoteId) -> bool {
        false
    }
}

/// What a closing endpoint asks of a route.
pub trait Closing {
    /// The addresses of remotes that still need this process: they lack what was reported as sent,
    /// or an answer. Asked again and again, with progress in between; from the first call on the
    /// route hurries what it has held back. Slow path.
    fn owed(&mut self) -> Vec<SocketAddr> {
        Vec::new()
    }

    /// Tells the user, in words. By default nobody hears. Slow path.
    fn report(&self, _words: &str) {}
}

/// A route to remotes, as the endpoint uses it. All calls come from one thread at a time.
pub trait Route: Peer + Sleep + Closing + Sized {
    /// The settings that the route needs when it is opened.
    type Settings: Clone + Default;
    /// The counts that it keeps.
    type Statistics;

    /// Opens the route at `place`. Setup.
    ///
    /// # Errors
    /// What failed.
    fn open(settings: &Self::Settings, place: Place) -> Result<Self, RouteError>;

    /// The address by which remotes reach us.
    fn local_address(&self) -> SocketAddr;

    /// Tells the address of `remote`, before any send to it. Ids come in order, each once. Slow
    /// path.
    fn add_remote(&mut self, remote: RemoteId, address: SocketAddr);

    /// The user has inserted the address of `remote` again. If that remote was lost, another
    /// process may have the address now. Slow path.
    fn name_again(&mut self, remote: RemoteId);

    /// In an endpoint with several routes: from now on messages to `remote` take this route, so the
    /// route begins what only remotes in use need. Slow path.
    fn begin_use(&mut self, _remote: RemoteId) {}

    /// Sets whether the route notices the death of `remote` even if nothing is sent to it. If the
    /// remote is dead already, the next progress reports that
    /// ([`crate::Owner::on_remote_lost`]), even if it was reported before, since a receive that
    /// names the remote waits now. The report ends the watch. Slow path.
    fn watch(&mut self, remote: RemoteId, on: bool);

    /// The counts so far.
    fn statistics(&self) -> Self::Statistics;

    /// Access to memory of remotes without their help, where the route has it. Fast path.
    #[inline]
    fn direct(&mut self) -> Option<&mut impl DirectAccess> {
        None::<&mut NoDirectAccess>
    }
}
