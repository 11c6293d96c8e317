// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Long packets cut into pieces, each with a head of its own (srd-protocol 19.3). Called by
//! sockets.rs for what leaves together, and by gso_batch.rs, which gathers the pieces.

use weft_memory::Gather;
use weft_srd::piece::PIECE_HEAD_BYTES;
use weft_srd::{Piece, Transmit};

use crate::sends::Sends;

/// Where the target incarnation is in a header (srd-protocol 2).
const TARGET_AT: usize = 16;

/// The heads of all pieces that leave together; their memory is used again.
#[derive(Debug, Default)]
pub(crate) struct Cutting {
    heads: Vec<[u8; PIECE_HEAD_BYTES]>,
    /// Of each packet of the batch, from the first one on, its first head.
    firsts: Vec<u32>,
    /// The number of the next long packet.
    next: u16,
}

/// A packet as it leaves: its front in our memory, and what follows in the user's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole<'a> {
    pub(crate) transmit: &'a Transmit,
    /// The head, or all of the packet.
    pub(crate) front: &'a [u8],
    pub(crate) sends: &'a Sends,
}

/// How many pieces a packet of so many bytes is cut into, and how long all but the last are, heads
/// not included.
fn cut(packet_bytes: usize, datagram_bytes: u16) -> (u8, u16) {
    let most = usize::from(datagram_bytes).saturating_sub(PIECE_HEAD_BYTES);
    let count = packet_bytes.div_ceil(most.max(1));
    (count as u8, packet_bytes.div_ceil(count.max(1)) as u16)
}

/// The target incarnation of the packet that begins so.
fn target_of(head: &[u8]) -> u64 {
    let bytes = head.get(TARGET_AT..TARGET_AT + 8);
    bytes.map_or(0, |bytes| {
        u64::from_le_bytes(bytes.try_into().unwrap_or([0; 8]))
    })
}

impl Cutting {
    /// Makes the heads of a batch, to whose packets authentication adds so many bytes. Fast path.
    #[inline]
    pub(crate) fn prepare(&mut self, batch: &[Transmit], seal_bytes: usize) {
        self.firsts.clear();
        if batch.iter().any(|transmit| transmit.cut_bytes > 0) {
            self.prepare_long(batch, seal_bytes);
        }
    }

    fn prepare_long(&mut self, batch: &[Transmit], seal_bytes: usize) {
        self.heads.clear();
        for transmit in batch {
            self.firsts.push(self.heads.len() as u32);
            if transmit.cut_bytes == 0 {
                continue;
            }
            let (count, part_bytes) = cut(transmit.length_bytes() + seal_bytes, transmit.cut_bytes);
            self.next = self.next.wrapping_add(1);
            for number in 0..count {
                let piece = Piece {
                    number,
                    count,
                    packet: self.next,
                    part_bytes,
                    target: target_of(transmit.head.as_bytes()),
                };
                self.heads.push(piece.head());
            }
        }
    }

    /// The heads of the pieces of the packet at this place of the batch, from the first one on.
    #[inline]
    pub(crate) fn heads(&self, place: usize) -> &[[u8; PIECE_HEAD_BYTES]] {
        let first = self.firsts.get(place).map(|first| *first as usize);
        first.map_or(&[], |first| &self.heads[first..])
    }
}

impl Whole<'_> {
    /// How many pieces it is, and how many bytes of the packet each but the last has.
    pub(crate) fn cut(&self, seal_bytes: usize) -> (usize, usize) {
        let bytes = self.transmit.length_bytes() + seal_bytes;
        let (count, part_bytes) = cut(bytes, self.transmit.cut_bytes);
        (count.into(), part_bytes.into())
    }
}

impl<'a> Whole<'a> {
    /// Adds a stretch of the packet to a datagram.
    pub(crate) fn gather(&self, start: usize, length: usize, datagram: &mut Gather<'_, 'a>) {
        let front_bytes = self.front.len();
        let end = start + length;
        if start < front_bytes {
            datagram.add_bytes(&self.front[start..end.min(front_bytes)]);
        }
        let is_whole = front_bytes > self.transmit.head.as_bytes().len();
        if let Some(payload) = self.transmit.payload
            && end > front_bytes
            && !is_whole
        {
            let from = start.max(front_bytes) - front_bytes;
            let payload_bytes = payload.length_bytes as usize;
            let length = payload_bytes.min(end - front_bytes) - from;
            let offset = payload.offset_bytes as usize + from;
            self.sends.gather(payload.token, offset, length, datagram);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_is_cut_into_few_pieces_that_fit() {
        for datagram_bytes in [1_200, 1_472, 1_500, 4_096] {
            for packet_bytes in (usize::from(datagram_bytes) + 1..=40_000).step_by(37) {
                let (count, part_bytes) = cut(packet_bytes, datagram_bytes);
                let (count, part_bytes) = (usize::from(count), usize::from(part_bytes));
                assert!((2..=64).contains(&count));
                assert!(part_bytes + PIECE_HEAD_BYTES <= datagram_bytes.into());
                assert!((count - 1) * part_bytes < packet_bytes);
                assert!(count * part_bytes >= packet_bytes);
            }
        }
    }
}
