// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reduce and allreduce (docs/collectives.md, clause 4.3). Called by team.rs; the arithmetic is
//! arithmetic.rs.
//!
//! Short data: each rank publishes all of its data; who wants the result combines them all. Long
//! data: each rank combines one slice of all data, then all read all slices. Either way the ranks'
//! data are combined in the order of ranks, so that the result has the same bits every time and on
//! every rank.

use crate::arithmetic::Reduction;
use crate::buffers::{Buffers, Receivers};
use crate::exchange::{Exchange, Inline};
use crate::fault::Fault;
use crate::layout::INLINE_BYTES;
use crate::posting;
use crate::sliced::{Sliced, Slices};
use crate::wait::Wait;

/// Longest data that every rank combines by itself. Chosen; docs/collectives.md, clause 5.
pub(crate) const WHOLE_BYTES: usize = 2048;

/// Combines `length_bytes` of each rank's data.
#[inline]
pub(crate) fn run(
    exchange: &mut Exchange,
    wait: &mut dyn Wait,
    buffers: &mut Buffers<'_>,
    reduction: Reduction,
    receivers: Receivers,
) -> Result<(), Fault> {
    let length_bytes = buffers.given().length_bytes();
    match length_bytes {
        ..=INLINE_BYTES => inline(exchange, wait, buffers, reduction, receivers),
        length_bytes if length_bytes <= WHOLE_BYTES => {
            whole(exchange, wait, buffers, reduction, receivers)
        }
        _ => {
            let slices = Slices::staged(exchange, length_bytes, receivers);
            let mut sliced = Sliced {
                exchange,
                wait,
                slices,
                reduction,
                sight: None,
            };
            sliced.run(buffers, receivers)
        }
    }
}

/// One step: all data in the flags. Kept apart from [`whole`] for speed: the sum stays out of the
/// buffers until it is complete.
#[inline]
fn inline(
    exchange: &mut Exchange,
    wait: &mut dyn Wait,
    buffers: &mut Buffers<'_>,
    reduction: Reduction,
    receivers: Receivers,
) -> Result<(), Fault> {
    let length_bytes = buffers.given().length_bytes();
    let step = exchange.next_step();
    exchange.open(wait, step)?;
    exchange.publish_inline(step, buffers.given());
    if receivers.include(exchange.rank()) {
        let mut sum = Inline::EMPTY;
        for rank in 0..exchange.ranks() {
            exchange.heed(wait, rank, step)?;
            let data = exchange.inline(rank, step, length_bytes);
            if rank == 0 {
                sum = data;
            } else {
                reduction.combine(&mut sum.view_mut(length_bytes), data.view(length_bytes));
            }
        }
        buffers.recv.fill(0, sum.view(length_bytes));
        exchange.all_have_finished(step - 1);
    }
    exchange.finish(step);
    Ok(())
}

/// One step: all data staged.
fn whole(
    exchange: &mut Exchange,
    wait: &mut dyn Wait,
    buffers: &mut Buffers<'_>,
    reduction: Reduction,
    receivers: Receivers,
) -> Result<(), Fault> {
    let length_bytes = buffers.given().length_bytes();
    let step = exchange.next_step();
    exchange.open(wait, step)?;
    posting::post(exchange, step, buffers.given());
    if receivers.include(exchange.rank()) {
        let mut sum = posting::Sum {
            target: buffers.recv.part(0, length_bytes),
            reduction,
            ranks: exchange.ranks(),
        };
        posting::combine(exchange, wait, step, &mut sum)?;
        exchange.all_have_finished(step - 1);
    }
    exchange.finish(step);
    Ok(())
}
