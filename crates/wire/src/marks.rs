// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Congestion marks of the network (ECN): what the IP header of a datagram says, and the marks
//! section, in which a receiver says what it saw of them (srd-protocol 4.1). Sources: RFC 3168;
//! RFC 9000, 13.4.

use crate::bytes::{Head, Reader, write_at};
use crate::malformed::{Malformed, require};

/// Size of the section (srd-protocol 4.1).
pub const MARKS_BYTES: usize = 24;

/// The ECN field of a datagram's IP header (RFC 3168, 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Who received the datagram did not ask.
    #[default]
    Unknown,
    /// The sender does not take part.
    NotEct,
    /// ECT(1), which no Weft sends.
    Ect1,
    /// ECT(0): the sender takes part.
    Ect0,
    /// A queue was long: *congestion experienced*.
    Ce,
}

impl Ecn {
    /// Of the type of service of IPv4, or the traffic class of IPv6, whose lowest bits it is.
    #[inline]
    pub fn from_traffic_class(class: u8) -> Self {
        match class & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// What a receiver saw of marks lately.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marks {
    /// Bit p: a packet of path p came with CE since the section before the last one.
    pub paths_marked: u64,
    /// Bit p: a packet of path p left with ECT(0), and came with neither that nor CE.
    pub paths_mangled: u64,
    /// Reliable packets of the echoed path that came with CE, saturating.
    pub ce_count: u32,
    /// How many of them came in a row, up to the last packet of that path; at most `ce_count`.
    pub in_row_count: u32,
}

impl Marks {
    pub(crate) fn write(&self, head: &mut Head) {
        let place = head.next::<MARKS_BYTES>();
        write_at(place, 0, self.paths_marked.to_le_bytes());
        write_at(place, 8, self.paths_mangled.to_le_bytes());
        write_at(place, 16, self.ce_count.to_le_bytes());
        write_at(place, 20, self.in_row_count.to_le_bytes());
    }

    #[cold]
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let marks = Self {
            paths_marked: reader.u64("paths_marked")?,
            paths_mangled: reader.u64("paths_mangled")?,
            ce_count: reader.u32("CE count")?,
            in_row_count: reader.u32("CE in a row")?,
        };
        require(
            marks.in_row_count <= marks.ce_count,
            "CE in a row",
            u64::from(marks.in_row_count),
            "it is at most the CE count",
        )?;
        Ok(marks)
    }
}
