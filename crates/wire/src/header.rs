// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The 48 bytes that every packet begins with (srd-protocol 2). Read and written by packet.

use crate::bytes::{Head, Reader, write_at};
use crate::malformed::{Malformed, require};
use crate::path::Path;
use crate::time::Instant;

/// The protocol version in the first nibble (srd-protocol 2).
pub const VERSION: u8 = 6;
/// Size of the header (srd-protocol 2).
pub const HEADER_BYTES: usize = 48;

/// Sequences that a packet may stand for besides its own (srd-protocol 19.1).
pub const FURTHER_LIMIT: u8 = 63;

/// Where the flags are (srd-protocol 2).
const FLAGS_AT: usize = 1;

/// Flag bits (srd-protocol 2).
pub(crate) mod flag {
    pub(crate) const HELLO: u8 = 1;
    pub(crate) const ACKNOWLEDGEMENT: u8 = 2;
    pub(crate) const ACK_NOW: u8 = 4;
    pub(crate) const RETRANSMISSION: u8 = 8;
    pub(crate) const SEALED: u8 = 16;
    pub(crate) const ECT: u8 = 32;
    pub(crate) const MARKS: u8 = 64;
    pub(crate) const ALL: u8 = 127;
}

/// The kinds of packets (srd-protocol 5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A whole message.
    Eager = 1,
    /// A piece of a message that the receiver buffers.
    Segment = 2,
    /// The announcement of a message that is placed where the receiver says.
    Offer = 3,
    /// Where an offered message goes.
    Accept = 4,
    /// A piece of an accepted message.
    Data = 5,
    /// A message has reached the receive it matched.
    Receipt = 6,
    /// A message will never be taken.
    Refusal = 7,
    /// Nothing but an acknowledgement section.
    Acknowledgement = 8,
    /// A question whether anybody answers on this path.
    Probe = 9,
    /// The incarnation a packet was for is gone.
    Stale = 10,
    /// An answer to a stranger: say again, so that I know it is you, and now.
    Greeting = 11,
    /// An answer to a heartbeat: the process lives, and computes.
    Alive = 12,
}

impl Kind {
    #[inline(always)]
    fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Eager,
            2 => Self::Segment,
            3 => Self::Offer,
            4 => Self::Accept,
            5 => Self::Data,
            6 => Self::Receipt,
            7 => Self::Refusal,
            8 => Self::Acknowledgement,
            9 => Self::Probe,
            10 => Self::Stale,
            11 => Self::Greeting,
            12 => Self::Alive,
            _ => return None,
        })
    }

    /// Whether packets of this kind have a sequence and are acknowledged (srd-protocol 5).
    #[inline]
    pub fn is_reliable(self) -> bool {
        (self as u8) <= Self::Refusal as u8
    }
}

/// What every packet says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The way it took, as the sender numbers it.
    pub path: Path,
    /// The receiver shall acknowledge at once.
    pub acknowledge_now: bool,
    /// The sequence was sent before.
    pub retransmission: bool,
    /// Encrypted by the layer around the machine (srd-protocol 14.2).
    pub sealed: bool,
    /// Leaves with ECT(0) in its IP header (srd-protocol 10.12).
    pub ect: bool,
    /// The receiver's number for the sender; 0 if not known.
    pub context: u32,
    /// Incarnation of the sender; not 0.
    pub source: u64,
    /// Incarnation the packet is for; 0 if not known.
    pub target: u64,
    /// Time of this transmission on the sender's clock.
    pub sent_ns: Instant,
    /// Number of a reliable packet; 0 for others.
    pub sequence: u64,
    /// It stands for so many sequences more (srd-protocol 19.1), 0 to 63.
    pub further_count: u8,
}

impl Header {
    /// Of a packet that has no sequence, to a process of which nothing is known but its
    /// incarnation.
    pub fn unreliable(path: Path, source: u64, target: u64, sent_ns: Instant) -> Self {
        Self {
            path,
            acknowledge_now: false,
            retransmission: false,
            sealed: false,
            ect: false,
            context: 0,
            source,
            target,
            sent_ns,
            sequence: 0,
            further_count: 0,
        }
    }

