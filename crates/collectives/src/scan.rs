// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scan and exscan (docs/collectives.md, clause 4.7): each rank publishes its data, and combines
//! those of the ranks below it. Run by pipeline.rs; by nonblocking.rs also where ranks combine the
//! data of all.

use crate::arithmetic::Reduction;
use crate::blocks::Chunks;
use crate::buffers::Buffers;
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::pipeline::Transfer;
use crate::posting;
use crate::segment::Part;
use crate::wait::Wait;

/// One call under way.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    pub(crate) buffers: Buffers<'a>,
    pub(crate) reduction: Reduction,
    /// How many of the lowest ranks' data this rank combines: those up to it (scan), those below it
    /// (exscan), or those of all.
    pub(crate) counted: usize,
    /// Bytes of each rank's data.
    pub(crate) length_bytes: usize,
    pub(crate) chunks: Chunks,
}

impl Scan<'_> {
    fn part(&self, chunk: usize) -> Part {
        self.chunks.of(Part::first(self.length_bytes), chunk)
    }
}

impl Transfer for Scan<'_> {
    fn count(&self) -> usize {
        self.chunks.count
    }

    fn is_among_all(&self) -> bool {
        false
    }

    fn awaits(&self, _: usize, rank: usize, _: usize) -> bool {
        rank < self.counted
    }

    fn give(
        &mut self,
        exchange: &mut Exchange,
        wait: &mut dyn Wait,
        chunk: usize,
        step: u64,
    ) -> Result<(), Fault> {
        let part = self.part(chunk);
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
        let part = self.part(chunk);
        let mut sum = posting::Sum {
            target: part.of_mut(&mut self.buffers.recv),
            reduction: self.reduction,
            ranks: self.counted,
        };
        posting::combine(exchange, wait, step, &mut sum)
    }
}
