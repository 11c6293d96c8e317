// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cells of a lane (docs/shm-layout.md, clause 5). Each kind of cell has a type, which the sender
//! builds and the receiver parses once. Only this file knows the numbers of kinds, the flags and
//! the order of words.
//!
//! A [`Carrier`] names payload beside it; a [`Control`] consists of its words alone. Inline
//! messages have functions of their own, since most messages are inline: see [`MatchHeader`].
//! Called by send, receive and refusal.

use std::ops::Range;

use weft_contract::{Class, Envelope, RemoteId, SendOp};
use weft_ring::layout::{PIPE_CHUNKS, PIPE_COUNT};
use weft_ring::{Arrival, Head};

use super::{EAGER_BYTES, MESSAGE_BYTES, STREAM_BYTES};

const INLINE: u8 = 1;
const EAGER: u8 = 2;
const STREAM: u8 = 3;
const PIECE: u8 = 4;
const RTS: u8 = 5;
const RTS_EARLY: u8 = 6;
const CTS_PIPE: u8 = 7;
const CTS_LANE: u8 = 8;
const CTS_COPY: u8 = 9;
const DATA: u8 = 10;
const FIN: u8 = 11;
const BYE: u8 = 12;

const FLAG_TAGGED: u8 = 1;
const FLAG_DATA: u8 = 2;
const FLAG_RECEIPT: u8 = 4;
const FLAG_SERVICE: u8 = 8;
const FLAG_ADDRESS: u8 = 16;
const FLAG_SHARED: u8 = 32;

/// Words of a cell.
type Words = [u64; 7];

/// Words of a cell that names payload: tag, data, and what the kind puts behind the place.
type CarrierWords = [u64; 5];

/// A cell that no correct sender writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed {
    /// The part of the cell that is wrong.
    pub(crate) what: &'static str,
    /// The value of that part.
    pub(crate) value: u64,
}

fn require(is_good: bool, what: &'static str, value: u64) -> Result<(), Malformed> {
    is_good.then_some(()).ok_or(Malformed { what, value })
}

/// The part of a message's first cell by which the owner matches the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MatchHeader {
    pub(crate) class: Class,
    pub(crate) tag: u64,
    pub(crate) cq_data: Option<u64>,
}

impl MatchHeader {
    /// The header of a send. Fast path.
    #[inline(always)]
    pub(crate) fn of(op: &SendOp) -> Self {
        Self {
            class: op.class,
            tag: op.tag,
            cq_data: op.cq_data,
        }
    }

    /// The header of an inline message. Fast path.
    #[inline(always)]
    pub(crate) fn of_inline(arrival: &Arrival<'_>) -> Self {
        Self::read(arrival.head.flags, arrival.word(0), arrival.word(1))
    }

    /// The word for completion data.
    #[inline(always)]
    pub(crate) fn data(self) -> u64 {
        self.cq_data.unwrap_or(0)
    }

    /// As the owner is told. Fast path.
    #[inline(always)]
    pub(crate) fn envelope(self, remote: RemoteId, length_bytes: u64) -> Envelope {
        Envelope {
            remote,
            class: self.class,
            tag: self.tag,
            cq_data: self.cq_data,
            length_bytes,
        }
    }

    #[inline(always)]
    fn flags(self) -> u8 {
        flags_of(self.class, self.cq_data.is_some())
    }

    /// Service wins where both classes are set.
    #[inline(always)]
    fn read(flags: u8, tag: u64, data: u64) -> Self {
        let class = if flags & FLAG_SERVICE != 0 {
            Class::Service
        } else if flags & FLAG_TAGGED != 0 {
            Class::Tagged
        } else {
            Class::Message
        };
        Self {
            class,
            tag,
            cq_data: (flags & FLAG_DATA != 0).then_some(data),
        }
    }
}

#[inline(always)]
fn flags_of(class: Class, has_data: bool) -> u8 {
    let side = match class {
        Class::Message => 0,
        Class::Tagged => FLAG_TAGGED,
        Class::Service => FLAG_SERVICE,
    };
    side | if has_data { FLAG_DATA } else { 0 }
}

