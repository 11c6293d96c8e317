// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which bytes of a lane's data area are in flight (docs/shm-layout.md, clause 4). The producer's
//! own account; the consumer learns where payload lies from the cells.

use weft_os::crash_point;

use crate::layout::{LANE_CELLS, LANE_DATA_BYTES, LANE_NARROW_BYTES, PAGE_BYTES};

/// Data bytes after which the producer looks whether the lane has run empty, to start over at its
/// first bytes: an idle lane then keeps to few pages, and a busy one to few cache lines. Chosen:
/// one page.
pub(super) const REWIND_BYTES: usize = PAGE_BYTES;

/// See the module.
#[derive(Debug)]
pub(super) struct DataArea {
    /// End and start of what is in flight, as bytes since the last rewind.
    head: usize,
    tail: usize,
    /// How much of the area is in use; wide areas never rewind.
    used_bytes: usize,
    /// The area shall become wide when it next runs empty.
    widening: bool,
    /// `head` after the message that ended with each cell.
    ends: Box<[usize; LANE_CELLS]>,
}

impl DataArea {
    /// With nothing in flight.
    pub(super) fn new() -> Self {
        Self {
            head: 0,
            tail: 0,
            used_bytes: LANE_NARROW_BYTES,
            widening: false,
            ends: Box::new([0; LANE_CELLS]),
        }
    }

    /// Whether so many bytes more reach the next page: time to see whether the lane is empty.
    #[inline(always)]
    pub(super) fn reaches_next_page(&self, length_bytes: usize) -> bool {
        self.head / REWIND_BYTES != (self.head + length_bytes) / REWIND_BYTES
    }

    /// Reserves `length_bytes` in one stretch; answers its offset, `None` if there is no room.
    #[inline(always)]
    pub(super) fn reserve(&mut self, length_bytes: usize) -> Option<usize> {
        let at = self.head % self.used_bytes;
        let skip = if at + length_bytes > self.used_bytes {
            self.used_bytes - at
        } else {
            0
        };
        if self.head + skip + length_bytes - self.tail > self.used_bytes {
            return None;
        }
        self.head += skip + length_bytes;
        Some((at + skip) % self.used_bytes)
    }

    /// All that was reserved since the last message belongs to the one that ends with this cell.
    #[inline(always)]
    pub(super) fn end_message(&mut self, cell: usize) {
        self.ends[cell] = self.head;
    }

    /// Whether so much payload finds room, wherever it goes: what does not fit before the end of
    /// the area leaves that end unused.
    pub(super) fn has_room(&self, payload_bytes: usize) -> bool {
        self.head - self.tail + 2 * payload_bytes <= self.used_bytes
    }

    /// The consumer has taken everything up to the message that ended with this cell. If none did,
    /// its count ends inside a message: a remote's fault, and names what an older message left.
    pub(super) fn free_to(&mut self, cell: usize) {
        self.tail = self.ends[cell].clamp(self.tail, self.head);
    }

    /// The consumer has taken everything.
    pub(super) fn free_all(&mut self) {
        self.tail = self.head;
        if self.widening {
            (self.widening, self.used_bytes) = (false, LANE_DATA_BYTES);
            crash_point!(12, "widen: the lane goes round its whole area");
        }
        if self.used_bytes == LANE_NARROW_BYTES {
            (self.head, self.tail) = (0, 0);
        }
    }

    /// Uses the whole area, from the next time it runs empty.
    pub(super) fn widen(&mut self) {
        self.widening = self.used_bytes == LANE_NARROW_BYTES;
    }
}
