// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where one end of a lane stands: at which cell, and in which lap (docs/shm-layout.md, clause 4).
//! The producer and the consumer each have one.

use crate::cell::next_lap;
use crate::layout::LANE_CELLS;

/// The next cell to be written or read.
#[derive(Debug)]
pub(super) struct Cursor {
    index: usize,
    lap: u16,
}

impl Cursor {
    /// At the first cell of a lane that nobody has used.
    pub(super) fn new() -> Self {
        Self { index: 0, lap: 1 }
    }

    /// Behind so many cells.
    pub(super) fn behind(cells: u64) -> Self {
        let in_lap = LANE_CELLS as u64;
        // Laps are numbered from 1 to 65,535, and again.
        let lap = cells / in_lap % u64::from(u16::MAX) + 1;
        Self {
            index: (cells % in_lap) as usize,
            lap: lap as u16,
        }
    }

    /// The cell, below [`LANE_CELLS`].
    #[inline(always)]
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// The lap, which the mark of a new cell there names.
    #[inline(always)]
    pub(super) fn lap(&self) -> u16 {
        self.lap
    }

    /// Goes on to a cell of this lap, or to [`LANE_CELLS`]: that is the first cell of the next lap.
    #[inline(always)]
    pub(super) fn advance_to(&mut self, index: usize) {
        self.index = index;
        if index == LANE_CELLS {
            self.start_lap();
        }
    }

    #[cold]
    fn start_lap(&mut self) {
        self.index = 0;
        self.lap = next_lap(self.lap);
    }
}
