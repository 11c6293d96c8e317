// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes of requests and answers: docs/one-sided.md, clauses 2 and 3. Written by initiator.rs,
//! send_queues.rs and target.rs, read by service.rs; what comes in is checked here, field by field.

use weft_contract::{Range, TransferError};
use weft_memory::{BytesView, Element, Operator};

use crate::error::Error;

/// Ranges of one request, at most. Specified: clause 3.
pub const RANGE_LIMIT: usize = weft_facts::limit::RANGES;
/// Bytes of one range.
pub(crate) const RANGE_BYTES: usize = 24;
/// Bytes of the longest head.
pub(crate) const HEAD_LIMIT_BYTES: usize = RANGE_LIMIT * RANGE_BYTES;

/// The keys that a request names.
pub(crate) type Keys = [u64; RANGE_LIMIT];

/// What a service message is. Specified: clause 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A write whose payload follows the ranges.
    Write = 1,
    /// A write whose payload comes in a message of its own.
    LongWrite = 2,
    /// That payload.
    Payload = 3,
    /// A read.
    Read = 4,
    /// An atomic operation; operands and comparands follow the ranges.
    Atomic = 5,
    /// Answer: these operations are carried out.
    Done = 6,
    /// Answer: the operation was refused.
    Refused = 7,
    /// Answer: what was read, or was there before.
    Result = 8,
}

/// The request wants an answer.
pub(crate) const WANTS_ANSWER: u8 = 1;
/// An atomic operation that answers what was there before.
pub(crate) const FETCHES: u8 = 2;

/// The tag of a service message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag {
    pub(crate) kind: Kind,
    pub(crate) range_count: u8,
    pub(crate) flags: u8,
    /// An operation, or the reason of a refusal.
    pub(crate) code: u8,
    pub(crate) element: u8,
    /// The initiator's name for the operation.
    pub(crate) id: u32,
}

impl Tag {
    pub(crate) fn new(kind: Kind, id: u32) -> Self {
        Self {
            kind,
            range_count: 0,
            flags: 0,
            code: 0,
            element: 0,
            id,
        }
    }

    /// Of the answer that an operation was refused.
    pub(crate) fn refusal(id: u32, reason: u8) -> Self {
        Self {
            code: reason,
            ..Self::new(Kind::Refused, id)
        }
    }

    /// Whether an atomic operation answers what was there before.
    #[inline(always)]
    pub(crate) fn fetches(self) -> bool {
        self.flags & FETCHES != 0
    }

    /// Fast path.
    #[inline(always)]
    pub(crate) fn pack(self) -> u64 {
        (self.kind as u64) << 60
            | u64::from(self.range_count & 15) << 56
            | u64::from(self.flags) << 48
            | u64::from(self.code) << 40
            | u64::from(self.element) << 32
            | u64::from(self.id)
    }

    /// `None` for a kind that does not exist or too many ranges. Fast path.
    #[inline(always)]
    pub(crate) fn parse(tag: u64) -> Option<Self> {
        let kind = match tag >> 60 {
            1 => Kind::Write,
            2 => Kind::LongWrite,
            3 => Kind::Payload,
            4 => Kind::Read,
            5 => Kind::Atomic,
            6 => Kind::Done,
            7 => Kind::Refused,
            8 => Kind::Result,
            _ => return None,
        };
        let range_count = (tag >> 56) as u8 & 15;
        (usize::from(range_count) <= RANGE_LIMIT).then_some(Self {
            kind,
            range_count,
            flags: (tag >> 48) as u8,
            code: (tag >> 40) as u8,
            element: (tag >> 32) as u8,
            id: tag as u32,
        })
    }

    /// The atomic operation that is asked for, if it exists and has a meaning for its type.
    pub(crate) fn atomic(self) -> Option<(Operator, Element)> {
        let operator = Operator::of(u32::from(self.code))?;
        let element = Element::of(u32::from(self.element))?;
        element.allows(operator).then_some((operator, element))
    }
}

/// Reasons of a refusal, as docs/one-sided.md numbers them.
const REASONS: [Error; 4] = [
    Error::Transfer(TransferError::Corrupt),
    Error::KeyRejected,
    Error::AccessDenied,
    Error::OutOfRange,
];

/// The number of a reason.
pub(crate) fn reason(error: Error) -> u8 {
    let known = REASONS.iter().position(|&known| known == error);
    known.unwrap_or(0) as u8
}

/// The reason of a number; 0 is a message that makes no sense.
pub(crate) fn error_of(reason: u8) -> Error {
    let known = REASONS.get(usize::from(reason));
    known.copied().unwrap_or(REASONS[0])
}

/// The ranges at the head of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestHead {
    ranges: [Range; RANGE_LIMIT],
    count: usize,
}

