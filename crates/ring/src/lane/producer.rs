// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The writing end of a lane, in the sender's process (docs/shm-layout.md, clause 4). Driven by
//! shm's sends.

use std::ops::Range;

use weft_memory::{BytesViewMut, Mapping, UserBuffer};
use weft_os::crash_point;

use super::cursor::Cursor;
use super::data_area::DataArea;
use super::{Full, Lane};
use crate::cell::{
    CELL_PAYLOAD_BYTES, CELL_WORDS, Head, INLINE_PAYLOAD_BYTES, cells_of, lap_of, next_lap,
};
use crate::layout::LANE_CELLS;
use crate::pool::OwnChunk;
use crate::sync::Ordering;

/// Payload of this length or more is written with non-temporal stores, if the receiver found that
/// it reads such payload faster. Chosen: shorter payload is in the reader's cache before the fence
/// of such stores is done.
const NON_TEMPORAL_BYTES: usize = 6 * 1024;

/// The writing end of a lane, in the sender's process.
#[derive(Debug)]
pub struct Producer {
    pub(super) lane: Lane,
    cursor: Cursor,
    produced: u64,
    /// Cells the consumer had taken when we last looked.
    pub(super) consumed: u64,
    area: DataArea,
}

impl Producer {
    /// The writing end of the lane of `slot` in a remote's region. Only for the process that
    /// claimed the slot. None if the slot is out of range. Setup.
    pub fn attach(region: &Mapping, slot: usize) -> Option<Self> {
        Lane::in_region(region, slot).map(Self::over)
    }

    pub(super) fn over(lane: Lane) -> Self {
        Self {
            lane,
            cursor: Cursor::new(),
            produced: 0,
            consumed: 0,
            area: DataArea::new(),
        }
    }

    /// Whether a cell is known to be free without reading the consumer's count. Fast path.
    #[inline(always)]
    pub fn knows_of_room(&self) -> bool {
        self.produced - self.consumed < LANE_CELLS as u64
    }

    /// Publishes a message whose payload fits beside tag and data: one cache line in all. Fast
    /// path.
    ///
    /// # Errors
    /// [`Full`].
    ///
    /// # Panics
    /// If the payload is longer than [`CELL_PAYLOAD_BYTES`].
    #[inline(always)]
    pub fn push_inline(
        &mut self,
        head: Head,
        tag: u64,
        data: u64,
        payload: &UserBuffer,
    ) -> Result<(), Full> {
        assert!(
            payload.length_bytes() <= CELL_PAYLOAD_BYTES,
            "payload does not fit a cell"
        );
        self.make_room(1)?;
        self.lane.cell(self.cursor.index()).words.with_mut(|words| {
            // SAFETY: the consumer does not read this cell until its mark is published below, and
            // it has taken what was here before (make_room); the words are ours to write.
            let mut target = unsafe {
                let words = words.cast::<u64>();
                words.write(tag);
                words.add(1).write(data);
                BytesViewMut::from_raw(words.add(2).cast(), CELL_PAYLOAD_BYTES)
            };
            payload.drain(0, &mut target);
        });
        self.publish(head, 1);
        Ok(())
    }

    /// As [`Self::push_inline`], for payload that goes on in the following cells, without a gap.
    /// Fast path.
    ///
    /// # Errors
    /// [`Full`] if there is no room before the lane's last cell, or if the payload cannot lie in
    /// cells, since a part of it looks like a mark of the next lap. The data area may still have
    /// room.
    ///
    /// # Panics
    /// If the payload is longer than [`INLINE_PAYLOAD_BYTES`].
    #[inline]
    pub fn push_run(
        &mut self,
        head: Head,
        tag: u64,
        data: u64,
        payload: &UserBuffer,
    ) -> Result<(), Full> {
        let length_bytes = payload.length_bytes();
        assert!(
            length_bytes <= INLINE_PAYLOAD_BYTES,
            "payload does not fit a run of cells"
        );
        let (next, cells) = (self.cursor.index(), cells_of(length_bytes));
        if next + cells > LANE_CELLS {
            return Err(Full);
        }
        self.make_room(cells)?;
        // SAFETY: the cells end with the lane's by the check above; as in push_inline, the consumer
        // reads none of them before the first one's mark is published, and has taken what was here.
        let target = unsafe { self.lane.inline_target(next, length_bytes) };
        let (mut first, mut others) = target.split_at(CELL_PAYLOAD_BYTES);
        // The first cell is written last, in one go: the consumer reads it all the time, and would
        // take the cache line away between two writes.
        payload.drain(CELL_PAYLOAD_BYTES, &mut others);
        if self.misleads(cells) {
            return Err(Full);
        }
        payload.drain(0, &mut first);
        self.lane.cell(next).words.with_mut(|words| {
            // SAFETY: the consumer reads no cell before its mark is published, and has taken what
            // was here (make_room).
            unsafe {
                let words = words.cast::<u64>();
                words.write(tag);
                words.add(1).write(data);
            }
        });
        self.publish(head, cells);
        Ok(())
    }

