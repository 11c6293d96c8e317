// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bcast (docs/collectives.md, clause 4.2): the root publishes, all others read. Called by team.rs.

use weft_memory::BytesViewMut;

use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::layout::INLINE_BYTES;
use crate::segment::Part;
use crate::wait::Wait;

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
