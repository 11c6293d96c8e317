// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A piece of a packet that is longer than a datagram (srd-protocol 19.3): a head of 16 bytes and a
//! part of the packet. Written and read by the driver, below the machine.

use crate::bytes::Reader;
use crate::header::VERSION;
use crate::malformed::{Malformed, require};

/// Size of a piece's head (srd-protocol 19.3).
pub const PIECE_HEAD_BYTES: usize = 16;
/// Pieces of a packet at most (srd-protocol 19.3).
pub const PIECE_LIMIT: u8 = 64;
/// The longest packet that pieces can make (srd-protocol 19.3).
pub const PIECES_BYTES: usize = 1 << 16;

/// What a piece begins with; no kind of packets has this number.
const MARK: u8 = VERSION << 4 | 13;

/// Which part of which packet a piece is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// From 0, below the count.
    pub number: u8,
    /// Of the packet's pieces, 2 to 64.
    pub count: u8,
    /// The sender's number for the packet.
    pub packet: u16,
    /// Of each part but the last.
    pub part_bytes: u16,
    /// Incarnation that the packet is for.
    pub target: u64,
}

impl Piece {
    /// Whether a datagram is a piece, and no packet. Fast path.
    #[inline]
    pub fn is_one(datagram: &[u8]) -> bool {
        datagram.first() == Some(&MARK)
    }

    /// Its head.
    #[inline]
    pub fn head(&self) -> [u8; PIECE_HEAD_BYTES] {
        let mut head = [0; PIECE_HEAD_BYTES];
        head[..3].copy_from_slice(&[MARK, self.number, self.count]);
        head[4..6].copy_from_slice(&self.packet.to_le_bytes());
        head[6..8].copy_from_slice(&self.part_bytes.to_le_bytes());
        head[8..].copy_from_slice(&self.target.to_le_bytes());
        head
    }

    /// Where its part begins in the packet.
    #[inline]
    pub fn start_bytes(&self) -> usize {
        usize::from(self.number) * usize::from(self.part_bytes)
    }

    /// Whether it is the last one of its packet.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.number + 1 == self.count
    }

    /// Takes a datagram apart, with all checks of clause 19.3. Answers the part, too. Fast path.
    ///
    /// # Errors
    /// The first field that breaks a rule.
    #[inline]
    pub fn parse(datagram: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader::new(datagram);
        let mark = reader.u8("mark of a piece")?;
        require(
            mark == MARK,
            "mark of a piece",
            mark.into(),
            "it is version 6 and 13",
        )?;
        let number = reader.u8("number of a piece")?;
        let count = reader.u8("count of pieces")?;
        require(
            (2..=PIECE_LIMIT).contains(&count),
            "count of pieces",
            count.into(),
            "it is 2 to 64",
        )?;
        require(
            number < count,
            "number of a piece",
            number.into(),
            "it is below the count",
        )?;
        reader.zeros::<1>("reserved byte of a piece")?;
        let ends = reader.u32("packet and length of a piece")?;
        let piece = Self {
            number,
            count,
            packet: ends as u16,
            part_bytes: (ends >> 16) as u16,
            target: reader.u64("target incarnation")?,
        };
        let part = reader.rest();
        piece.check(part.len())?;
        Ok((piece, part))
    }

    fn check(&self, length: usize) -> Result<(), Malformed> {
        let part_bytes = usize::from(self.part_bytes);
        require(
            part_bytes > 0 && part_bytes * usize::from(self.count) <= PIECES_BYTES,
            "length of parts",
            self.part_bytes.into(),
            "it is not 0, and times the count at most 65536",
        )?;
        let fits = match self.is_last() {
            true => (1..=part_bytes).contains(&length),
            false => length == part_bytes,
        };
        require(
            fits,
            "length of a piece",
            length as u64,
            "all parts but the last are as long as the head says, and the last is no longer",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece() -> Piece {
        Piece {
            number: 1,
            count: 3,
            packet: 0xabcd,
            part_bytes: 5,
            target: 0x1122_3344_5566_7788,
        }
    }

    #[test]
    fn what_is_written_is_read_and_lies_where_the_specification_says() {
        let bytes = [&piece().head()[..], b"parts"].concat();
        let head = [0x6d, 1, 3, 0, 0xcd, 0xab, 5, 0];
        assert_eq!(bytes[..8], head);
        assert_eq!(bytes[8..16], 0x1122_3344_5566_7788_u64.to_le_bytes());
        assert!(Piece::is_one(&bytes));
        assert_eq!(Piece::parse(&bytes), Ok((piece(), &b"parts"[..])));
        assert_eq!(piece().start_bytes(), 5);
    }

    #[test]
    fn what_breaks_a_rule_is_named_and_nothing_panics() {
        let good = [&piece().head()[..], b"parts"].concat();
        for (at, value, field) in [
            (0, 0x68, "mark of a piece"),
            (1, 3, "number of a piece"),
            (2, 1, "count of pieces"),
            (2, 65, "count of pieces"),
            (3, 1, "reserved byte of a piece"),
            (6, 4, "length of a piece"),
            (6, 6, "length of a piece"),
            (7, 0x80, "length of parts"),
        ] {
            let mut bad = good.clone();
            bad[at] = value;
            let field_of = Piece::parse(&bad).map_err(|malformed| malformed.field);
            assert_eq!(field_of, Err(field), "byte {at}");
        }
        for length in 0..good.len() {
            assert!(Piece::parse(&good[..length]).is_err(), "{length} bytes");
        }
        let mut last = good.clone();
        last[1] = 2;
        assert!(Piece::parse(&last).is_ok() && Piece::parse(&last[..17]).is_ok());
        assert!(
            Piece::parse(&last[..16]).is_err(),
            "a last piece has a byte"
        );
    }
}
