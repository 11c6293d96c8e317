// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The queue of one sender in one receiver's region: cells in order, and a data area for longer payload
//! (docs/shm-layout.md, clauses 3 and 4). The [`Producer`] is driven by shm's sends, the [`Consumer`] by its
//! progress; one of each for every lane, in two processes that trust each other with nothing but bytes.

use weft_memory::{BytesView, BytesViewMut, Mapping, SharedLayout, UserBuffer};

use crate::cell::{CELL_PAYLOAD_BYTES, CELL_WORDS, Cell, Head, lap_of, next_lap};
use crate::layout::{LANE_CELLS, LANE_CONTROL_BYTES, LANE_DATA_BYTES, PAGE_BYTES, lane_offset};
use crate::sync::{AtomicU64, Ordering};

/// Cells the consumer takes before it tells the producer. Chosen: a quarter lane, so that the producer never
/// runs dry while the line with the count changes hands rarely.
const PUBLISH_CELLS: u64 = (LANE_CELLS as u64).div_ceil(4);

/// Data bytes the consumer takes before it tells the producer. Chosen: a quarter of the area.
const PUBLISH_BYTES: u32 = LANE_DATA_BYTES as u32 / 4;

/// Data bytes after which the producer looks whether the lane has run empty, to start over at its first bytes:
/// an idle lane then keeps to few pages, and a busy one to few cache lines. Chosen: one page.
const REWIND_BYTES: usize = PAGE_BYTES;

/// The words beside the cells, all written by the consumer; each in a pair of lines of its own.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct LaneControl {
    /// Cells taken so far, since the slot was claimed.
    consumed: AtomicU64,
    #[cfg(not(loom))]
    reserved: [AtomicU64; 15],
    /// 1 while the consumer polls the lane; 0 means that the producer must ring.
    polled: AtomicU64,
    #[cfg(not(loom))]
    reserved_too: [AtomicU64; 15],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<LaneControl>() == LANE_CONTROL_BYTES);
#[cfg(not(loom))]
const _: () = assert!(
    LANE_CONTROL_BYTES + LANE_CELLS * size_of::<Cell>() <= PAGE_BYTES,
    "control and cells fill one page"
);

// SAFETY: repr(C), all fields atomic words; any bytes are valid.
unsafe impl SharedLayout for LaneControl {}

/// The parts of one lane in this process, and what keeps them mapped.
#[derive(Debug)]
struct Lane {
    control: *const LaneControl,
    cells: *const Cell,
    data: *mut u8,
    keep: Option<Mapping>,
}

// SAFETY: the pointers lead into a mapping that belongs to the process, not to a thread; all shared words are
// atomic, and payload is only copied.
unsafe impl Send for Lane {}

impl Lane {
    /// The lane of `slot`; the slot is below the number of slots by the caller's check.
    fn in_region(region: &Mapping, slot: usize) -> Option<Self> {
        let base = lane_offset(slot);
        Some(Self {
            control: region.values::<LaneControl>(base, 1).ok()?.as_ptr(),
            cells: region
                .values::<Cell>(base + LANE_CONTROL_BYTES, LANE_CELLS)
                .ok()?
                .as_ptr(),
            data: region.bytes(base + PAGE_BYTES, LANE_DATA_BYTES).ok()?,
            keep: Some(region.clone()),
        })
    }

    #[inline(always)]
    fn control(&self) -> &LaneControl {
        // SAFETY: made from a checked reference into a mapping that `keep` holds (or a test's heap).
        unsafe { &*self.control }
    }

    #[inline(always)]
    fn cell(&self, index: usize) -> &Cell {
        debug_assert!(index < LANE_CELLS);
        // SAFETY: as above; the index is a cursor that wraps at LANE_CELLS.
        unsafe { &*self.cells.add(index) }
    }

    /// Starts over for a new sender. Only while no producer is attached.
    fn reset(&self) {
        for index in 0..LANE_CELLS {
            self.cell(index).mark.store(0, Ordering::Relaxed);
        }
        self.control().polled.store(0, Ordering::Relaxed);
        self.control().consumed.store(0, Ordering::Release);
    }
}

/// The lane has no room; the consumer has to take something first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// The writing end, in the sender's process.
#[derive(Debug)]
pub struct Producer {
    lane: Lane,
    next: usize,
    lap: u16,
    produced: u64,
    /// Cells the consumer had taken when we last looked.
    consumed: u64,
    /// End and start of the data in flight, as bytes since the last rewind.
    data_head: usize,
    data_tail: usize,
    /// `data_head` after each cell in flight.
    data_ends: Box<[usize; LANE_CELLS]>,
}

impl Producer {
    /// The writing end of the lane of `slot` in a remote's region. Only for the process that claimed the slot.
    /// None if the slot is out of range. Setup.
    pub fn attach(region: &Mapping, slot: usize) -> Option<Self> {
        Lane::in_region(region, slot).map(Self::over)
    }

    fn over(lane: Lane) -> Self {
        Self {
            lane,
            next: 0,
            lap: 1,
            produced: 0,
            consumed: 0,
            data_head: 0,
            data_tail: 0,
            data_ends: Box::new([0; LANE_CELLS]),
        }
    }

