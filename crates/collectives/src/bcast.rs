// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bcast (docs/collectives.md, clause 4.2): the root publishes, all others read. Called by team.rs.

use weft_memory::BytesViewMut;

use crate::blocks::Chunks;
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::layout::INLINE_BYTES;
use crate::pipeline::Transfer;
use crate::posting;
use crate::segment::Part;
use crate::wait::Wait;

/// A bcast that nobody waits for. Run by nonblocking.rs.
#[derive(Debug)]
pub(crate) struct Broadcast<'a> {
    pub(crate) buffer: BytesViewMut<'a>,
    pub(crate) root: usize,
    pub(crate) chunks: Chunks,
}

impl Broadcast<'_> {
    fn part(&self, chunk: usize) -> Part {
        self.chunks
            .of(Part::first(self.buffer.length_bytes()), chunk)
    }
}

impl Transfer for Broadcast<'_> {
    fn count(&self) -> usize {
        self.chunks.count
    }

    fn is_among_all(&self) -> bool {
        false
    }

    fn awaits(&self, own: usize, rank: usize, _: usize) -> bool {
        rank == self.root && rank != own
    }

    fn give(
        &mut self,
        exchange: &mut Exchange,
        wait: &mut dyn Wait,
        chunk: usize,
        step: u64,
    ) -> Result<(), Fault> {
        if exchange.rank() == self.root {
            exchange.open(wait, step)?;
            posting::post(exchange, step, self.part(chunk).of(self.buffer.as_view()));
        }
        Ok(())
    }

    fn take(
        &mut self,
        exchange: &mut Exchange,
        wait: &mut dyn Wait,
        chunk: usize,
        step: u64,
    ) -> Result<(), Fault> {
        if exchange.rank() != self.root {
            exchange.heed(wait, self.root, step)?;
            let part = self.part(chunk);
            let mut target = part.of_mut(&mut self.buffer);
            posting::fetch(exchange, self.root, step, &mut target);
        }
        Ok(())
    }
}

/// Brings the root's bytes to all ranks. One step for each chunk.
#[inline]
pub(crate) fn run(
    exchange: &mut Exchange,
    wait: &mut dyn Wait,
    mut buffer: BytesViewMut<'_>,
    root: usize,
) -> Result<(), Fault> {
    let length_bytes = buffer.length_bytes();
    if length_bytes > INLINE_BYTES {
        return staged(exchange, wait, buffer, root);
    }
    let step = exchange.next_step();
    if exchange.rank() == root {
        exchange.open(wait, step)?;
        exchange.publish_inline(step, buffer.as_view());
    } else {
        exchange.heed(wait, root, step)?;
        let data = exchange.inline(root, step, length_bytes);
        buffer.fill(0, data.view(length_bytes));
    }
    exchange.finish(step);
    Ok(())
}

fn staged(
    exchange: &mut Exchange,
    wait: &mut dyn Wait,
    mut buffer: BytesViewMut<'_>,
    root: usize,
) -> Result<(), Fault> {
    let chunk_bytes = exchange.chunk_bytes(buffer.length_bytes());
    for offset_bytes in (0..buffer.length_bytes()).step_by(chunk_bytes) {
        let step = exchange.next_step();
        let mut chunk = buffer.part(offset_bytes, chunk_bytes);
        let part = Part::first(chunk.length_bytes());
        if exchange.rank() == root {
            exchange.open(wait, step)?;
            exchange
                .stage(step, part)
                .fill_for_others(0, chunk.as_view());
            exchange.publish(step);
        } else {
            exchange.heed(wait, root, step)?;
            chunk.fill(0, exchange.staged(root, step, part));
        }
        exchange.finish(step);
    }
    Ok(())
}