impl RequestHead {
    /// Splits a request into its ranges and what follows them; `None` if it is too short. Fast
    /// path.
    #[inline(always)]
    pub(crate) fn parse(tag: Tag, request: BytesView<'_>) -> Option<(Self, BytesView<'_>)> {
        let count = usize::from(tag.range_count);
        let (head, rest) = request.split_at(count * RANGE_BYTES);
        if head.length_bytes() != count * RANGE_BYTES {
            return None;
        }
        let mut bytes = [0; HEAD_LIMIT_BYTES];
        head.copy_to_slice(&mut bytes[..count * RANGE_BYTES]);
        let mut ranges = [Range::default(); RANGE_LIMIT];
        for (range, bytes) in ranges
            .iter_mut()
            .zip(bytes.chunks_exact(RANGE_BYTES))
            .take(count)
        {
            *range = Range {
                address: word(bytes, 0),
                key: word(bytes, 1),
                length_bytes: word(bytes, 2),
            };
        }
        Some((Self { ranges, count }, rest))
    }

    pub(crate) fn ranges(&self) -> &[Range] {
        &self.ranges[..self.count]
    }

    /// The keys, places beyond the last range filled with the first.
    pub(crate) fn keys(&self) -> Keys {
        let (first, count) = (self.ranges[0].key, self.count);
        let mut keys = [first; RANGE_LIMIT];
        for (key, range) in keys.iter_mut().zip(&self.ranges[..count]) {
            *key = range.key;
        }
        keys
    }

    /// The key of the first range.
    #[inline(always)]
    pub(crate) fn first_key(&self) -> u64 {
        self.ranges[0].key
    }
}

/// Writes the ranges of a request; answers how many bytes that took. There are at most
/// [`RANGE_LIMIT`]. Fast path.
#[inline(always)]
pub(crate) fn write_ranges(ranges: &[Range], bytes: &mut [u8; HEAD_LIMIT_BYTES]) -> usize {
    for (range, place) in ranges.iter().zip(bytes.chunks_exact_mut(RANGE_BYTES)) {
        place[..8].copy_from_slice(&range.address.to_le_bytes());
        place[8..16].copy_from_slice(&range.key.to_le_bytes());
        place[16..].copy_from_slice(&range.length_bytes.to_le_bytes());
    }
    ranges.len() * RANGE_BYTES
}

#[inline(always)]
fn word(bytes: &[u8], index: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_as_they_were_written_and_unknown_kinds_are_not() {
        let tag = Tag {
            kind: Kind::Atomic,
            range_count: 3,
            flags: FETCHES,
            code: 18,
            element: 15,
            id: 0xDEAD_BEEF,
        };
        assert_eq!(Tag::parse(tag.pack()), Some(tag));
        assert_eq!(
            Tag::parse(
                Tag {
                    range_count: 9,
                    ..tag
                }
                .pack()
            ),
            None
        );
        for kind in [0, 9, 15] {
            assert_eq!(Tag::parse(kind << 60), None);
        }
    }

    #[test]
    fn ranges_are_read_as_they_were_written_and_short_requests_are_refused() {
        let range = |seed: u64| Range {
            address: seed,
            length_bytes: !seed,
            key: seed << 32,
        };
        let ranges: Vec<Range> = (1..=8).map(range).collect();
        let mut bytes = [0; HEAD_LIMIT_BYTES];
        let length = write_ranges(&ranges, &mut bytes);
        assert_eq!(length, HEAD_LIMIT_BYTES);
        let tag = Tag {
            range_count: 8,
            ..Tag::new(Kind::Read, 0)
        };
        let mut request = bytes.to_vec();
        request.extend([1, 2, 3]);
        let (head, rest) = RequestHead::parse(tag, BytesView::from_slice(&request)).unwrap();
        assert_eq!(head.ranges(), ranges);
        assert_eq!(rest.to_vec(), [1, 2, 3]);
        assert!(RequestHead::parse(tag, BytesView::from_slice(&bytes[1..])).is_none());
    }

    #[test]
    fn reasons_lead_back_to_their_errors() {
        for error in REASONS {
            assert_eq!(error_of(reason(error)), error);
        }
        assert_eq!(error_of(200), REASONS[0]);
    }

    #[test]
    fn an_atomic_without_a_meaning_is_none() {
        let tag = |code, element| Tag {
            code,
            element,
            ..Tag::new(Kind::Atomic, 0)
        };
        assert!(tag(0, 0).atomic().is_some());
        assert!(tag(0, 10).atomic().is_none(), "no smallest complex number");
        assert!(tag(19, 0).atomic().is_none());
        assert!(tag(0, 12).atomic().is_none());
    }
}