    /// Publishes a message whose payload fits beside tag and data: one cache line in all. Fast path.
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
        self.make_room()?;
        self.lane.cell(self.next).words.with_mut(|words| {
            // SAFETY: the consumer does not read this cell until its mark is published below, and it has
            // taken what was here before (make_room); the words are ours to write.
            let mut target = unsafe {
                let words = words.cast::<u64>();
                words.write(tag);
                words.add(1).write(data);
                BytesViewMut::from_raw(words.add(2).cast(), CELL_PAYLOAD_BYTES)
            };
            payload.drain(0, &mut target);
        });
        self.publish(head);
        Ok(())
    }

    /// Publishes a cell of plain words. Fast path.
    ///
    /// # Errors
    /// [`Full`].
    #[inline(always)]
    pub fn push_words(&mut self, head: Head, words: [u64; CELL_WORDS]) -> Result<(), Full> {
        self.make_room()?;
        // SAFETY: as in push_inline.
        self.lane
            .cell(self.next)
            .words
            .with_mut(|cell| unsafe { cell.write(words) });
        self.publish(head);
        Ok(())
    }

    /// Publishes a cell with `length_bytes` bytes of `payload` at `offset_bytes` in the data area. The third
    /// word of the cell names them, `words` are the others: tag, data, then two for the caller's use.
    ///
    /// # Errors
    /// [`Full`] if there is no room for the cell or for its data in one stretch.
    #[inline]
    pub fn push_data(
        &mut self,
        head: Head,
        words: [u64; 4],
        payload: &UserBuffer,
        (offset_bytes, length_bytes): (usize, usize),
    ) -> Result<(), Full> {
        self.make_room()?;
        let start = self.make_data_room(length_bytes)?;
        // SAFETY: make_data_room gave a stretch inside the area that no cell in flight refers to.
        let mut target = unsafe { BytesViewMut::from_raw(self.lane.data.add(start), length_bytes) };
        let copied = payload.drain(offset_bytes, &mut target);
        debug_assert_eq!(copied, length_bytes);
        let [tag, data, fourth, fifth] = words;
        let place = (start as u64) << 32 | length_bytes as u64;
        // SAFETY: as in push_inline.
        self.lane
            .cell(self.next)
            .words
            .with_mut(|cell| unsafe { cell.write([tag, data, place, fourth, fifth, 0, 0]) });
        self.publish(head);
        Ok(())
    }

    /// Whether the receiver polls this lane; if not, ring its doorbell after a push. Fast path.
    #[inline(always)]
    pub fn is_polled(&self) -> bool {
        self.lane.control().polled.load(Ordering::Relaxed) != 0
    }

    /// Whether the receiver has taken everything that was pushed. Reads a shared line: slow path.
    pub fn is_drained(&mut self) -> bool {
        self.look();
        self.consumed == self.produced
    }

    #[inline(always)]
    fn publish(&mut self, head: Head) {
        self.data_ends[self.next] = self.data_head;
        // Pairs with the load in `Consumer::peek`: who sees the mark sees words and data.
        self.lane
            .cell(self.next)
            .mark
            .store(head.pack(self.lap), Ordering::Release);
        self.produced += 1;
        self.next += 1;
        if self.next == LANE_CELLS {
            self.next = 0;
            self.lap = next_lap(self.lap);
        }
    }

    #[inline(always)]
    fn make_room(&mut self) -> Result<(), Full> {
        if self.produced - self.consumed < LANE_CELLS as u64 {
            return Ok(());
        }
        self.look();
        if self.produced - self.consumed < LANE_CELLS as u64 {
            Ok(())
        } else {
            Err(Full)
        }
    }

    /// Reads how far the consumer is. A count that cannot be (it only ever grows, up to what was produced)
    /// is a remote's fault and is ignored: the lane then stays full, and no byte of ours depends on it.
    #[inline(never)]
    fn look(&mut self) {
        // Pairs with the store in `Consumer::publish`: the consumer has copied all it counts as taken.
        let consumed = self.lane.control().consumed.load(Ordering::Acquire);
        if consumed <= self.consumed || consumed > self.produced {
            return;
        }
        self.consumed = consumed;
        if consumed == self.produced {
            (self.data_head, self.data_tail) = (0, 0);
        } else {
            self.data_tail = self.data_ends[((consumed - 1) % LANE_CELLS as u64) as usize];
        }
    }

    /// Reserves `length_bytes` in one stretch of the data area; answers its offset.
    #[inline]
    fn make_data_room(&mut self, length_bytes: usize) -> Result<usize, Full> {
        let length_bytes = length_bytes.next_multiple_of(64);
        if self.data_head / REWIND_BYTES != (self.data_head + length_bytes) / REWIND_BYTES {
            self.look();
        }
        self.reserve(length_bytes).or_else(|Full| {
            // What we last saw of the consumer may be old.
            self.look();
            self.reserve(length_bytes)
        })
    }

    #[inline(always)]
    fn reserve(&mut self, length_bytes: usize) -> Result<usize, Full> {
        let at = self.data_head % LANE_DATA_BYTES;
        let skip = if at + length_bytes > LANE_DATA_BYTES {
            LANE_DATA_BYTES - at
        } else {
            0
        };
        if self.data_head + skip + length_bytes - self.data_tail > LANE_DATA_BYTES {
            return Err(Full);
        }
        self.data_head += skip + length_bytes;
        Ok((at + skip) % LANE_DATA_BYTES)
    }
}

