// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reduce_scatter and its form with equal blocks (docs/collectives.md, clause 4.6): each rank
//! stages its blocks, and combines all ranks' data of its own block. Run by pipeline.rs.

use crate::arithmetic::Reduction;
use crate::blocks::{Blocks, Chunks};
use crate::buffers::Buffers;
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::layout::{GRAIN_BYTES, STAGE_BYTES};
use crate::pipeline::Transfer;
use crate::segment::Part;
use crate::wait::Wait;

/// One call under way.
#[derive(Debug)]
pub(crate) struct ReduceScatter<'a> {
    pub(crate) buffers: Buffers<'a>,
    /// The ranks' blocks in what each rank gives; the same on all.
    pub(crate) blocks: Blocks<'a>,
    pub(crate) reduction: Reduction,
    pub(crate) chunks: Chunks,
}

/// Chunks of blocks of up to `longest_bytes`, of which a rank stages one for each rank.
pub(crate) fn chunks(ranks: usize, longest_bytes: usize) -> Chunks {
    Chunks::new(
        longest_bytes,
        STAGE_BYTES / ranks / GRAIN_BYTES * GRAIN_BYTES,
    )
}

impl Transfer for ReduceScatter<'_> {
    fn count(&self) -> usize {
        self.chunks.count
    }

    fn is_among_all(&self) -> bool {
        matches!(self.blocks, Blocks::Even(_))
    }

    fn awaits(&self, _: usize, _: usize, _: usize) -> bool {
        true
    }

    fn give(
        &mut self,
        exchange: &mut Exchange,
        wait: &mut dyn Wait,
        chunk: usize,
        step: u64,
    ) -> Result<(), Fault> {
        exchange.open(wait, step)?;
        // Our own block, too: in place, the result may lie over it.
        for rank in 0..exchange.ranks() {
            let part = self.chunks.of(self.blocks.of(rank), chunk);
            let data = part.of(self.buffers.given());
            let place = Part {
                offset_bytes: rank * self.chunks.chunk_bytes,
                length_bytes: part.length_bytes,
            };
            exchange.stage(step, place).fill_for_others(0, data);
        }
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
        let block = Part::first(self.blocks.of(own).length_bytes);
        let part = self.chunks.of(block, chunk);
        if part.length_bytes == 0 {
            return Ok(());
        }
        let place = Part {
            offset_bytes: own * self.chunks.chunk_bytes,
            length_bytes: part.length_bytes,
        };
        let mut sum = part.of_mut(&mut self.buffers.recv);
        for rank in 0..exchange.ranks() {
            exchange.heed(wait, rank, step)?;
            let data = exchange.staged(rank, step, place);
            if rank == 0 {
                sum.fill(0, data);
            } else {
                self.reduction.combine(&mut sum, data);
            }
        }
        Ok(())
    }
}
