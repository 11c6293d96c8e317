// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which paths there are between the addresses of two hosts that have several (srd-protocol 17).
//!
//! Called by contact and receive when more is known of a remote, by its driver when routes are known; calls path.

use std::net::SocketAddr;

use weft_wire::hello::HELLO_BYTES;
use weft_wire::{Hello, PORT_COUNT, Path, PortAddresses};

use crate::config::Config;
use crate::events::Remote;
use crate::flow::{Flow, Identity, Shared};
use crate::machine::Machine;

/// What is known of the way between our ports and those of one remote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Of the remote's ports.
    addresses: PortAddresses,
    /// Paths that leave from the first address and reach the first address: for first contact, and where nothing else is.
    first: u64,
    /// Paths that our host's routes allow (srd-protocol 17.3).
    routed: u64,
    /// Either side has several addresses.
    several: bool,
    /// Of the remote's addresses, as bits: something has come from there.
    heard_from: u8,
    /// Where the remote answers heartbeats, at its first address; 0 for nowhere (srd-protocol 13.6).
    pub(crate) heartbeat_port: u16,
    /// Of our own hello.
    pub(crate) hello_bytes: u16,
}

impl Reach {
    /// Of a remote of which only its first port is known.
    pub(crate) fn new(config: &Config, first_port: u16) -> Self {
        let own = &config.addresses;
        Self {
            addresses: PortAddresses::ONE,
            first: own.first_paths(&PortAddresses::ONE),
            routed: 0,
            several: !own.is_one(),
            heard_from: 0,
            heartbeat_port: first_port.checked_add(1).unwrap_or(0),
            hello_bytes: (HELLO_BYTES + own.bytes()) as u16,
        }
    }

    /// Takes what the remote says of itself (srd-protocol 17.1). Answers whether our host is to be asked for routes.
    pub(crate) fn learn(&mut self, hello: &Hello, config: &Config) -> bool {
        self.addresses = hello.addresses;
        self.first = config.addresses.first_paths(&hello.addresses);
        self.routed = 0;
        self.heartbeat_port = hello.heartbeat_port;
        self.several = !(config.addresses.is_one() && hello.addresses.is_one());
        self.several
    }

    /// Paths that may be used with a remote that knows, or does not know, where we are (srd-protocol 17.2, 17.3).
    fn open(&self, knows_us: bool) -> u64 {
        if knows_us {
            self.first | self.routed
        } else {
            self.first
        }
    }

    /// Something has come on one of the remote's paths.
    #[inline]
    pub(crate) fn on_heard(&mut self, path: Path) {
        if self.several {
            self.heard_from |= 1 << self.addresses.number(path.source_port_index());
        }
    }

    /// A path between first addresses; another pair of ports with every attempt, as far as there are others.
    pub(crate) fn first_path(&self, attempt: u8) -> Path {
        let paths = (0..PORT_COUNT as u8 * PORT_COUNT as u8).filter_map(Path::from_number);
        let all: Vec<Path> = paths.filter(|path| self.first & path.bit() != 0).collect();
        // Neighbours in this list share a port of ours, those that far apart neither.
        let stride = PORT_COUNT + 1;
        let at = usize::from(attempt) * stride % all.len().max(1);
        all.get(at).copied().unwrap_or(Path::from_ports(0, 0))
    }
}

impl Identity {
    /// Where packets of a path go. Fast path.
    #[inline]
    pub(crate) fn target(&self, path: Path) -> SocketAddr {
        let mut to = self.address;
        if self.port_count > 0 {
            let index = path.target_port_index() % self.port_count;
            to.set_port(self.ports[usize::from(index)]);
            if let Some(address) = self.reach.addresses.further_of(index) {
                return SocketAddr::new(address, to.port());
            }
        }
        to
    }

    /// Whether a port of the remote is there, and something has come from its address if it is a further one: what a host
    /// says that was never heard says nothing (srd-protocol 17.5).
    pub(crate) fn answers_at(&self, at: SocketAddr) -> bool {
        let ports = &self.ports[..usize::from(self.port_count)];
        let is_there = |index: u8| {
            let address = self.reach.addresses.further_of(index);
            let heard = self.reach.heard_from >> self.reach.addresses.number(index) & 1 == 1;
            address.map_or(self.address.ip() == at.ip(), |address| {
                heard && address == at.ip()
            })
        };
        let has = |(index, port): (usize, &u16)| *port == at.port() && is_there(index as u8);
        self.address == at || ports.iter().enumerate().any(has)
    }
}

impl Flow {
    /// More is known of where the two hosts are: opens what may be used (srd-protocol 6.2, 17).
    pub(crate) fn open_paths(&mut self, shared: &mut Shared) {
        let open = self.identity.reach.open(self.identity.knows_us);
        let count = shared.config.path_count;
        self.sender.paths.open(open, count, &mut shared.random);
    }

    /// A packet of the remote has named our incarnation: it knows all our addresses (srd-protocol 17.2).
    pub(crate) fn on_known(&mut self, shared: &mut Shared) {
        self.identity.knows_us = true;
        if self.identity.reach.several && self.identity.port_count > 0 {
            self.open_paths(shared);
        }
    }
}

impl Machine {
    /// Whether a remote is there for [`Self::next_unrouted`]. Fast path.
    #[inline]
    pub fn has_unrouted(&self) -> bool {
        !self.shared.unrouted.is_empty()
    }

    /// A remote with which there are several pairs of addresses, and where its ports are: the driver is to say with
    /// [`Self::set_routes`] which paths this host's routes allow; until then those between the first addresses are used
    /// (srd-protocol 17.3). Slow path.
    pub fn next_unrouted(&mut self) -> Option<(Remote, [SocketAddr; PORT_COUNT])> {
        let index = self.shared.unrouted.pop()?;
        let identity = self.slots.get(index as usize)?.identity();
        let port = |index| identity.target(Path::from_ports(0, index as u8));
        Some((Remote(index), core::array::from_fn(port)))
    }

    /// Says which paths to a remote this host's routes allow, as a set, and how long datagrams may be on all of them
    /// (srd-protocol 17.3, 17.6). Slow path.
    pub fn set_routes(&mut self, now_ns: u64, remote: Remote, paths: u64, datagram_bytes: u16) {
        let Some(slot) = self.slots.get_mut(remote.0 as usize) else {
            return;
        };
        match &mut slot.flow {
            Some(flow) => {
                flow.identity.reach.routed = paths;
                flow.open_paths(&mut self.shared);
            }
            None => slot.rest.identity.reach.routed = paths,
        }
        let known = slot.identity();
        let (own_bytes, is_proven) = (known.own_datagram_bytes, known.is_proven);
        if datagram_bytes < own_bytes {
            self.set_datagram_bytes(now_ns, remote, datagram_bytes, is_proven);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_datagram_of_all_interfaces_is_kept_while_nothing_is_under_way() {
        let config = Config {
            datagram_bytes: 9000,
            ..Config::default()
        };
        let mut machine = Machine::new(config, 7).expect("a machine");
        let address = SocketAddr::from(([192, 0, 2, 1], 4000));
        let remote = machine.remote(address).expect("room");
        for (said, kept) in [(u16::MAX, 9000), (1472, 1472), (8972, 1472)] {
            machine.set_routes(1, remote, 3, said);
            let identity = machine.slots[0].identity();
            assert_eq!(identity.own_datagram_bytes, kept);
            assert_eq!(identity.reach.routed, 3);
        }
    }
}