/// The reading end, in the receiver's process.
#[derive(Debug)]
pub struct Consumer {
    lane: Lane,
    next: usize,
    lap: u16,
    consumed: u64,
    published: u64,
    bytes_unpublished: u32,
}

/// One message at the front of a lane, as its sender claims it. Each word is to be read once: a remote that
/// writes on meanwhile would make a second look see something else.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// Kind, flags and length.
    pub head: Head,
    consumer: &'a Consumer,
}

impl Arrival<'_> {
    /// One word of the cell; for inline messages only the first two are words.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        assert!(index < CELL_WORDS, "a cell has {CELL_WORDS} words");
        let cell = self.consumer.lane.cell(self.consumer.next);
        // SAFETY: the index was just checked; the mark said that the words are complete, and a remote that
        // writes them meanwhile only changes its own message.
        cell.words
            .with(|words| unsafe { words.cast::<u64>().add(index).read() })
    }

    /// All words of the cell, copied out.
    #[inline(always)]
    pub fn words(&self) -> [u64; CELL_WORDS] {
        let cell = self.consumer.lane.cell(self.consumer.next);
        // SAFETY: as in `word`.
        cell.words
            .with(|words| unsafe { words.cast::<[u64; CELL_WORDS]>().read() })
    }

    /// The payload inside the cell; None if the head claims more than a cell holds.
    #[inline(always)]
    pub fn inline_payload(&self) -> Option<BytesView<'_>> {
        let length_bytes = self.head.length_bytes as usize;
        if length_bytes > CELL_PAYLOAD_BYTES {
            return None;
        }
        let cell = self.consumer.lane.cell(self.consumer.next);
        // SAFETY: the payload words lie inside the mapped cell, which the view's borrow keeps in place.
        Some(cell.words.with(|words| unsafe {
            BytesView::from_raw(words.cast::<u64>().add(2).cast(), length_bytes)
        }))
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
    /// The reading end of the lane of `slot` in one's own region, started over. None if the slot is out of
    /// range. Setup.
    pub fn attach(region: &Mapping, slot: usize) -> Option<Self> {
        Lane::in_region(region, slot).map(Self::over)
    }

    fn over(lane: Lane) -> Self {
        Self {
            lane,
            next: 0,
            lap: 1,
            consumed: 0,
            published: 0,
            bytes_unpublished: 0,
        }
    }

    /// The message at the front, if there is one. One load when there is none. Fast path.
    #[inline(always)]
    pub fn peek(&self) -> Option<Arrival<'_>> {
        let cell = self.lane.cell(self.next);
        // Pairs with the store in `Producer::publish`.
        let mark = cell.mark.load(Ordering::Acquire);
        if lap_of(mark) != self.lap {
            return None;
        }
        Some(Arrival {
            head: Head::unpack(mark),
            consumer: self,
        })
    }

    /// Whether there is a message at the front. One load. Fast path.
    #[inline(always)]
    pub fn has_message(&self) -> bool {
        lap_of(self.lane.cell(self.next).mark.load(Ordering::Relaxed)) == self.lap
    }

    /// Lets go of the message at the front; `data_bytes` of the data area went with it. Fast path.
    #[inline(always)]
    pub fn advance(&mut self, data_bytes: u32) {
        self.consumed += 1;
        self.bytes_unpublished += data_bytes;
        self.next += 1;
        if self.next == LANE_CELLS {
            self.next = 0;
            self.lap = next_lap(self.lap);
        }
        if self.consumed - self.published >= PUBLISH_CELLS
            || self.bytes_unpublished >= PUBLISH_BYTES
        {
            self.publish();
        }
    }

    /// Tells the producer how far we are, if it does not know; called when the lane has run empty. Fast path.
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
        // Pairs with the load in `Producer::look`: our copies come before it.
        self.lane
            .control()
            .consumed
            .store(self.consumed, Ordering::Release);
    }

    /// Says whether we poll this lane, so that the producer knows whether to ring.
    ///
    /// After `set_polled(false)` a producer that had already looked may push once more without ringing: look
    /// at the lane again a little later, or put a barrier on every processor in between.
    pub fn set_polled(&mut self, polled: bool) {
        self.lane
            .control()
            .polled
            .store(u64::from(polled), Ordering::Relaxed);
    }

    /// Makes the lane new for the next sender. Only after its slot's claimant is known to be gone.
    pub fn reset(&mut self) {
        self.lane.reset();
        *self = Self::over(Lane {
            control: self.lane.control,
            cells: self.lane.cells,
            data: self.lane.data,
            keep: self.lane.keep.take(),
        });
    }
}

#[cfg(test)]
mod tests;