/// EAGER: the whole payload of a message is in its place. STREAM: the first piece of it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Eager {
    pub(crate) header: MatchHeader,
    /// The length of the whole message.
    pub(crate) length_bytes: u32,
    /// The number that the FIN must name, if the sender waits for a FIN.
    pub(crate) receipt: Option<u64>,
}

/// RTS, ready to send: the description of a message whose payload the receiver asks for or fetches
/// later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rts {
    pub(crate) header: MatchHeader,
    pub(crate) send_id: u64,
    pub(crate) length_bytes: u64,
    /// Where the message lies in the sender's memory, if it is in one piece that may be read there.
    pub(crate) address: Option<u64>,
    /// The message's whole pages lie in memory that the sender shares, and its ends in the place
    /// that belongs to the send id.
    pub(crate) is_shared: bool,
    /// The sender waits for a FIN after the last byte went through a pipe.
    pub(crate) wants_receipt: bool,
}

/// CTS, clear to send: the receiver says how the sender must send the payload of a described
/// message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cts {
    pub(crate) send_id: u64,
    /// The bytes of the message that the receiver wants; one at least.
    pub(crate) bytes: Range<u64>,
    pub(crate) by: Transfer,
}

/// How the payload of a described message moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transfer {
    /// Through a pipe of the receiver.
    Pipe {
        pipe: usize,
        first_chunk: usize,
        /// With stores that go past the sender's cache.
        is_non_temporal: bool,
    },
    /// Through the lane, in DATA cells that name the message by the receiver's number.
    Lane { number: u64 },
    /// Both processes copy; a pipe's states hold the chunk claims (clause 7a).
    Copy {
        pipe: usize,
        ticket: u64,
        /// The address of the message's first byte in the receiver's memory.
        address: u64,
    },
}

/// FIN: the sender's buffer is free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fin {
    pub(crate) send_id: u64,
    /// The receiver copied the message out of memory that the sender shares.
    pub(crate) is_mapped: bool,
}

/// A cell that names payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carrier {
    Eager(Eager),
    Stream(Eager),
    /// A further piece, of this length, of the message that streams through the lane.
    Piece(u32),
    /// RTS with early data: so many first bytes of the message come along, with this cell and the
    /// pieces behind it.
    EarlyRts(Rts, u32),
    /// A part of the payload that a CTS asked for: the receiver's number for the message, and the
    /// part's length.
    Data(u64, u32),
}

/// A cell without payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Control {
    Rts(Rts),
    Cts(Cts),
    Fin(Fin),
    /// The sender closes; nothing follows in this lane.
    Bye,
}

/// Any cell but that of an inline message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    Carrier(Carrier),
    Control(Control),
}

/// The head of an inline message; its words are tag and completion data, or 0. Fast path.
#[inline(always)]
pub(crate) fn inline_head(class: Class, has_data: bool, length_bytes: usize) -> Head {
    Head {
        kind: INLINE,
        flags: flags_of(class, has_data),
        length_bytes: length_bytes as u32,
    }
}

/// Whether a cell is that of an inline message. Fast path.
#[inline(always)]
pub(crate) fn is_inline(head: Head) -> bool {
    head.kind == INLINE
}

/// Whether the receiver must be able to answer the sender before it takes this cell. Slow path.
pub(crate) fn needs_answer(head: Head) -> bool {
    matches!(head.kind, RTS | RTS_EARLY) || head.flags & FLAG_RECEIPT != 0
}

impl Cell {
    /// Parses the cell at the front of a lane, without its payload.
    ///
    /// # Errors
    /// [`Malformed`] if the cell's kind is unknown, or does not permit what the cell contains.
    #[inline]
    pub(crate) fn of(arrival: &Arrival<'_>) -> Result<Self, Malformed> {
        Self::parse(arrival.head, &arrival.words())
    }

