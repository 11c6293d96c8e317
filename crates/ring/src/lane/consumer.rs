// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The reading end of a lane, in the receiver's process (docs/shm-layout.md, clause 4). Driven by
//! shm's progress.

use weft_memory::{BytesView, Mapping};
use weft_os::crash_point;

use super::cursor::Cursor;
use super::{Lane, Producer};
use crate::cell::{
    CELL_PAYLOAD_BYTES, CELL_WORDS, Cell, Head, INLINE_PAYLOAD_BYTES, cells_of, lap_of,
};
use crate::layout::{LANE_CELLS, LANE_DATA_BYTES, LANE_NARROW_BYTES};
use crate::pool::Stretch;
use crate::sync::Ordering;

/// Cells that the consumer takes before it publishes its count. Chosen: a quarter of a lane. So a
/// producer does not run out of room while the consumer keeps up, and the cache line of the count
/// rarely moves to the other processor.
const PUBLISH_CELLS: u64 = (LANE_CELLS as u64).div_ceil(4);

/// Data bytes that the consumer takes before it publishes its count. Chosen: a quarter of the data
/// area that every lane may use.
const PUBLISH_BYTES: u32 = LANE_NARROW_BYTES as u32 / 4;

/// The reading end of a lane, in the receiver's process.
#[derive(Debug)]
pub struct Consumer {
    lane: Lane,
    cursor: Cursor,
    consumed: u64,
    published: u64,
    bytes_unpublished: u32,
}

/// One message at the front of a lane, unchecked, as its sender wrote it. Read each word only once:
/// if the remote goes on writing, a second reading could give something else.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// Kind, flags and length.
    pub head: Head,
    cell: &'a Cell,
    consumer: &'a Consumer,
}

impl Arrival<'_> {
    /// One word of the cell; for inline messages only the first two are words.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        assert!(index < CELL_WORDS, "a cell has {CELL_WORDS} words");
        // SAFETY: the index was just checked; the mark said that the words are complete, and a
        // remote that writes them meanwhile only changes its own message.
        self.cell
            .words
            .with(|words| unsafe { words.cast::<u64>().add(index).read() })
    }

    /// All words of the cell, copied out.
    #[inline(always)]
    pub fn words(&self) -> [u64; CELL_WORDS] {
        // SAFETY: the mark said that the words are complete, and a remote that writes them
        // meanwhile only changes its own message.
        self.cell
            .words
            .with(|words| unsafe { words.cast::<[u64; CELL_WORDS]>().read() })
    }

    /// The payload inside the cell and those that follow; None if the head claims more than they
    /// hold.
    #[inline(always)]
    pub fn inline_payload(&self) -> Option<BytesView<'_>> {
        let length_bytes = self.head.length_bytes as usize;
        let next = self.consumer.cursor.index();
        if length_bytes > CELL_PAYLOAD_BYTES
            && (length_bytes > INLINE_PAYLOAD_BYTES || next + cells_of(length_bytes) > LANE_CELLS)
        {
            return None;
        }
        // SAFETY: the mark was seen, and the cells end with the lane's by the check above.
        Some(unsafe { self.consumer.lane.inline_view(next, length_bytes) })
    }

    /// The chunk that the third word names; None if it names the data area, or nothing.
    #[inline(always)]
    pub fn chunk(&self) -> Option<Stretch> {
        Stretch::unpack(self.word(2))
    }

    /// The payload in the data area that the third word names; None if it does not lie there.
    #[inline(always)]
    pub fn data_payload(&self) -> Option<BytesView<'_>> {
        let place = self.word(2);
        let (start, length_bytes) = ((place >> 32) as usize, place as u32 as usize);
        if start + length_bytes > LANE_DATA_BYTES {
            return None;
        }
        // SAFETY: the stretch was just checked to lie inside the data area.
        Some(unsafe { BytesView::from_raw(self.consumer.lane.data.add(start), length_bytes) })
    }
}

impl Consumer {
    /// The reading end of the lane of `slot` in one's own region, started over. None if the slot is
    /// out of range. Setup.
    pub fn attach(region: &Mapping, slot: usize) -> Option<Self> {
        Lane::in_region(region, slot).map(Self::over)
    }

    pub(super) fn over(lane: Lane) -> Self {
        Self {
            lane,
            cursor: Cursor::new(),
            consumed: 0,
            published: 0,
            bytes_unpublished: 0,
        }
    }

