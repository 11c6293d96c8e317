// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scatter and alltoall, and their v-forms (docs/collectives.md, clause 4.5): whoever gives
//! publishes a block for each other rank, each rank reads its own. Run by pipeline.rs.

use weft_memory::{BytesView, BytesViewMut};

use crate::blocks::{Blocks, Chunks};
use crate::buffers::Buffers;
use crate::exchange::{Exchange, Inline};
use crate::fault::Fault;
use crate::layout::{GRAIN_BYTES, INLINE_BYTES, STAGE_BYTES};
use crate::pipeline::Transfer;
use crate::segment::Part;
use crate::wait::Wait;

/// Which ranks give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Givers {
    All,
    Only(usize),
}

impl Givers {
    fn include(self, rank: usize) -> bool {
        self == Self::All || self == Self::Only(rank)
    }
}

/// Where what a rank takes goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken<'a> {
    /// One block of this length, to the beginning of `recv`.
    One(usize),
    /// Each giver's block to its place.
    Each(Blocks<'a>),
}

impl Taken<'_> {
    fn of(&self, giver: usize) -> Part {
        match self {
            Self::One(length_bytes) => Part::first(*length_bytes),
            Self::Each(blocks) => blocks.of(giver),
        }
    }
}

/// One call under way.
#[derive(Debug)]
pub(crate) struct Spreading<'a> {
    /// Without `send` blocks are given from where they are taken to.
    pub(crate) buffers: Buffers<'a>,
    /// Where the blocks for the others lie; nothing on ranks that do not give.
    pub(crate) given: Blocks<'a>,
    /// Where the blocks from the others go.
    pub(crate) taken: Taken<'a>,
    pub(crate) givers: Givers,
    pub(crate) chunks: Chunks,
    /// So many bytes of each block have been given and taken before.
    pub(crate) skipped_bytes: usize,
}

/// The beginnings of blocks whose lengths the ranks do not know of each other, one for each other
/// rank.
pub(crate) fn beginnings(exchange: &Exchange) -> Chunks {
    let room_bytes = room_bytes(exchange).min(exchange.chunk_bytes(0));
    Chunks::new(room_bytes, room_bytes)
}

/// How much a flag stages for each other rank.
fn room_bytes(exchange: &Exchange) -> usize {
    let others = (exchange.ranks() - 1).max(1);
    STAGE_BYTES / others / GRAIN_BYTES * GRAIN_BYTES
}

/// Chunks of blocks of up to `longest_bytes`, of which a rank publishes one for each other rank.
pub(crate) fn chunks(exchange: &Exchange, longest_bytes: usize) -> Chunks {
    let others = (exchange.ranks() - 1).max(1);
    if longest_bytes * others <= INLINE_BYTES {
        return Chunks::new(longest_bytes, INLINE_BYTES);
    }
    Chunks::new(
        longest_bytes,
        room_bytes(exchange).min(exchange.chunk_bytes(longest_bytes)),
    )
}

