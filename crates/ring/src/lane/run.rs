// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Payload of inline messages: in the cell after tag and data, and on through the cells that
//! follow, as one stretch of lines (docs/shm-layout.md, clause 4). Called by the producer and the
//! consumer.
//!
//! Those cells have no marks of their own while they hold payload: the consumer steps over them
//! with the message.

use weft_memory::{BytesView, BytesViewMut};

use super::Lane;
#[cfg(not(loom))]
use crate::cell::CELL_BYTES;
use crate::cell::{CELL_PAYLOAD_BYTES, cells_of};
use crate::layout::LANE_CELLS;

#[cfg(not(loom))]
impl Lane {
    #[inline(always)]
    fn inline_bytes(&self, index: usize) -> *mut u8 {
        let cell = self.cells.wrapping_add(index).cast_mut().cast::<u8>();
        cell.wrapping_add(CELL_BYTES - CELL_PAYLOAD_BYTES)
    }

    /// Where the payload goes of a message that begins in a cell.
    ///
    /// # Safety
    /// The cells of the message are the producer's to write, and none lies behind the lane's last
    /// one.
    #[inline(always)]
    pub(super) unsafe fn inline_target(
        &self,
        index: usize,
        length_bytes: usize,
    ) -> BytesViewMut<'_> {
        debug_assert!(index + cells_of(length_bytes) <= LANE_CELLS);
        // SAFETY: the contract; payload ends before its last cell does, and every byte of a cell
        // may be written through a shared reference.
        unsafe { BytesViewMut::from_raw(self.inline_bytes(index), length_bytes) }
    }

    /// The payload of a message that begins in a cell.
    ///
    /// # Safety
    /// The message is published and not let go, and none of its cells lies behind the lane's last
    /// one.
    #[inline(always)]
    pub(super) unsafe fn inline_view(&self, index: usize, length_bytes: usize) -> BytesView<'_> {
        debug_assert!(index + cells_of(length_bytes) <= LANE_CELLS);
        // SAFETY: the contract; payload ends before its last cell does, and nobody writes a cell
        // that is published and not let go.
        unsafe { BytesView::from_raw(self.inline_bytes(index), length_bytes) }
    }
}

/// In models a cell is no line: what does not fit the first one is not copied, and the others are
/// touched, so that loom sees whoever touches them out of turn.
#[cfg(loom)]
impl Lane {
    pub(super) unsafe fn inline_target(
        &self,
        index: usize,
        length_bytes: usize,
    ) -> BytesViewMut<'_> {
        for follower in index + 1..index + cells_of(length_bytes) {
            self.cell(follower).words.with_mut(|_| ());
        }
        let room_bytes = length_bytes.min(CELL_PAYLOAD_BYTES);
        self.cell(index).words.with_mut(|words| {
            // SAFETY: the words after tag and data are the payload's; the producer's to write
            // (contract).
            unsafe { BytesViewMut::from_raw(words.cast::<u64>().add(2).cast(), room_bytes) }
        })
    }

    pub(super) unsafe fn inline_view(&self, index: usize, length_bytes: usize) -> BytesView<'_> {
        for follower in index + 1..index + cells_of(length_bytes) {
            self.cell(follower).words.with(|_| ());
        }
        let room_bytes = length_bytes.min(CELL_PAYLOAD_BYTES);
        debug_assert!(index + cells_of(length_bytes) <= LANE_CELLS);
        self.cell(index).words.with(|words| {
            // SAFETY: the words after tag and data are the payload's; the consumer's to read
            // (contract).
            unsafe { BytesView::from_raw(words.cast::<u64>().add(2).cast(), room_bytes) }
        })
    }
}
