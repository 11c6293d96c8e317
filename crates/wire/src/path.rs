// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a path is: a pair of ports that network switches hash to one way through the network. Used
//! by the header.

/// Ports of each endpoint (srd-protocol 15: specified, part of the protocol).
pub const PORT_COUNT: usize = 8;
/// Pairs of ports (srd-protocol 1).
pub const PATH_COUNT: usize = PORT_COUNT * PORT_COUNT;

/// One of the 64 ways from a sender to a receiver, as the sender numbers them (srd-protocol 1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Path(u8);

impl Path {
    /// From the indices of the sender's and the receiver's port; taken modulo 8.
    #[inline]
    pub fn from_ports(source: u8, target: u8) -> Self {
        Self((source % PORT_COUNT as u8) * PORT_COUNT as u8 + target % PORT_COUNT as u8)
    }

    /// From its number; `None` above 63.
    #[inline]
    pub fn from_number(number: u8) -> Option<Self> {
        (usize::from(number) < PATH_COUNT).then_some(Self(number))
    }

    /// 0 to 63.
    #[inline]
    pub fn number(self) -> u8 {
        self.0
    }

    /// Its number as an index into per-path tables.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Its bit in a set of paths.
    #[inline]
    pub fn bit(self) -> u64 {
        1 << self.0
    }

    /// Index of the sender's port, 0 to 7.
    #[inline]
    pub fn source_port_index(self) -> u8 {
        self.0 / PORT_COUNT as u8
    }

    /// Index of the receiver's port, 0 to 7.
    #[inline]
    pub fn target_port_index(self) -> u8 {
        self.0 % PORT_COUNT as u8
    }

    /// The way back between the same two ports, as the receiver numbers it (srd-protocol 7.4).
    #[inline]
    pub fn reverse(self) -> Self {
        Self::from_ports(self.target_port_index(), self.source_port_index())
    }
}
