// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The acknowledgement section (srd-protocol 4): all a receiver knows, so that any one of them says
//! everything.

use crate::bytes::{Head, Reader, write_at};
use crate::malformed::{Malformed, require};
use crate::marks::Marks;
use crate::path::Path;
use crate::time::Instant;

/// Words of a full bitmap: 1024 sequences (srd-protocol 15, part of the protocol).
pub const BITMAP_WORDS: usize = 16;
/// Size of the section without its bitmap (srd-protocol 4).
pub const ACKNOWLEDGEMENT_BYTES: usize = 64;
/// `echo_sequence` when the echoed packet had none.
pub const NO_SEQUENCE: u64 = u64::MAX;

/// What has arrived, and what may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acknowledgement {
    /// Every sequence below has arrived; itself has not.
    pub cumulative: u64,
    /// Bytes of reliable packets that arrived, duplicates not counted.
    pub received_bytes: u64,
    /// `Header::sent_ns` of the packet that is answered.
    pub echo_sent_ns: Instant,
    /// Its sequence, or [`NO_SEQUENCE`].
    pub echo_sequence: u64,
    /// How long it waited for this answer.
    pub hold_ns: u32,
    /// The path it took.
    pub echo_path: Path,
    /// 0 to 127: by how many 128ths per round trip the sender shall slow down (srd-protocol 10.6).
    pub penalty: u8,
    /// Packets that arrived twice since the last section, saturating.
    pub duplicate_count: u8,
    /// Bit p: something arrived on path p lately.
    pub paths_heard: u64,
    /// srd-protocol 11.3.
    pub receive_limit: u64,
    /// srd-protocol 11.1.
    pub credit_limit: u64,
    /// Bit i of word w: sequence `cumulative + 1 + 64 w + i` has arrived.
    pub bitmap: [u64; BITMAP_WORDS],
    /// What was seen of congestion marks, if there were any: a section of its own (srd-protocol
    /// 4.1).
    pub marks: Option<Marks>,
}

impl Acknowledgement {
    /// Whether a sequence is acknowledged.
    #[inline]
    pub fn covers(&self, sequence: u64) -> bool {
        if sequence < self.cumulative {
            return true;
        }
        let Some(bit) = (sequence - self.cumulative).checked_sub(1) else {
            return false;
        };
        match self.bitmap.get((bit / 64) as usize) {
            Some(word) => word >> (bit % 64) & 1 == 1,
            None => false,
        }
    }

    /// The first sequence above all acknowledged ones.
    #[inline]
    pub fn end(&self) -> u64 {
        let words = self.word_count();
        if words == 0 {
            return self.cumulative;
        }
        let top = 63 - u64::from(self.bitmap[words - 1].leading_zeros());
        self.cumulative
            .saturating_add(2 + 64 * (words as u64 - 1) + top)
    }

    /// Words up to the last one that is not 0.
    #[inline]
    pub fn word_count(&self) -> usize {
        // Mostly there is none: all at once is asked quicker than one by one.
        if self.bitmap.iter().fold(0, |all, word| all | word) == 0 {
            return 0;
        }
        self.bitmap
            .iter()
            .rposition(|word| *word != 0)
            .map_or(0, |index| index + 1)
    }

    #[inline]
    pub(crate) fn write(&self, head: &mut Head) {
        let words = self.word_count();
        let place = head.next::<ACKNOWLEDGEMENT_BYTES>();
        write_at(place, 0, self.cumulative.to_le_bytes());
        write_at(place, 8, self.received_bytes.to_le_bytes());
        write_at(place, 16, self.echo_sent_ns.0.to_le_bytes());
        write_at(place, 24, self.hold_ns.to_le_bytes());
        let (path, penalty) = (self.echo_path.number(), self.penalty.min(127));
        let small = [path, penalty, words as u8, self.duplicate_count];
        write_at(place, 28, small);
        write_at(place, 32, self.paths_heard.to_le_bytes());
        write_at(place, 40, self.receive_limit.to_le_bytes());
        write_at(place, 48, self.credit_limit.to_le_bytes());
        write_at(place, 56, self.echo_sequence.to_le_bytes());
        for word in &self.bitmap[..words] {
            head.put_u64(*word);
        }
        if let Some(marks) = &self.marks {
            marks.write(head);
        }
    }

    #[inline(always)]
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (mut section, words) = reader.stretch::<ACKNOWLEDGEMENT_BYTES, _>(Self::fields)?;
        if words > 0 {
            section.read_bitmap(words, reader)?;
        }
        Ok(section)
    }

    /// All but the bitmap, and how many words that has.
    #[inline(always)]
    fn fields(reader: &mut Reader<'_>) -> Result<(Self, usize), Malformed> {
        let cumulative = reader.u64("cumulative")?;
        require(
            cumulative < u64::MAX / 2,
            "cumulative",
            cumulative,
            "no flow has sent that many packets",
        )?;
        let received_bytes = reader.u64("received_bytes")?;
        let echo_sent_ns = Instant(reader.u64("echo_sent_ns")?);
        let hold_ns = reader.u32("hold_ns")?;
        let number = reader.u8("echo_path")?;
        let echo_path = Path::from_number(number)
            .ok_or_else(|| Malformed::new("echo_path", u64::from(number), "paths are 0 to 63"))?;
        let penalty = reader.u8("penalty")?;
        require(
            penalty < 128,
            "penalty",
            u64::from(penalty),
            "the most is 127",
        )?;
        let words = reader.u8("word count")?;
        require(
            usize::from(words) <= BITMAP_WORDS,
            "word count",
            u64::from(words),
            "a bitmap has at most 16 words",
        )?;
        let duplicate_count = reader.u8("duplicates")?;
        let paths_heard = reader.u64("paths_heard")?;
        let receive_limit = reader.u64("receive_limit")?;
        let credit_limit = reader.u64("credit_limit")?;
        let echo_sequence = reader.u64("echo_sequence")?;
        let section = Self {
            cumulative,
            received_bytes,
            echo_sent_ns,
            echo_sequence,
            hold_ns,
            echo_path,
            penalty,
            duplicate_count,
            paths_heard,
            receive_limit,
            credit_limit,
            bitmap: [0; BITMAP_WORDS],
            marks: None,
        };
        Ok((section, usize::from(words)))
    }

    /// What lies above a gap: no part of what a single message pays for.
    #[inline(never)]
    fn read_bitmap(&mut self, words: usize, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        for word in &mut self.bitmap[..words] {
            *word = reader.u64("bitmap")?;
        }
        require(
            self.bitmap[words - 1] != 0,
            "bitmap",
            words as u64,
            "that is its number of words, and the last one is 0",
        )
    }
}
