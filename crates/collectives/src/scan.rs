// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scan and exscan (docs/collectives.md, clause 4.7): each rank publishes its data, and combines
//! those of the ranks below it. Run by pipeline.rs.

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
    /// Whether a rank's own data count (scan), or only those of lower ranks (exscan).
    pub(crate) includes_own: bool,
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

    fn give(
        &mut self,
        exchange: &mut Exchange,
        wait: &mut dyn Wait,
        chunk: usize,
        step: u64,
    ) -> Result<(), Fault> {
        let part = self.part(chunk);
        exchange.open(wait, step)?;
        let data = self.buffers.given();
        posting::post(
            exchange,
            step,
            data.part(part.offset_bytes, part.length_bytes),
        );
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
        let mut sum = self.buffers.recv.part(part.offset_bytes, part.length_bytes);
        for rank in 0..exchange.rank() + usize::from(self.includes_own) {
            exchange.heed(wait, rank, step)?;
            if rank == 0 {
                posting::fetch(exchange, rank, step, &mut sum);
            } else {
                posting::fold(exchange, rank, step, &mut sum, self.reduction);
            }
        }
        Ok(())
    }
}
