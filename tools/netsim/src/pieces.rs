// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Long packets on simulated links: cut into datagrams where they leave, and joined when all of
//! these have arrived (srd-protocol 19.3). Called by host.

use std::collections::VecDeque;

use weft_srd::piece::PIECE_HEAD_BYTES;
use weft_srd::{Ecn, Transmit};

/// Packets that a host joins at a time.
const JOINED_LIMIT: usize = 64;

/// Which part of a packet a datagram is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// From 0, below the count.
    number: u8,
    /// 1 for a datagram that is a packet.
    count: u8,
    /// The sending host's number for the packet.
    packet: u32,
}

/// What a host cuts.
#[derive(Debug, Default)]
pub struct Cuts {
    next: u32,
}

impl Cuts {
    /// The parts that a packet leaves in, and how long each is.
    pub fn cut(&mut self, transmit: &Transmit) -> impl Iterator<Item = (Part, u64)> + use<> {
        let bytes = transmit.length_bytes() as u64;
        let (count, head_bytes) = match u64::from(transmit.cut_bytes) {
            0 => (1, 0),
            each => {
                let head_bytes = PIECE_HEAD_BYTES as u64;
                (bytes.div_ceil(each - head_bytes), head_bytes)
            }
        };
        self.next = self.next.wrapping_add(1);
        let packet = self.next;
        (0..count).map(move |number| {
            let part = Part {
                number: number as u8,
                count: count as u8,
                packet,
            };
            let each = bytes.div_ceil(count);
            (part, head_bytes + each.min(bytes - number * each))
        })
    }
}

/// A packet of which some parts have come.
#[derive(Debug)]
struct Join {
    source: u32,
    packet: u32,
    there: u64,
    ecn: Ecn,
}

/// What a host joins.
#[derive(Debug, Default)]
pub struct Joins {
    open: VecDeque<Join>,
}

impl Joins {
    /// A part has come from a host. Answers whether its packet is whole by it, and what all parts
    /// say of congestion.
    pub fn take(&mut self, source: u32, part: Part, ecn: Ecn) -> Option<Ecn> {
        if part.count == 1 {
            return Some(ecn);
        }
        let of_it = |join: &Join| join.source == source && join.packet == part.packet;
        let place = self.open.iter().position(of_it).unwrap_or_else(|| {
            if self.open.len() == JOINED_LIMIT {
                self.open.pop_front();
            }
            self.open.push_back(Join {
                source,
                packet: part.packet,
                there: 0,
                ecn,
            });
            self.open.len() - 1
        });
        let join = &mut self.open[place];
        join.there |= 1 << part.number;
        if ecn == Ecn::Ce {
            join.ecn = ecn;
        }
        if join.there.count_ones() < u32::from(part.count) {
            return None;
        }
        self.open.remove(place).map(|join| join.ecn)
    }
}
