// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One cache line of a lane: header and short payload together (docs/shm-layout.md, clause 4).
//!
//! Written by [`crate::Producer`], read by [`crate::Consumer`]. The first word publishes the rest:
//! it holds the lap of the lane in which it was written, so a reader knows a new cell from an old
//! one by looking at one word.

use weft_memory::SharedLayout;

use crate::sync::{AtomicU64, UnsafeCell};

/// Words after the first one.
pub const CELL_WORDS: usize = 7;

/// Payload bytes that fit beside tag and completion data.
pub const CELL_PAYLOAD_BYTES: usize = (CELL_WORDS - 2) * 8;

/// Longest payload inside cells: beside tag and data, then in whole cells that follow. Measured:
/// with more of them the data area is as fast; docs/lab/2026-11-22-runs-of-cells.md.
#[cfg(not(loom))]
pub const INLINE_PAYLOAD_BYTES: usize = CELL_PAYLOAD_BYTES + 4 * CELL_BYTES;
/// As far as a lane of a model reaches.
#[cfg(loom)]
pub const INLINE_PAYLOAD_BYTES: usize = CELL_PAYLOAD_BYTES + CELL_BYTES;

/// Bytes of a cell. Specified: a cache line.
pub(crate) const CELL_BYTES: usize = 64;

/// Cells that an inline payload takes.
#[inline(always)]
pub(crate) fn cells_of(length_bytes: usize) -> usize {
    (length_bytes + 2 * CELL_BYTES - 1 - CELL_PAYLOAD_BYTES) / CELL_BYTES
}

/// One line of a lane.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Cell {
    /// Lap (16 bits), kind (8), flags (8), length (32), from the top. Published last, with release.
    pub(crate) mark: AtomicU64,
    /// Tag, completion data, then payload or words, as the kind says.
    pub(crate) words: UnsafeCell<[u64; CELL_WORDS]>,
}

#[cfg(not(loom))]
const _: () = assert!(
    size_of::<Cell>() == CELL_BYTES,
    "header and short payload share one cache line"
);

// SAFETY: repr(C), an atomic and an UnsafeCell of plain words; any bytes are valid in both.
unsafe impl SharedLayout for Cell {}

/// What a cell says of its message. What kinds and flags mean is the transport's
/// (docs/shm-layout.md, clause 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// What the cell is.
    pub kind: u8,
    /// Options of that kind.
    pub flags: u8,
    /// Length of the message, at most 4 GiB - 1.
    pub length_bytes: u32,
}

impl Head {
    #[inline(always)]
    pub(crate) fn pack(self, lap: u16) -> u64 {
        u64::from(lap) << 48
            | u64::from(self.kind) << 40
            | u64::from(self.flags) << 32
            | u64::from(self.length_bytes)
    }

    #[inline(always)]
    pub(crate) fn unpack(mark: u64) -> Self {
        Self {
            kind: (mark >> 40) as u8,
            flags: (mark >> 32) as u8,
            length_bytes: mark as u32,
        }
    }
}

#[inline(always)]
pub(crate) fn lap_of(mark: u64) -> u16 {
    (mark >> 48) as u16
}

/// The lap after `lap`; never 0, since memory that was never written reads as lap 0.
#[inline(always)]
pub(crate) fn next_lap(lap: u16) -> u16 {
    if lap == u16::MAX { 1 } else { lap + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_survives_packing_and_the_lap_stands_apart() {
        let head = Head {
            kind: 0xAB,
            flags: 0xCD,
            length_bytes: 0xFEDC_BA98,
        };
        let mark = head.pack(0x1234);
        assert_eq!(Head::unpack(mark), head);
        assert_eq!(lap_of(mark), 0x1234);
    }

    #[test]
    fn payload_takes_the_cells_that_it_fills() {
        let cells = |length_bytes| cells_of(length_bytes);
        assert_eq!((cells(0), cells(1), cells(40)), (1, 1, 1));
        assert_eq!((cells(41), cells(104), cells(105)), (2, 2, 3));
    }

    #[test]
    fn laps_never_look_like_untouched_memory() {
        assert_eq!(next_lap(u16::MAX), 1);
        assert_eq!(next_lap(1), 2);
    }
}