    /// Whether this is the first cell of a message.
    #[inline]
    pub(crate) fn begins_message(&self) -> bool {
        match self {
            Self::Carrier(carrier) => !matches!(carrier, Carrier::Piece(_) | Carrier::Data(..)),
            Self::Control(control) => matches!(control, Control::Rts(_)),
        }
    }

    #[inline]
    fn parse(head: Head, words: &Words) -> Result<Self, Malformed> {
        let length_bytes = head.length_bytes;
        let carrier = match head.kind {
            EAGER => Carrier::Eager(Eager::read(head, words, EAGER_BYTES)?),
            STREAM => Carrier::Stream(Eager::read(head, words, STREAM_BYTES)?),
            PIECE => Carrier::Piece(length_bytes),
            RTS_EARLY => {
                let rts = Rts::read(head.flags, words)?;
                let most = rts.length_bytes.min(STREAM_BYTES as u64);
                let early_bytes = u64::from(length_bytes);
                let is_some = (1..=most).contains(&early_bytes);
                require(is_some, "length of early data", early_bytes)?;
                Carrier::EarlyRts(rts, length_bytes)
            }
            DATA => Carrier::Data(words[0], length_bytes),
            _ => return Control::parse(head, words).map(Self::Control),
        };
        Ok(Self::Carrier(carrier))
    }
}

impl Carrier {
    /// Head and words, without the place of the payload, which the lane knows.
    #[inline(always)]
    pub(crate) fn encode(self) -> (Head, CarrierWords) {
        let (kind, flags, length_bytes, words) = match self {
            Self::Eager(eager) => (EAGER, eager.flags(), eager.length_bytes, eager.words()),
            Self::Stream(eager) => (STREAM, eager.flags(), eager.length_bytes, eager.words()),
            Self::Piece(length_bytes) => (PIECE, 0, length_bytes, [0; 5]),
            Self::EarlyRts(rts, early_bytes) => (RTS_EARLY, rts.flags(), early_bytes, rts.words()),
            Self::Data(number, length_bytes) => (DATA, 0, length_bytes, [number, 0, 0, 0, 0]),
        };
        let head = Head {
            kind,
            flags,
            length_bytes,
        };
        (head, words)
    }
}

impl Control {
    /// A FIN for a message that was not copied out of what its sender shares.
    pub(crate) fn fin(send_id: u64) -> Self {
        Self::Fin(Fin {
            send_id,
            is_mapped: false,
        })
    }

    /// Head and words.
    pub(crate) fn encode(&self) -> (Head, Words) {
        let (kind, flags, words) = match self {
            Self::Rts(rts) => {
                let [tag, data, send_id, address, length_bytes] = rts.words();
                let words = [tag, data, 0, send_id, address, length_bytes, 0];
                (RTS, rts.flags(), words)
            }
            Self::Cts(cts) => {
                let (kind, words) = cts.write();
                (kind, 0, words)
            }
            Self::Fin(fin) => {
                let words = [fin.send_id, u64::from(fin.is_mapped), 0, 0, 0, 0, 0];
                (FIN, 0, words)
            }
            Self::Bye => (BYE, 0, [0; 7]),
        };
        let head = Head {
            kind,
            flags,
            length_bytes: 0,
        };
        (head, words)
    }

    fn parse(head: Head, words: &Words) -> Result<Self, Malformed> {
        match head.kind {
            RTS => Ok(Self::Rts(Rts::read(head.flags, words)?)),
            CTS_PIPE | CTS_LANE | CTS_COPY => Ok(Self::Cts(Cts::read(head.kind, words)?)),
            FIN => Ok(Self::Fin(Fin {
                send_id: words[0],
                is_mapped: read_bool(words[1], "how a message was fetched")?,
            })),
            BYE => Ok(Self::Bye),
            // One that fits its lane was taken before.
            INLINE => Err(Malformed {
                what: "length of an inline message",
                value: head.length_bytes.into(),
            }),
            kind => Err(Malformed {
                what: "kind",
                value: kind.into(),
            }),
        }
    }
}