    /// How many sequences the packet stands for.
    #[inline]
    pub fn sequence_count(&self) -> u64 {
        1 + u64::from(self.further_count)
    }
}

impl Head {
    /// Whether the packet that begins so was sent before (srd-protocol 2). Fast path.
    #[inline]
    pub fn is_retransmission(&self) -> bool {
        let flags = self.as_bytes().get(FLAGS_AT);
        flags.is_some_and(|flags| flags & flag::RETRANSMISSION != 0)
    }

    /// Whether that packet leaves with ECT(0) in its IP header (srd-protocol 10.12). Fast path.
    #[inline]
    pub fn is_ect(&self) -> bool {
        let flags = self.as_bytes().get(FLAGS_AT);
        flags.is_some_and(|flags| flags & flag::ECT != 0)
    }
}

/// The first two bytes, taken apart.
pub(crate) struct Opening {
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
}

impl Header {
    #[inline]
    pub(crate) fn write(&self, kind: Kind, sections: u8, head: &mut Head) {
        let mut flags = sections;
        if self.acknowledge_now {
            flags |= flag::ACK_NOW;
        }
        if self.retransmission {
            flags |= flag::RETRANSMISSION;
        }
        if self.sealed {
            flags |= flag::SEALED;
        }
        if self.ect {
            flags |= flag::ECT;
        }
        let place = head.next::<HEADER_BYTES>();
        let opening = [
            VERSION << 4 | kind as u8,
            flags,
            self.path.number(),
            self.further_count,
        ];
        write_at(place, 0, opening);
        write_at(place, 4, self.context.to_le_bytes());
        write_at(place, 8, self.source.to_le_bytes());
        write_at(place, 16, self.target.to_le_bytes());
        write_at(place, 24, [0; 8]);
        write_at(place, 32, self.sent_ns.0.to_le_bytes());
        write_at(place, 40, self.sequence.to_le_bytes());
    }

    #[inline(always)]
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<(Opening, Self), Malformed> {
        reader.stretch::<HEADER_BYTES, _>(Self::fields)
    }

    #[inline(always)]
    fn fields(reader: &mut Reader<'_>) -> Result<(Opening, Self), Malformed> {
        let first = reader.u8("version and kind")?;
        let version = first >> 4;
        require(
            version == VERSION,
            "version",
            u64::from(version),
            "this Weft speaks version 6",
        )?;
        let number = first & 15;
        let kind = Kind::from_number(number)
            .ok_or_else(|| Malformed::new("kind", u64::from(number), "kinds are 1 to 12"))?;
        let flags = reader.u8("flags")?;
        require(
            flags & !flag::ALL == 0,
            "flags",
            u64::from(flags),
            "flags above 64 are not defined",
        )?;
        let number = reader.u8("path")?;
        let path = Path::from_number(number)
            .ok_or_else(|| Malformed::new("path", u64::from(number), "paths are 0 to 63"))?;
        let further_count = reader.u8("further sequences")?;
        let most = match kind {
            Kind::Segment | Kind::Data => FURTHER_LIMIT,
            _ => 0,
        };
        require(
            further_count <= most,
            "further sequences",
            u64::from(further_count),
            "segments and data have at most 63, other kinds none",
        )?;
        let context = reader.u32("context")?;
        let source = reader.u64("source incarnation")?;
        require(source != 0, "source incarnation", 0, "it is never 0")?;
        let target = reader.u64("target incarnation")?;
        reader.take::<8>("keyed tag")?;
        let sent_ns = Instant(reader.u64("sent_ns")?);
        let sequence = reader.u64("sequence")?;
        require(
            kind.is_reliable() || sequence == 0,
            "sequence",
            sequence,
            "packets of this kind have none, which is written as 0",
        )?;
        let header = Self {
            path,
            acknowledge_now: flags & flag::ACK_NOW != 0,
            retransmission: flags & flag::RETRANSMISSION != 0,
            sealed: flags & flag::SEALED != 0,
            ect: flags & flag::ECT != 0,
            context,
            source,
            target,
            sent_ns,
            sequence,
            further_count,
        };
        Ok((Opening { kind, flags }, header))
    }
}
