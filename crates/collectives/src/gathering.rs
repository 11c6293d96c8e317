// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Gather and allgather, and their v-forms (docs/collectives.md, clause 4.4): each rank publishes
//! its block, those who get the result read all. Run by pipeline.rs.

use crate::blocks::{Blocks, Chunks};
use crate::buffers::{Buffers, Receivers};
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::pipeline::Transfer;
use crate::posting;
use crate::segment::Part;
use crate::wait::Wait;

/// One call under way.
#[derive(Debug)]
pub(crate) struct Gathering<'a> {
    /// Without `send` this rank's block lies where it belongs in `recv`.
    pub(crate) buffers: Buffers<'a>,
    /// Where the blocks go. Of ranks that get no result only this rank's own length counts.
    pub(crate) blocks: Blocks<'a>,
    pub(crate) receivers: Receivers,
    pub(crate) chunks: Chunks,
}

impl Gathering<'_> {
    /// This rank's own block, in the buffer that it gives from.
    fn own(&self, rank: usize) -> Part {
        match self.buffers.send {
            Some(send) => Part::first(send.length_bytes()),
            None => self.blocks.of(rank),
        }
    }
}

impl Transfer for Gathering<'_> {
    fn count(&self) -> usize {
        self.chunks.count
    }

    fn is_among_all(&self) -> bool {
        // Who gives nothing is not waited for.
        self.receivers == Receivers::All && matches!(self.blocks, Blocks::Even(_))
    }

    fn awaits(&self, own: usize, rank: usize, chunk: usize) -> bool {
        let part = self.chunks.of(self.blocks.of(rank), chunk);
        rank != own && self.receivers.include(own) && part.length_bytes > 0
    }

    fn give(
        &mut self,
        exchange: &mut Exchange,
        wait: &mut dyn Wait,
        chunk: usize,
        step: u64,
    ) -> Result<(), Fault> {
        let part = self.chunks.of(self.own(exchange.rank()), chunk);
        if part.length_bytes == 0 || self.receivers == Receivers::Only(exchange.rank()) {
            return Ok(());
        }
        exchange.open(wait, step)?;
        posting::post(exchange, step, part.of(self.buffers.given()));
        Ok(())
    }

    fn take(
        &mut self,
        exchange: &mut Exchange,
        wait: &mut dyn Wait,
        chunk: usize,
        step: u64,
    ) -> Result<(), Fault> {
        if !self.receivers.include(exchange.rank()) {
            return Ok(());
        }
        for rank in exchange.others() {
            let part = self.chunks.of(self.blocks.of(rank), chunk);
            if part.length_bytes == 0 {
                continue;
            }
            exchange.heed(wait, rank, step)?;
            let mut target = part.of_mut(&mut self.buffers.recv);
            posting::fetch(exchange, rank, step, &mut target);
        }
        if let Some(send) = self.buffers.send {
            let block = self.blocks.of(exchange.rank());
            let from = self.chunks.of(Part::first(send.length_bytes()), chunk);
            let to = self.chunks.of(block, chunk);
            to.of_mut(&mut self.buffers.recv).fill(0, from.of(send));
        }
        Ok(())
    }
}