impl Spreading<'_> {
    /// Where `giver` publishes what is for `rank`, another one.
    fn place(&self, giver: usize, rank: usize, length_bytes: usize) -> Part {
        let index = if rank < giver { rank } else { rank - 1 };
        Part {
            offset_bytes: index * self.chunks.chunk_bytes,
            length_bytes,
        }
    }

    /// How much a rank publishes in a step, whole or not.
    pub(crate) fn published_bytes(&self, ranks: usize) -> usize {
        (ranks - 1) * self.chunks.chunk_bytes
    }

    /// A chunk of a block.
    fn chunk_of(&self, block: Part, chunk: usize) -> Part {
        self.chunks.of(block.behind(self.skipped_bytes), chunk)
    }

    fn piece(&self, rank: usize, chunk: usize) -> BytesView<'_> {
        let part = self.chunk_of(self.given.of(rank), chunk);
        part.of(self.buffers.given())
    }

    /// The longest block that this rank knows of.
    pub(crate) fn longest_bytes(&self) -> usize {
        let taken_bytes = match self.taken {
            Taken::One(length_bytes) => length_bytes,
            Taken::Each(blocks) => blocks.longest_bytes(),
        };
        self.given.longest_bytes().max(taken_bytes)
    }

    /// Where a whole block from `rank` goes.
    pub(crate) fn target(&mut self, rank: usize) -> BytesViewMut<'_> {
        self.taken.of(rank).of_mut(&mut self.buffers.recv)
    }

    /// Brings this rank's whole block for itself to its place.
    pub(crate) fn keep_own(&mut self, own: usize) {
        if let Some(send) = self.buffers.send {
            let block = self.given.of(own).of(send);
            self.target(own).fill(0, block);
        }
    }

    /// Stages a chunk of each block, in a step whose flag is open.
    pub(crate) fn stage(&self, exchange: &Exchange, chunk: usize, step: u64) {
        let own = exchange.rank();
        for rank in exchange.others() {
            let data = self.piece(rank, chunk);
            let place = self.place(own, rank, data.length_bytes());
            exchange.stage(step, place).fill_for_others(0, data);
        }
    }

    /// Puts a chunk of each block into short data.
    pub(crate) fn put(&self, exchange: &Exchange, chunk: usize, target: &mut BytesViewMut<'_>) {
        let own = exchange.rank();
        for rank in exchange.others() {
            let place = self.place(own, rank, 0);
            target.fill(place.offset_bytes, self.piece(rank, chunk));
        }
    }

    /// Where a chunk of the block from `rank` goes, and where that rank publishes it.
    fn taken_chunk(&self, own: usize, rank: usize, chunk: usize) -> (Part, Part) {
        let part = self.chunk_of(self.taken.of(rank), chunk);
        (part, self.place(rank, own, part.length_bytes))
    }

    /// Takes a chunk of the block from `rank` out of its short data.
    pub(crate) fn take_from(&mut self, own: usize, rank: usize, chunk: usize, data: BytesView<'_>) {
        let (part, place) = self.taken_chunk(own, rank, chunk);
        let mut target = part.of_mut(&mut self.buffers.recv);
        target.fill(0, place.of(data));
    }

    /// Takes a chunk of the block from `rank` out of what it has staged.
    pub(crate) fn take_staged(
        &mut self,
        exchange: &Exchange,
        rank: usize,
        chunk: usize,
        step: u64,
    ) {
        let (part, place) = self.taken_chunk(exchange.rank(), rank, chunk);
        let mut target = part.of_mut(&mut self.buffers.recv);
        target.fill(0, exchange.staged(rank, step, place));
    }

    /// Brings a chunk of this rank's block for itself to its place, if it gives any.
    pub(crate) fn keep_own_chunk(&mut self, own: usize, chunk: usize) {
        if let (Some(send), true) = (self.buffers.send, self.givers.include(own)) {
            let from = self.chunk_of(self.given.of(own), chunk);
            let to = self.chunk_of(self.taken.of(own), chunk);
            to.of_mut(&mut self.buffers.recv).fill(0, from.of(send));
        }
    }
}

impl Transfer for Spreading<'_> {
    fn count(&self) -> usize {
        self.chunks.count
    }

    fn is_among_all(&self) -> bool {
        self.givers == Givers::All
    }

    fn awaits(&self, own: usize, rank: usize, _: usize) -> bool {
        rank != own && self.givers.include(rank)
    }

    fn give(
        &mut self,
        exchange: &mut Exchange,
        wait: &mut dyn Wait,
        chunk: usize,
        step: u64,
    ) -> Result<(), Fault> {
        let own = exchange.rank();
        if !self.givers.include(own) {
            return Ok(());
        }
        exchange.open(wait, step)?;
        let published_bytes = self.published_bytes(exchange.ranks());
        if published_bytes <= INLINE_BYTES {
            let mut all = Inline::EMPTY;
            self.put(exchange, chunk, &mut all.view_mut(published_bytes));
            exchange.publish_inline(step, all.view(published_bytes));
            return Ok(());
        }
        self.stage(exchange, chunk, step);
        exchange.publish(step);
        Ok(())
    }

    fn take(
        &mut self,
        exchange: &mut Exchange,
        wait: &mut dyn Wait,
        chunk: usize,
        step: u64,
    ) -> Result<(), Fault> {
        let own = exchange.rank();
        let published_bytes = self.published_bytes(exchange.ranks());
        let givers = self.givers;
        for rank in exchange.others().filter(|rank| givers.include(*rank)) {
            exchange.heed(wait, rank, step)?;
            if published_bytes <= INLINE_BYTES {
                let all = exchange.inline(rank, step, published_bytes);
                self.take_from(own, rank, chunk, all.view(published_bytes));
            } else {
                self.take_staged(exchange, rank, chunk, step);
            }
        }
        self.keep_own_chunk(own, chunk);
        Ok(())
    }
}
