// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reduce and allreduce of long data (docs/collectives.md, clause 4.3): the data are cut into
//! chunks, each chunk into a slice for each rank, and each rank combines its slice. Called by
//! allreduce.rs.
//!
//! Each chunk takes two steps: what the ranks give of it, and their slices of the result. A rank
//! gives the next chunk before it waits for this one, and collects a chunk's result after it has
//! combined its slice of the next, so that the ranks seldom wait.

use crate::arithmetic::Reduction;
use crate::buffers::{Buffers, Receivers};
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::layout::{GRAIN_BYTES, STAGE_BYTES};
use crate::segment::Part;
use crate::wait::Wait;

/// How long data are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slices {
    ranks: usize,
    /// Bytes of a slice; fewer at the end of the data.
    slice_bytes: usize,
    length_bytes: usize,
}

impl Slices {
    /// Cuts `length_bytes`, at least 1, for so many ranks.
    pub(crate) fn new(ranks: usize, length_bytes: usize) -> Self {
        // A rank stages the slices of all others.
        let room_bytes = STAGE_BYTES / (ranks - 1).max(1) / GRAIN_BYTES * GRAIN_BYTES;
        let even_bytes = length_bytes.div_ceil(ranks).next_multiple_of(GRAIN_BYTES);
        Self {
            ranks,
            slice_bytes: room_bytes.min(even_bytes),
            length_bytes,
        }
    }

    fn chunks(self) -> usize {
        self.length_bytes.div_ceil(self.ranks * self.slice_bytes)
    }

    /// Where the slice of `rank` lies in the data.
    fn of(self, chunk: usize, rank: usize) -> Part {
        let offset_bytes = (chunk * self.ranks + rank) * self.slice_bytes;
        let offset_bytes = offset_bytes.min(self.length_bytes);
        let left_bytes = self.length_bytes - offset_bytes;
        Part {
            offset_bytes,
            length_bytes: self.slice_bytes.min(left_bytes),
        }
    }

    /// Where `giver` stages the slice of `rank`, another one.
    fn staged(self, chunk: usize, giver: usize, rank: usize) -> Part {
        let place = if rank < giver { rank } else { rank - 1 };
        Part {
            offset_bytes: place * self.slice_bytes,
            length_bytes: self.of(chunk, rank).length_bytes,
        }
    }
}

/// One call under way.
pub(crate) struct Sliced<'a> {
    pub(crate) exchange: &'a mut Exchange,
    pub(crate) wait: &'a mut dyn Wait,
    pub(crate) slices: Slices,
    pub(crate) reduction: Reduction,
}

impl Sliced<'_> {
    pub(crate) fn run(
        &mut self,
        buffers: &mut Buffers<'_>,
        receivers: Receivers,
    ) -> Result<(), Fault> {
        let chunks = self.slices.chunks();
        let mut given = self.give(buffers, 0)?;
        let mut earlier = None;
        for chunk in 0..chunks {
            let next = match chunk + 1 {
                next if next < chunks => Some(self.give(buffers, next)?),
                _ => None,
            };
            let combined = self.combine(buffers, chunk, given)?;
            if let Some(step) = earlier {
                self.collect(buffers, receivers, chunk - 1, step)?;
            }
            earlier = Some(combined);
            given = next.unwrap_or(given);
        }
        match earlier {
            Some(step) => {
                self.collect(buffers, receivers, chunks - 1, step)?;
                if receivers == Receivers::All {
                    // Each gave the last two chunks before it collected the last but one.
                    self.exchange.all_have_finished(step.saturating_sub(3));
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Stages what the other ranks combine of our data; answers in which step.
    fn give(&mut self, buffers: &Buffers<'_>, chunk: usize) -> Result<u64, Fault> {
        let step = self.exchange.next_step();
        self.exchange.open(self.wait, step)?;
        let giver = self.exchange.rank();
        for rank in self.exchange.others() {
            let slice = self.slices.of(chunk, rank);
            let data = buffers.given().part(slice.offset_bytes, slice.length_bytes);
            let place = self.slices.staged(chunk, giver, rank);
            self.exchange.stage(step, place).fill_for_others(0, data);
        }
        self.exchange.publish(step);
        Ok(step)
    }

    /// Combines our slice of all ranks' data, which they gave in step `given`; answers in which
    /// step the result is.
    fn combine(&mut self, buffers: &Buffers<'_>, chunk: usize, given: u64) -> Result<u64, Fault> {
        let step = self.exchange.next_step();
        self.exchange.open(self.wait, step)?;
        let own = self.exchange.rank();
        for rank in self.exchange.others() {
            self.exchange.heed(self.wait, rank, given)?;
        }
        let exchange = &*self.exchange;
        let slice = self.slices.of(chunk, own);
        let data = |rank| match rank {
            _ if rank == own => buffers.given().part(slice.offset_bytes, slice.length_bytes),
            _ => exchange.staged(rank, given, self.slices.staged(chunk, rank, own)),
        };
        let mut sum = exchange.stage(step, Part::first(slice.length_bytes));
        match exchange.ranks() {
            1 => {
                sum.fill(0, data(0));
            }
            _ => self.reduction.combine_apart(&mut sum, data(0), data(1)),
        }
        for rank in 2..exchange.ranks() {
            self.reduction.combine(&mut sum, data(rank));
        }
        self.exchange.publish(step);
        Ok(step)
    }

    /// Copies all slices of the result out, which the ranks combined in step `combined`.
    fn collect(
        &mut self,
        buffers: &mut Buffers<'_>,
        receivers: Receivers,
        chunk: usize,
        combined: u64,
    ) -> Result<(), Fault> {
        if receivers.include(self.exchange.rank()) {
            for rank in 0..self.exchange.ranks() {
                self.exchange.heed(self.wait, rank, combined)?;
                let slice = self.slices.of(chunk, rank);
                let part = Part::first(slice.length_bytes);
                let result = self.exchange.staged(rank, combined, part);
                buffers.recv.fill(slice.offset_bytes, result);
            }
        }
        self.exchange.finish(combined);
        Ok(())
    }
}