    /// For a receiver that takes nothing more: a reading end over the messages that our producer
    /// has pushed and the receiver has not taken. Slow path.
    pub fn of_untaken(producer: &mut Producer) -> Self {
        producer.look();
        let (lane, consumed) = (producer.lane.again(), producer.consumed);
        Self {
            cursor: Cursor::behind(consumed),
            consumed,
            published: consumed,
            ..Self::over(lane)
        }
    }

    /// The message at the front, if there is one. One load when there is none. Fast path.
    #[inline(always)]
    pub fn peek(&self) -> Option<Arrival<'_>> {
        let cell = self.lane.cell(self.cursor.index());
        // Pairs with the store in `Producer::publish`.
        let mark = cell.mark.load(Ordering::Acquire);
        if lap_of(mark) != self.cursor.lap() {
            return None;
        }
        Some(Arrival {
            head: Head::unpack(mark),
            cell,
            consumer: self,
        })
    }

    /// Whether there is a message at the front. One load. Fast path.
    ///
    /// Meanwhile the processor prefetches the lines after the front, so that a message of several
    /// cells is in the cache as soon as its mark is.
    #[inline(always)]
    pub fn has_message(&self) -> bool {
        let next = self.cursor.index();
        self.lane.fetch_after(next);
        lap_of(self.lane.cell(next).mark.load(Ordering::Relaxed)) == self.cursor.lap()
    }

    /// Frees the message at the front, which used `data_bytes` of the data area. Fast path.
    #[inline(always)]
    pub fn advance(&mut self, data_bytes: u32) {
        self.consumed += 1;
        self.bytes_unpublished += data_bytes;
        self.cursor.advance_to(self.cursor.index() + 1);
        if self.consumed - self.published >= PUBLISH_CELLS
            || self.bytes_unpublished >= PUBLISH_BYTES
        {
            self.publish();
        }
    }

    /// Frees the inline message at the front, of this length. Fast path.
    #[inline(always)]
    pub fn advance_inline(&mut self, length_bytes: u32) {
        let cells = cells_of(length_bytes as usize);
        self.consumed += cells as u64;
        self.cursor.advance_to(self.cursor.index() + cells);
        if self.consumed - self.published >= PUBLISH_CELLS {
            self.publish();
        }
    }

    /// Publishes the count of cells taken, if it has changed; called when the lane is empty. Fast
    /// path.
    #[inline(always)]
    pub fn settle(&mut self) {
        if self.published != self.consumed {
            self.publish();
        }
    }

    #[inline(always)]
    fn publish(&mut self) {
        self.published = self.consumed;
        self.bytes_unpublished = 0;
        crash_point!(20, "take: cells are taken, their sender not told");
        // Pairs with the load in `Producer::look`: our copies come before it.
        self.lane
            .control()
            .consumed
            .store(self.consumed, Ordering::Release);
        crash_point!(21, "take: the sender is told");
    }

    /// Publishes whether we poll this lane, so that the producer knows whether to ring the
    /// doorbell.
    ///
    /// After `set_polled(false)` a producer that read the old value may push one more message
    /// without ringing. So look at the lane once more a little later, or put a barrier on every
    /// processor in between (membarrier(2)).
    pub fn set_polled(&mut self, polled: bool) {
        self.lane
            .control()
            .polled
            .store(u64::from(polled), Ordering::Relaxed);
    }

    /// Asks the producer to write long payload with non-temporal stores, or not to.
    pub fn set_non_temporal(&mut self, non_temporal: bool) {
        self.lane
            .control()
            .non_temporal
            .store(u64::from(non_temporal), Ordering::Relaxed);
    }

    /// Tells the producer how both processes should copy long messages while traffic is
    /// bidirectional.
    pub fn set_advice(&mut self, word: u64) {
        self.lane.control().advice.store(word, Ordering::Relaxed);
    }

    /// For tests: publishes a count of cells that this end did not take, as a faulty receiver
    /// might.
    #[cfg(test)]
    pub(crate) fn claim(&self, consumed: u64) {
        self.lane
            .control()
            .consumed
            .store(consumed, Ordering::Relaxed);
    }

    /// Resets the lane for the next sender. Call it only when the process that claimed the slot is
    /// known to be gone.
    pub fn reset(&mut self) {
        self.lane.reset();
        *self = Self::over(self.lane.again());
    }
}