fn read_bool(word: u64, what: &'static str) -> Result<bool, Malformed> {
    require(word <= 1, what, word)?;
    Ok(word == 1)
}

impl Eager {
    #[inline(always)]
    fn flags(self) -> u8 {
        self.header.flags()
            | if self.receipt.is_some() {
                FLAG_RECEIPT
            } else {
                0
            }
    }

    #[inline(always)]
    fn words(self) -> CarrierWords {
        let header = self.header;
        [header.tag, header.data(), self.receipt.unwrap_or(0), 0, 0]
    }

    #[inline]
    fn read(head: Head, words: &Words, most_bytes: usize) -> Result<Self, Malformed> {
        let Head {
            flags,
            length_bytes,
            ..
        } = head;
        let fits = length_bytes as usize <= most_bytes;
        require(fits, "length of an eager message", length_bytes.into())?;
        Ok(Self {
            header: MatchHeader::read(flags, words[0], words[1]),
            length_bytes,
            receipt: (flags & FLAG_RECEIPT != 0).then_some(words[3]),
        })
    }
}

impl Rts {
    fn flags(self) -> u8 {
        let when = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        self.header.flags()
            | when(self.wants_receipt, FLAG_RECEIPT)
            | when(self.address.is_some(), FLAG_ADDRESS)
            | when(self.is_shared, FLAG_SHARED)
    }

    fn words(self) -> CarrierWords {
        let (header, address) = (self.header, self.address.unwrap_or(0));
        let (tag, data) = (header.tag, header.data());
        [tag, data, self.send_id, address, self.length_bytes]
    }

    fn read(flags: u8, words: &Words) -> Result<Self, Malformed> {
        let &[tag, data, _, send_id, address, length_bytes, _] = words;
        require(
            length_bytes <= MESSAGE_BYTES,
            "length of a message",
            length_bytes,
        )?;
        let (has_address, is_shared) = (flags & FLAG_ADDRESS != 0, flags & FLAG_SHARED != 0);
        require(has_address || !is_shared, "flags of an RTS", flags.into())?;
        Ok(Self {
            header: MatchHeader::read(flags, tag, data),
            send_id,
            length_bytes,
            address: has_address.then_some(address),
            is_shared,
            wants_receipt: flags & FLAG_RECEIPT != 0,
        })
    }
}

impl Cts {
    fn write(&self) -> (u8, Words) {
        let Range { start, end } = self.bytes;
        let (kind, [place, fourth, fifth]) = match self.by {
            Transfer::Pipe {
                pipe,
                first_chunk,
                is_non_temporal,
            } => (
                CTS_PIPE,
                [pipe as u64, first_chunk as u64, is_non_temporal.into()],
            ),
            Transfer::Lane { number } => (CTS_LANE, [number, 0, 0]),
            Transfer::Copy {
                pipe,
                ticket,
                address,
            } => (CTS_COPY, [pipe as u64, ticket, address]),
        };
        (kind, [self.send_id, start, end, place, fourth, fifth, 0])
    }

    fn read(kind: u8, words: &Words) -> Result<Self, Malformed> {
        let &[send_id, start, end, place, fourth, fifth, _] = words;
        require(start < end, "end of what a CTS asks for", end)?;
        let pipe = || {
            require(place < PIPE_COUNT as u64, "pipe of a CTS", place)?;
            Ok(place as usize)
        };
        let by = match kind {
            CTS_PIPE => {
                let is_there = fourth < PIPE_CHUNKS as u64;
                require(is_there, "first chunk of a CTS", fourth)?;
                Transfer::Pipe {
                    pipe: pipe()?,
                    first_chunk: fourth as usize,
                    is_non_temporal: read_bool(fifth, "stores of a CTS")?,
                }
            }
            CTS_LANE => Transfer::Lane { number: place },
            _ => Transfer::Copy {
                pipe: pipe()?,
                ticket: fourth,
                address: fifth,
            },
        };
        Ok(Self {
            send_id,
            bytes: start..end,
            by,
        })
    }
}

#[cfg(test)]
mod tests;
