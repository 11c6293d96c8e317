// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which bytes of a message have arrived, as ranges; and messages put together from segments
//! (srd-protocol 12.4, 12.5).
//!
//! Called by order (segments) and by landing (data).

use weft_wire::Message;

/// Ranges of one message kept apart (srd-protocol 14.4). Chosen: an honest sender has a hole per
/// batch under way, and 1024 sequences of 1 KiB are 64 batches.
pub(crate) const RANGE_LIMIT: usize = 128;

/// Buffers kept at most, and how large each may be (chosen: messages of a few remotes that are put
/// together side by side; no message in segments is longer).
const SPARE_LIMIT: usize = 4;
/// See [`SPARE_LIMIT`].
const SPARE_BYTES: usize = 64 << 10;

/// Disjoint ranges in ascending order, none of which touch.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    list: Vec<(u64, u64)>,
    total_bytes: u64,
}

/// Why a piece is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Misfit {
    /// Some of its bytes are there already: the sender breaks the protocol.
    Overlap,
    /// Too many holes to keep track of; the piece may come again.
    Full,
}

impl Ranges {
    /// Bytes that have arrived.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Index of the first range that ends at or behind `start`.
    fn position(&self, start: u64) -> usize {
        match self.list.last() {
            Some((_, end)) if *end < start => self.list.len(),
            _ => self.list.partition_point(|range| range.1 < start),
        }
    }

    /// Whether the piece could be inserted. It has at least one byte and does not overflow.
    pub(crate) fn check(&self, start: u64, end: u64) -> Result<(), Misfit> {
        let at = self.position(start);
        let before = self.list.get(at).filter(|range| range.1 == start);
        let next = self.list.get(at + usize::from(before.is_some()));
        if next.is_some_and(|range| range.0 < end) {
            return Err(Misfit::Overlap);
        }
        let joins = before.is_some() || next.is_some_and(|range| range.0 == end);
        if !joins && self.list.len() >= RANGE_LIMIT {
            return Err(Misfit::Full);
        }
        Ok(())
    }

    /// Inserts a piece that [`Ranges::check`] has passed.
    pub(crate) fn insert(&mut self, start: u64, end: u64) {
        debug_assert_eq!(self.check(start, end), Ok(()));
        self.total_bytes += end - start;
        let at = self.position(start);
        let joins_before = self.list.get(at).is_some_and(|range| range.1 == start);
        let next = at + usize::from(joins_before);
        let joins_next = self.list.get(next).is_some_and(|range| range.0 == end);
        match (joins_before, joins_next) {
            (true, true) => {
                self.list[at].1 = self.list[next].1;
                self.list.remove(next);
            }
            (true, false) => self.list[at].1 = end,
            (false, true) => self.list[next].0 = start,
            (false, false) => self.list.insert(at, (start, end)),
        }
    }

    /// Memory behind it.
    pub(crate) fn footprint_bytes(&self) -> usize {
        self.list.capacity() * size_of::<(u64, u64)>()
    }
}

/// Memory of messages that were handed out, for those to come: fresh memory costs a page fault for
/// every 4 KiB, and writing zeros to it.
#[derive(Debug, Default)]
pub(crate) struct Spares(Vec<Vec<u8>>);

impl Spares {
    /// Room for so many bytes, none of which are there yet.
    fn take(&mut self, length_bytes: usize) -> Vec<u8> {
        let mut memory = self.0.pop().unwrap_or_default();
        memory.reserve(length_bytes);
        memory
    }

    /// Keeps memory that nobody needs any more.
    pub(crate) fn keep(&mut self, mut memory: Vec<u8>) {
        if self.0.len() < SPARE_LIMIT && memory.capacity() <= SPARE_BYTES {
            memory.clear();
            self.0.push(memory);
        }
    }
}

/// A message, and which of its bytes have come.
#[derive(Debug)]
pub(crate) struct Coverage {
    message: Message,
    ranges: Ranges,
}

impl Coverage {
    /// Nothing of it has come.
    pub(crate) fn new(message: Message) -> Self {
        Self {
            message,
            ranges: Ranges::default(),
        }
    }

    pub(crate) fn message(&self) -> &Message {
        &self.message
    }

    /// Whether a piece can be taken (srd-protocol 12.5).
    pub(crate) fn check(&self, message: &Message, start: u64, length: u64) -> Result<(), Misfit> {
        if *message != self.message {
            return Err(Misfit::Overlap);
        }
        self.ranges.check(start, start + length)
    }

