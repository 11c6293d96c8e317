// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which paths there are between the addresses of two hosts that have several (srd-protocol 17).
//!
//! Kept by identity; asked by flow when more is known of a remote.

use std::net::IpAddr;

use weft_wire::hello::HELLO_BYTES;
use weft_wire::{Hello, PORT_COUNT, Path, PortAddresses};

use crate::config::Config;

/// What is known of the way between our ports and those of one remote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Of the remote's ports.
    addresses: PortAddresses,
    /// Paths that leave from the first address and reach the first address: for first contact, and
    /// where nothing else is.
    first: u64,
    /// Paths that our host's routes allow (srd-protocol 17.3).
    pub(crate) routed: u64,
    /// Either side has several addresses.
    pub(crate) has_several: bool,
    /// Of the remote's addresses, as bits: something has come from there.
    heard_from: u8,
    /// Where the remote answers heartbeats, at its first address; 0 for nowhere (srd-protocol
    /// 13.6).
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
            has_several: !own.is_one(),
            heard_from: 0,
            heartbeat_port: first_port.checked_add(1).unwrap_or(0),
            hello_bytes: (HELLO_BYTES + own.bytes()) as u16,
        }
    }

    /// Takes what the remote says of itself (srd-protocol 17.1). Answers whether our host is to be
    /// asked for routes.
    pub(crate) fn learn(&mut self, hello: &Hello, config: &Config) -> bool {
        self.addresses = hello.addresses;
        self.first = config.addresses.first_paths(&hello.addresses);
        self.routed = 0;
        self.heartbeat_port = hello.heartbeat_port;
        self.has_several = !(config.addresses.is_one() && hello.addresses.is_one());
        self.has_several
    }

    /// Paths that may be used with a remote that knows, or does not know, where we are
    /// (srd-protocol 17.2, 17.3).
    pub(crate) fn open(&self, knows_us: bool) -> u64 {
        if knows_us {
            self.first | self.routed
        } else {
            self.first
        }
    }

    /// Something has come on one of the remote's paths.
    #[inline]
    pub(crate) fn on_heard(&mut self, path: Path) {
        if self.has_several {
            self.heard_from |= 1 << self.addresses.number(path.source_port_index());
        }
    }

    /// The address of one of the remote's ports; `None` for its first address.
    #[inline]
    pub(crate) fn further_of(&self, port_index: u8) -> Option<IpAddr> {
        self.addresses.further_of(port_index)
    }

    /// Whether something has come from the address of one of the remote's ports.
    pub(crate) fn is_heard_from(&self, port_index: u8) -> bool {
        self.heard_from >> self.addresses.number(port_index) & 1 == 1
    }

    /// A path between first addresses; another pair of ports with every attempt, as far as there
    /// are others.
    pub(crate) fn first_path(&self, attempt: u8) -> Path {
        let paths = (0..PORT_COUNT as u8 * PORT_COUNT as u8).filter_map(Path::from_number);
        let all: Vec<Path> = paths.filter(|path| self.first & path.bit() != 0).collect();
        // Neighbours in this list share a port of ours, those that far apart neither.
        let stride = PORT_COUNT + 1;
        let at = usize::from(attempt) * stride % all.len().max(1);
        all.get(at).copied().unwrap_or(Path::from_ports(0, 0))
    }
}
