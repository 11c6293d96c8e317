// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The queue of one sender in one receiver's region: cells in order, and a data area for longer
//! payload (docs/shm-layout.md, clauses 3 and 4). The [`Producer`] is driven by shm's sends, the
//! [`Consumer`] by its progress; one of each for every lane, in two processes that trust each other
//! with nothing but bytes.

use weft_memory::{Mapping, SharedLayout};

use crate::cell::Cell;
use crate::layout::{LANE_CELLS, LANE_CONTROL_BYTES, LANE_DATA_BYTES, PAGE_BYTES, lane_offset};
use crate::sync::{AtomicU64, Ordering};

mod consumer;
mod cursor;
mod data_area;
mod producer;
mod run;

pub use consumer::{Arrival, Consumer};
pub use producer::Producer;

/// Lines after the front that a look at a lane fetches. Measured: one is worth less for 128 bytes,
/// four cost some at 8 (docs/fast-path.md).
#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
const LINES_FETCHED: usize = 2;

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
    reserved_too: [AtomicU64; 13],
    /// How both processes are to copy long messages while traffic is bidirectional; 0 if the
    /// consumer does not say.
    advice: AtomicU64,
    /// 1 if the consumer reads long payload faster after non-temporal stores.
    non_temporal: AtomicU64,
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

// SAFETY: the pointers lead into a mapping that belongs to the process, not to a thread; all shared
// words are atomic, and payload is only copied.
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

    /// The same lane once more.
    fn again(&self) -> Self {
        Self {
            keep: self.keep.clone(),
            ..*self
        }
    }

    #[inline(always)]
    fn control(&self) -> &LaneControl {
        // SAFETY: made from a checked reference into a mapping that `keep` holds (or a test's
        // heap).
        unsafe { &*self.control }
    }

    #[inline(always)]
    fn cell(&self, index: usize) -> &Cell {
        debug_assert!(index < LANE_CELLS);
        // SAFETY: the cells lie in the mapping that `keep` holds (or a test's heap); the index is a
        // cursor that wraps at LANE_CELLS.
        unsafe { &*self.cells.add(index) }
    }

    /// Has the processor fetch the lines after a cell. Behind the last one lies the data area,
    /// which does no harm. Fast path.
    #[inline(always)]
    fn fetch_after(&self, index: usize) {
        #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
        for ahead in 1..=LINES_FETCHED {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let line = self.cells.wrapping_add(index + ahead).cast();
            // SAFETY: a prefetch changes nothing that a program can see, and does not fault,
            // whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
        let _ = index;
    }

    /// Starts over for a new sender. Only while no producer is attached.
    fn reset(&self) {
        for index in 0..LANE_CELLS {
            self.cell(index).mark.store(0, Ordering::Relaxed);
        }
        self.control().polled.store(0, Ordering::Relaxed);
        self.control().non_temporal.store(0, Ordering::Relaxed);
        self.control().advice.store(0, Ordering::Relaxed);
        // Without release: the slot is freed with it, after this, and claimed with acquire.
        self.control().consumed.store(0, Ordering::Relaxed);
    }
}

/// The lane has no room; the consumer has to take something first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

#[cfg(test)]
mod tests;

#[cfg(all(test, loom))]
mod models;
