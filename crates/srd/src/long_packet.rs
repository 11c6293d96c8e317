// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that stand for several sequences in a row: what of one is whose (srd-protocol 19.1).
//! Made by lengthening, kept by sender.

use crate::sent::Piece;

/// A piece of a message, and how many sequences it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LongPacket {
    pub(crate) piece: Piece,
    /// At most 64; 1 for a packet that is not long.
    pub(crate) count: u8,
}

impl LongPacket {
    /// Of all of it.
    pub(crate) fn payload_bytes(&self) -> u32 {
        self.piece.length().into()
    }

    /// What each of its sequences carries, and how many bytes that is.
    pub(crate) fn units(&self) -> impl Iterator<Item = (Piece, u16)> {
        let all_bytes = self.piece.length();
        let unit_bytes = all_bytes.div_ceil(self.count.into());
        let piece = self.piece;
        (0..u16::from(self.count)).map(move |index| {
            let start_bytes = index * unit_bytes;
            let length = unit_bytes.min(all_bytes - start_bytes);
            (piece.part(start_bytes, length), length)
        })
    }
}