    /// Whether payload in a cell of a run looks like a mark of the next lap, so that the consumer
    /// would take the cell for a new one when it comes there. If so, this overwrites the marks of
    /// all cells of the run but the first, so that they look old in this lap too.
    #[inline(always)]
    fn misleads(&self, cells: usize) -> bool {
        let soon = next_lap(self.cursor.lap());
        let mark = |index| &self.lane.cell(index).mark;
        let followers = self.cursor.index() + 1..self.cursor.index() + cells;
        if !followers
            .clone()
            .any(|index| lap_of(mark(index).load(Ordering::Relaxed)) == soon)
        {
            return false;
        }
        for index in followers {
            mark(index).store(0, Ordering::Relaxed);
        }
        true
    }

    /// Publishes a cell of plain words. Fast path.
    ///
    /// # Errors
    /// [`Full`].
    #[inline(always)]
    pub fn push_words(&mut self, head: Head, words: [u64; CELL_WORDS]) -> Result<(), Full> {
        self.make_room(1)?;
        self.publish_words(head, words);
        Ok(())
    }

    /// Publishes a cell with these `bytes` of `payload` in the data area. The third word of the
    /// cell names them, `words` are the others: tag, data, then three for the caller's use.
    ///
    /// # Errors
    /// [`Full`] if there is no room for the cell or for its data in one stretch.
    #[inline]
    pub fn push_data(
        &mut self,
        head: Head,
        words: [u64; 5],
        payload: &UserBuffer,
        bytes: Range<usize>,
    ) -> Result<(), Full> {
        let (offset_bytes, length_bytes) = (bytes.start, bytes.len());
        self.make_room(1)?;
        let start = self.make_data_room(length_bytes)?;
        // The receiver has found out whether it reads long payload faster so.
        let wants_non_temporal = || self.lane.control().non_temporal.load(Ordering::Relaxed) != 0;
        // SAFETY: make_data_room gave a stretch inside the area that no cell in flight refers to.
        let mut target = unsafe { BytesViewMut::from_raw(self.lane.data.add(start), length_bytes) };
        let copied = if length_bytes >= NON_TEMPORAL_BYTES && wants_non_temporal() {
            payload.drain_non_temporal(offset_bytes, &mut target)
        } else {
            payload.drain(offset_bytes, &mut target)
        };
        debug_assert_eq!(copied, length_bytes);
        crash_point!(11, "push: data is copied, its cell not written");
        let [tag, data, fourth, fifth, sixth] = words;
        let place = (start as u64) << 32 | length_bytes as u64;
        self.publish_words(head, [tag, data, place, fourth, fifth, sixth, 0]);
        Ok(())
    }

    /// As [`Self::push_data`], in a chunk of ours, which goes to the receiver with the message.
    /// Fast path.
    ///
    /// # Errors
    /// [`Full`] if there is no room for the cell; the chunk is still ours.
    #[inline]
    pub fn push_chunk(
        &mut self,
        head: Head,
        words: [u64; 5],
        mut chunk: OwnChunk<'_>,
        payload: &UserBuffer,
        bytes: Range<usize>,
    ) -> Result<(), Full> {
        let (offset_bytes, length_bytes) = (bytes.start, bytes.len());
        self.make_room(1)?;
        let (mut target, _) = chunk.bytes().split_at(length_bytes);
        let copied = payload.drain(offset_bytes, &mut target);
        debug_assert_eq!(copied, length_bytes);
        crash_point!(50, "push: a chunk is filled, its cell not written");
        let [tag, data, fourth, fifth, sixth] = words;
        let place = chunk.give(length_bytes).pack();
        self.publish_words(head, [tag, data, place, fourth, fifth, sixth, 0]);
        Ok(())
    }

