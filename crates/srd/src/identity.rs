// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who a remote is, as far as we know: its address, its incarnation, its ports, and what it said of
//! itself in its hello (srd-protocol 3, 6.2). Kept while nothing is under way with it.

use std::net::SocketAddr;

use weft_wire::header::HEADER_BYTES;
use weft_wire::hello::{ANSWERS_PROBES, ASKS_IN_TIME};
use weft_wire::message::MESSAGE_BYTES;
use weft_wire::{Hello, PORT_COUNT, Path};

use crate::config::Config;
use crate::mtu::DatagramSize;
use crate::reach::Reach;

/// Room for an acknowledgement section with a full bitmap.
pub(crate) const SECTION_ROOM: usize = 64 + 128;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) address: SocketAddr,
    /// See [`crate::Offer::life`].
    pub(crate) life: u32,
    /// What it calls us; 0 if not known.
    pub(crate) context: u32,
    /// 0 if not known.
    pub(crate) incarnation: u64,
    ports: [u16; PORT_COUNT],
    port_count: u8,
    pub(crate) size: DatagramSize,
    /// It asks for acknowledgements before it must wait for them (srd-protocol 7.5).
    pub(crate) asks_in_time: bool,
    /// A packet of it has named our incarnation (srd-protocol 6.2).
    pub(crate) knows_us: bool,
    /// What it asked us to repeat (srd-protocol 14.6); 0 for nothing.
    pub(crate) cookie: u64,
    /// It takes nothing before we know its incarnation: one packet at a time (srd-protocol 14.6).
    pub(crate) awaits_greeting: bool,
    pub(crate) reach: Reach,
}

impl Identity {
    pub(crate) fn new(address: SocketAddr, size: DatagramSize, config: &Config) -> Self {
        Self {
            address,
            life: 0,
            reach: Reach::new(config, address.port()),
            context: 0,
            incarnation: 0,
            ports: [0; PORT_COUNT],
            port_count: 0,
            size,
            asks_in_time: false,
            knows_us: false,
            cookie: 0,
            awaits_greeting: false,
        }
    }

    /// Of the next process at the same address.
    pub(crate) fn anew(&self, config: &Config) -> Self {
        Self {
            life: self.life.wrapping_add(1),
            ..Self::new(self.address, self.size.anew(), config)
        }
    }

    /// Whether the remote has said who it is.
    #[inline]
    pub(crate) fn has_hello(&self) -> bool {
        self.port_count > 0
    }

    /// Answers whether our host is to be asked for routes (srd-protocol 17.3).
    pub(crate) fn learn(&mut self, hello: &Hello, incarnation: u64, config: &Config) -> bool {
        self.context = hello.context;
        self.incarnation = incarnation;
        self.ports = hello.ports;
        self.port_count = hello.port_count;
        let answers_probes = hello.features & ANSWERS_PROBES != 0;
        self.size.learn(hello.datagram_bytes, answers_probes);
        self.asks_in_time = hello.features & ASKS_IN_TIME != 0;
        self.reach.learn(hello, config)
    }

    /// Where packets of a path go. Fast path.
    #[inline]
    pub(crate) fn target(&self, path: Path) -> SocketAddr {
        let mut to = self.address;
        if self.port_count > 0 {
            let index = path.target_port_index() % self.port_count;
            to.set_port(self.ports[usize::from(index)]);
            if let Some(address) = self.reach.further_of(index) {
                return SocketAddr::new(address, to.port());
            }
        }
        to
    }

    /// Where the remote answers heartbeats.
    pub(crate) fn heartbeat_target(&self) -> SocketAddr {
        let mut to = self.address;
        to.set_port(self.reach.heartbeat_port);
        to
    }

    /// Whether a port of the remote is there, and something has come from its address if it is a
    /// further one: what a host says that was never heard says nothing (srd-protocol 17.5).
    pub(crate) fn answers_at(&self, at: SocketAddr) -> bool {
        let ports = &self.ports[..usize::from(self.port_count)];
        let is_there = |index: u8| {
            let heard = self.reach.is_heard_from(index);
            self.reach
                .further_of(index)
                .map_or(self.address.ip() == at.ip(), |address| {
                    heard && address == at.ip()
                })
        };
        let has = |(index, port): (usize, &u16)| *port == at.port() && is_there(index as u8);
        self.address == at || ports.iter().enumerate().any(has)
    }

    /// The longest message that is sure to fit one packet, with the first packet's hello.
    pub(crate) fn eager_limit_bytes(&self) -> u64 {
        let heads = HEADER_BYTES + usize::from(self.reach.hello_bytes) + MESSAGE_BYTES;
        u64::from(self.size.in_use_bytes()) - heads as u64
    }

    /// What a packet has room for behind a body of so many bytes.
    pub(crate) fn room_bytes(&self, body_bytes: usize) -> u64 {
        let hello = if self.knows_us {
            0
        } else {
            usize::from(self.reach.hello_bytes)
        };
        u64::from(self.size.in_use_bytes()) - (HEADER_BYTES + hello + body_bytes) as u64
    }

    /// What a packet has room for behind the body of a segment.
    pub(crate) fn segment_room_bytes(&self) -> u64 {
        self.room_bytes(MESSAGE_BYTES + 8)
    }

    /// A packet with so many bytes of payload has at most so many bytes, if it may have a hello and
    /// an acknowledgement too.
    pub(crate) fn full_packet_bytes(&self, payload_bytes: u64) -> u64 {
        let hello = usize::from(self.reach.hello_bytes);
        payload_bytes + (HEADER_BYTES + hello + MESSAGE_BYTES + SECTION_ROOM) as u64
    }
}
