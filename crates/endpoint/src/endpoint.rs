// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an endpoint is: a transport, and all that its callbacks change. Opened by opening.rs.

use std::net::SocketAddr;

use weft_contract::{RemoteId, Route};

use crate::core::Core;
use crate::foreign::Foreign;
use crate::ids::{FiAddr, VectorId};
use crate::settings::EndpointSettings;

/// An endpoint: its transport on one side, and on the other all that the transport's callbacks
/// change.
pub(crate) struct Endpoint<P> {
    pub(crate) settings: EndpointSettings,
    pub(crate) vector: Option<VectorId>,
    /// Opened by `enable`.
    pub(crate) local: Option<P>,
    pub(crate) core: Core,
    /// Matches the messages, if we do not.
    pub(crate) foreign: Option<Box<Foreign>>,
    /// Queues that sleep on the transport.
    pub(crate) sleepers_count: u32,
    /// Remotes whose death the transport was asked to notice, and some that were before.
    pub(crate) watched: Vec<RemoteId>,
    /// Rounds of progress without an event.
    pub(crate) idle_rounds_count: u32,
    /// The process that opened it.
    pub(crate) process: u32,
}

impl<P: Route> Endpoint<P> {
    /// Learns what the user calls an address, and that its first name is `first`. Nothing is
    /// learned before the endpoint is enabled; enabling catches up.
    pub(crate) fn learn(&mut self, name: FiAddr, address: SocketAddr, first: FiAddr) {
        let Some(local) = &mut self.local else { return };
        let (remote, new) = self.core.remotes.at(address);
        if new {
            local.add_remote(remote, address);
        } else {
            local.name_again(remote);
        }
        self.core.remotes.set_name(name, remote, first);
    }
}
