// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which of two joined transports leads to a remote: decided once from its address, and changed if
//! the local one turns it away. Asked by joined.rs for every send.

use std::net::{IpAddr, SocketAddr};

use weft_contract::RemoteId;

use super::detour::Detours;

/// Which remotes are reached through the local transport.
#[derive(Clone, Copy, Debug, Default)]
pub enum Locality {
    /// Those whose address is one of this network namespace's interfaces.
    #[default]
    ByInterface,
    /// All.
    Everybody,
    /// None, not even ourselves.
    Nobody,
    /// Those that the function says, given our address and theirs.
    By(fn(SocketAddr, SocketAddr) -> bool),
}

/// The way to one remote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Local,
    Network,
    /// Over the network too, once what the local transport gave back has gone there.
    Detour,
    /// On another host, and there is no network.
    Nowhere,
}

/// Who lies which way.
#[derive(Debug)]
pub(super) struct Ways {
    /// By id.
    pub(super) ways: Vec<Way>,
    pub(super) locality: Locality,
    pub(super) own: SocketAddr,
    pub(super) interfaces: Vec<IpAddr>,
    pub(super) has_network: bool,
    /// What the local transport gave back.
    pub(super) detours: Detours,
}

impl Ways {
    /// Decides the way to a remote. Slow path.
    fn decide(&self, address: SocketAddr) -> Way {
        let ip = address.ip();
        let is_local = match self.locality {
            Locality::ByInterface => {
                ip == self.own.ip() || ip.is_loopback() || self.interfaces.contains(&ip)
            }
            Locality::Everybody => true,
            Locality::Nobody => false,
            Locality::By(rule) => rule(self.own, address),
        };
        match (is_local, self.has_network) {
            (true, _) => Way::Local,
            (false, true) => Way::Network,
            (false, false) => Way::Nowhere,
        }
    }

    /// Learns of a remote, whose id is the next one.
    pub(super) fn add(&mut self, remote: RemoteId, address: SocketAddr) {
        debug_assert_eq!(remote.index(), self.ways.len(), "ids are dense");
        self.ways.push(self.decide(address));
    }

    /// Fast path.
    #[inline(always)]
    pub(super) fn to(&self, remote: RemoteId) -> Way {
        self.ways
            .get(remote.index())
            .copied()
            .unwrap_or(Way::Nowhere)
    }
}
