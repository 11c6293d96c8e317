// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reduce and allreduce of long data (docs/collectives.md, clause 4.3): the data are cut into
//! chunks, each chunk into a slice for each rank, and each rank combines its slice. Called by
//! allreduce.rs.
//!
//! Each chunk takes two steps: what the ranks give of it, and their slices of the result. A rank
//! gives the next chunk before it waits for this one, and collects a chunk's result after it has
//! combined its slice of the next, so that the ranks seldom wait. Where ranks read each other's
//! data in place (direct.rs), nothing is given, and a chunk takes one step.

use weft_memory::{BytesView, BytesViewMut};

use crate::arithmetic::Reduction;
use crate::barrier;
use crate::buffers::{Buffers, Receivers};
use crate::exchange::{Exchange, Inline};
use crate::fault::Fault;
use crate::layout::{GRAIN_BYTES, STAGE_BYTES};
use crate::reach::Sight;
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
    /// Cuts `length_bytes`, at least 1, for so many ranks, which stage the slices of all others.
    pub(crate) fn staged(exchange: &Exchange, length_bytes: usize, receivers: Receivers) -> Self {
        let ranks = exchange.ranks();
        let room_bytes = STAGE_BYTES / (ranks - 1).max(1) / GRAIN_BYTES * GRAIN_BYTES;
        let room_bytes = match receivers {
            // What is won by copying at the same time, the second step of each chunk costs.
            Receivers::All => room_bytes,
            Receivers::Only(_) => room_bytes.min(exchange.chunk_bytes(length_bytes)),
        };
        Self::of_room(ranks, length_bytes, room_bytes)
    }

    /// The same for ranks that stage only their slice of the result.
    pub(crate) fn in_place(ranks: usize, length_bytes: usize) -> Self {
        Self::of_room(ranks, length_bytes, STAGE_BYTES)
    }

    fn of_room(ranks: usize, length_bytes: usize, room_bytes: usize) -> Self {
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
    fn place(self, chunk: usize, giver: usize, rank: usize) -> Part {
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
    /// Of the ranks' data, if they are read in place.
    pub(crate) sight: Option<Sight<'a>>,
}

impl Sliced<'_> {
    pub(crate) fn run(
        &mut self,
        buffers: &mut Buffers<'_>,
        receivers: Receivers,
    ) -> Result<(), Fault> {
        match self.sight {
            Some(_) => self.run_in_place(buffers, receivers),
            None => self.run_staged(buffers, receivers),
        }
    }

    fn run_in_place(
        &mut self,
        buffers: &mut Buffers<'_>,
        receivers: Receivers,
    ) -> Result<(), Fault> {
        let chunks = self.slices.chunks();
        let mut earlier = None;
        for chunk in 0..chunks {
            let combined = self.combine_in_place(buffers, chunk)?;
            if let Some(step) = earlier {
                self.collect(buffers, receivers, chunk - 1, step)?;
            }
            earlier = Some(combined);
        }
        if let Some(step) = earlier {
            self.collect(buffers, receivers, chunks - 1, step)?;
            if receivers == Receivers::All {
                // Each combined the last chunk before it collected the last but one.
                self.exchange.all_have_finished(step.saturating_sub(2));
                return Ok(());
            }
        }
        // What is given must stay until all have read it; who gets the result has heard so.
        barrier::run(self.exchange, self.wait)
    }

    fn run_staged(&mut self, buffers: &mut Buffers<'_>, receivers: Receivers) -> Result<(), Fault> {
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
            let place = self.slices.place(chunk, giver, rank);
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
            _ => exchange.staged(rank, given, self.slices.place(chunk, rank, own)),
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

    /// Combines all data where they lie, each rank that gets the result for itself. What the ranks
    /// give must stay as it is.
    pub(crate) fn run_alone(
        &mut self,
        buffers: &mut Buffers<'_>,
        receivers: Receivers,
    ) -> Result<(), Fault> {
        if let Some(given) = buffers.send
            && receivers.include(self.exchange.rank())
        {
            let mut done_bytes = 0;
            while done_bytes < given.length_bytes() {
                let left_bytes = given.length_bytes() - done_bytes;
                let row_bytes = self.row(done_bytes, left_bytes)?;
                if row_bytes > 0 {
                    let mut target = buffers.recv.part(done_bytes, row_bytes);
                    self.combine_row(given, done_bytes, &mut target);
                    done_bytes += row_bytes;
                } else {
                    let element = self.combine_element(given, done_bytes)?;
                    let size_bytes = self.reduction.size_bytes();
                    buffers.recv.fill(done_bytes, element.view(size_bytes));
                    done_bytes += size_bytes;
                }
            }
        }
        barrier::run(self.exchange, self.wait)
    }

    /// Combines our slice of all ranks' data where they lie; answers in which step the result is.
    fn combine_in_place(&mut self, buffers: &Buffers<'_>, chunk: usize) -> Result<u64, Fault> {
        let step = self.exchange.next_step();
        self.exchange.open(self.wait, step)?;
        let slice = self.slices.of(chunk, self.exchange.rank());
        let given = buffers.given();
        let mut done_bytes = 0;
        while done_bytes < slice.length_bytes {
            let from = slice.offset_bytes + done_bytes;
            let row_bytes = self.row(from, slice.length_bytes - done_bytes)?;
            let size_bytes = self.reduction.size_bytes();
            let piece = Part {
                offset_bytes: done_bytes,
                length_bytes: row_bytes.max(size_bytes),
            };
            if row_bytes > 0 {
                let mut staged = self.exchange.stage(step, piece);
                self.combine_row(given, from, &mut staged);
            } else {
                let element = self.combine_element(given, from)?;
                let mut staged = self.exchange.stage(step, piece);
                staged.fill(0, element.view(size_bytes));
            }
            done_bytes += piece.length_bytes;
        }
        self.exchange.publish(step);
        Ok(step)
    }

    /// How many bytes from an offset on, at most so many, lie in a row at all other ranks: whole
    /// elements, maybe none.
    fn row(&mut self, from: usize, most_bytes: usize) -> Result<usize, Fault> {
        let mut row_bytes = most_bytes;
        let others = self.exchange.others();
        if let Some(sight) = &mut self.sight {
            for rank in others {
                let count = sight.prepare(self.exchange, rank, from)?;
                row_bytes = row_bytes.min(count);
            }
        }
        Ok(row_bytes & !(self.reduction.size_bytes() - 1))
    }

    /// Combines a row of the data from an offset on, as many bytes as the target has.
    fn combine_row(&self, given: BytesView<'_>, from: usize, target: &mut BytesViewMut<'_>) {
        let own = self.exchange.rank();
        let length_bytes = target.length_bytes();
        let data = |rank| match &self.sight {
            Some(sight) if rank != own => sight.view(rank, from, length_bytes),
            _ => given.part(from, length_bytes),
        };
        match self.exchange.ranks() {
            1 => {
                target.fill(0, data(0));
            }
            _ => self.reduction.combine_apart(target, data(0), data(1)),
        }
        for rank in 2..self.exchange.ranks() {
            self.reduction.combine(target, data(rank));
        }
    }

    /// The same for one element, which some rank has not in a row.
    #[cold]
    fn combine_element(&mut self, given: BytesView<'_>, from: usize) -> Result<Inline, Fault> {
        let (mut sum, mut next) = (Inline::EMPTY, Inline::EMPTY);
        let (own, size_bytes) = (self.exchange.rank(), self.reduction.size_bytes());
        for rank in 0..self.exchange.ranks() {
            let mut target = next.view_mut(size_bytes);
            match &mut self.sight {
                Some(sight) if rank != own => {
                    sight.pull(self.exchange, rank, from, &mut target)?;
                }
                _ => {
                    target.fill(0, given.part(from, size_bytes));
                }
            }
            match rank {
                0 => sum = next,
                _ => {
                    let next = next.view(size_bytes);
                    self.reduction.combine(&mut sum.view_mut(size_bytes), next);
                }
            }
        }
        Ok(sum)
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