    /// Whether the receiver polls this lane; if not, ring its doorbell after a push. Fast path.
    #[inline(always)]
    pub fn is_polled(&self) -> bool {
        self.lane.control().polled.load(Ordering::Relaxed) != 0
    }

    /// Whether there is room now for this many cells with this much payload in all, wherever the
    /// payload goes. Reads a shared line: slow path.
    pub fn has_room(&mut self, cells: usize, payload_bytes: usize) -> bool {
        self.look();
        self.produced - self.consumed + cells as u64 <= LANE_CELLS as u64
            && self.area.has_room(payload_bytes)
    }

    /// Whether the receiver has taken everything that was pushed.
    #[cfg(test)]
    pub(super) fn is_drained(&mut self) -> bool {
        self.look();
        self.consumed == self.produced
    }

    /// What the receiver last wrote by [`Consumer::set_advice`](super::Consumer::set_advice).
    /// Reads a shared line: slow path.
    pub fn advice(&self) -> u64 {
        self.lane.control().advice.load(Ordering::Relaxed)
    }

    /// Writes the words of the next cell and publishes it. There must be room for it.
    #[inline(always)]
    fn publish_words(&mut self, head: Head, words: [u64; CELL_WORDS]) {
        let cell = self.lane.cell(self.cursor.index());
        // SAFETY: the consumer reads no cell before its mark is published, and has taken what was
        // here (make_room).
        cell.words.with_mut(|cell| unsafe { cell.write(words) });
        self.publish(head, 1);
    }

    /// Publishes a message of this many cells, which must end with the lane's last cell at most.
    #[inline(always)]
    fn publish(&mut self, head: Head, cells: usize) {
        // Read once: the compiler cannot know that a store to the cell leaves the cursor alone.
        let next = self.cursor.index();
        // The consumer counts whole messages, so its count always ends at the last cell of one.
        self.area.end_message(next + cells - 1);
        crash_point!(10, "push: a cell is written, not published");
        // Pairs with the load in `Consumer::peek`: who sees the mark sees words and data.
        self.lane
            .cell(next)
            .mark
            .store(head.pack(self.cursor.lap()), Ordering::Release);
        crash_point!(13, "push: the cell is published, the bell not rung");
        self.produced += cells as u64;
        self.cursor.advance_to(next + cells);
    }

    #[inline(always)]
    fn make_room(&mut self, cells: usize) -> Result<(), Full> {
        let most = (LANE_CELLS - cells) as u64;
        if self.produced - self.consumed <= most {
            return Ok(());
        }
        self.look();
        if self.produced - self.consumed <= most {
            Ok(())
        } else {
            Err(Full)
        }
    }

    /// Reads how far the consumer is. The consumer's count only grows, and never beyond what was
    /// produced. Any other count is the remote's fault and is ignored: the lane then stays full,
    /// and no byte of ours depends on the count.
    #[inline(never)]
    pub(super) fn look(&mut self) {
        // Pairs with the store in `Consumer::publish`: the consumer has copied all it counts as
        // taken.
        let consumed = self.lane.control().consumed.load(Ordering::Acquire);
        if consumed <= self.consumed || consumed > self.produced {
            return;
        }
        self.consumed = consumed;
        if consumed == self.produced {
            self.area.free_all();
        } else {
            let last = (consumed - 1) % LANE_CELLS as u64;
            self.area.free_to(last as usize);
        }
    }

    /// Lets a busy lane use its whole data area, from the next time that it is empty. A line is
    /// then used again so late that it has left both processors' own caches for the cache that they
    /// share. Costs the receiver up to a MiB of memory.
    pub fn widen(&mut self) {
        self.area.widen();
    }

    /// Reserves `length_bytes` in one stretch of the data area; answers its offset.
    #[inline]
    fn make_data_room(&mut self, length_bytes: usize) -> Result<usize, Full> {
        let length_bytes = length_bytes.next_multiple_of(64);
        if self.area.reaches_next_page(length_bytes) {
            self.look();
        }
        if let Some(offset) = self.area.reserve(length_bytes) {
            return Ok(offset);
        }
        // The consumer may have gone on since we last read its count.
        self.look();
        self.area.reserve(length_bytes).ok_or(Full)
    }
}