    /// Takes a piece that was checked; answers whether the message is whole.
    pub(crate) fn insert(&mut self, start: u64, length: u64) -> bool {
        self.ranges.insert(start, start + length);
        self.ranges.total_bytes() == self.message.length_bytes
    }

    pub(crate) fn footprint_bytes(&self) -> usize {
        self.ranges.footprint_bytes()
    }
}

/// A message that is being put together.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) coverage: Coverage,
    payload: Vec<u8>,
}

impl Assembly {
    /// Room for all of it.
    pub(crate) fn new(message: Message, spares: &mut Spares) -> Self {
        Self {
            coverage: Coverage::new(message),
            payload: spares.take(message.length_bytes as usize),
        }
    }

    /// Takes a piece that was checked; answers whether the message is whole.
    pub(crate) fn insert(&mut self, start: u64, piece: &[u8]) -> bool {
        let end = start + piece.len() as u64;
        if start == self.payload.len() as u64 {
            // In order, as they mostly come.
            self.payload.extend_from_slice(piece);
        } else {
            let length_bytes = self.payload.len().max(end as usize);
            self.payload.resize(length_bytes, 0);
            self.payload[start as usize..end as usize].copy_from_slice(piece);
        }
        self.coverage.insert(start, piece.len() as u64)
    }

    pub(crate) fn into_payload(self) -> Vec<u8> {
        self.payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn pieces_in_any_order_fill_a_message_once() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let mut ranges = Ranges::default();
            let mut bytes = [false; 120];
            for _ in 0..400 {
                let start = random.below(110);
                let end = start + 1 + random.below(10);
                let span = &mut bytes[start as usize..end as usize];
                let expected = if span.contains(&true) {
                    Err(Misfit::Overlap)
                } else {
                    Ok(())
                };
                assert_eq!(
                    ranges.check(start, end),
                    expected,
                    "seed {seed}, {start}..{end}, {ranges:?}"
                );
                if expected.is_ok() {
                    span.fill(true);
                    ranges.insert(start, end);
                }
                let there = bytes.iter().filter(|byte| **byte).count() as u64;
                assert_eq!(ranges.total_bytes(), there, "seed {seed}");
                assert!(
                    ranges.list.windows(2).all(|pair| pair[0].1 < pair[1].0),
                    "seed {seed}"
                );
            }
        }
    }

    #[test]
    fn a_message_is_what_was_sent_whatever_lay_in_the_memory_that_it_is_put_together_in() {
        let message = |length_bytes| Message {
            id: 0,
            tag: None,
            cq_data: None,
            length_bytes,
            wants_receipt: false,
            is_service: false,
        };
        let mut spares = Spares::default();
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let sent: Vec<u8> = (0..1 + random.below(5000))
                .map(|at| (at + seed) as u8)
                .collect();
            let mut assembly = Assembly::new(message(sent.len() as u64), &mut spares);
            let mut pieces: Vec<usize> = (0..sent.len()).step_by(97).collect();
            while !pieces.is_empty() {
                // Half of them in order.
                let next = random.below(2) * random.below(pieces.len() as u64);
                let start = pieces.remove(next as usize);
                let end = sent.len().min(start + 97);
                let whole = assembly.insert(start as u64, &sent[start..end]);
                assert_eq!(whole, pieces.is_empty(), "seed {seed}");
            }
            let payload = assembly.into_payload();
            assert!(payload == sent, "seed {seed}");
            spares.keep(payload);
        }
    }

    #[test]
    fn spare_memory_is_limited_in_number_and_size() {
        let mut spares = Spares::default();
        for _ in 0..2 * SPARE_LIMIT {
            spares.keep(vec![1; 100]);
        }
        assert_eq!(spares.0.len(), SPARE_LIMIT);
        let mut spares = Spares::default();
        spares.keep(vec![1; SPARE_BYTES + 1]);
        assert!(spares.0.is_empty());
    }

    #[test]
    fn holes_are_limited_but_pieces_that_join_are_always_taken() {
        let mut ranges = Ranges::default();
        for index in 0..RANGE_LIMIT as u64 {
            ranges.insert(10 * index, 10 * index + 1);
        }
        assert_eq!(ranges.check(5, 6), Err(Misfit::Full));
        assert_eq!(ranges.check(1, 6), Ok(()));
        assert_eq!(ranges.check(5, 10), Ok(()));
    }
}
