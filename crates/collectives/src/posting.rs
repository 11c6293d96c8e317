// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Data of any length up to a flag's staging: in the flag if they fit, else staged. Used by the
//! algorithms in which each rank publishes one stretch of bytes in a step.

use weft_memory::{BytesView, BytesViewMut};

use crate::arithmetic::Reduction;
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::layout::INLINE_BYTES;
use crate::segment::Part;
use crate::wait::Wait;

/// Publishes data in a step whose flag is open.
#[inline]
pub(crate) fn post(exchange: &mut Exchange, step: u64, data: BytesView<'_>) {
    if data.length_bytes() <= INLINE_BYTES {
        return exchange.publish_inline(step, data);
    }
    let part = Part::first(data.length_bytes());
    exchange.stage(step, part).fill_for_others(0, data);
    exchange.publish(step);
}

/// Copies out what `rank` posted in a step of which we have heard: as many bytes as the target has.
#[inline]
pub(crate) fn fetch(exchange: &Exchange, rank: usize, step: u64, target: &mut BytesViewMut<'_>) {
    let length_bytes = target.length_bytes();
    if length_bytes <= INLINE_BYTES {
        let inline = exchange.inline(rank, step, length_bytes);
        target.fill(0, inline.view(length_bytes));
    } else {
        target.fill(0, exchange.staged(rank, step, Part::first(length_bytes)));
    }
}

/// Combines what the first so many ranks post in a step, in the order of ranks: as many bytes as
/// the target has.
#[inline]
pub(crate) fn combine(
    exchange: &mut Exchange,
    wait: &mut dyn Wait,
    step: u64,
    sum: &mut Sum<'_>,
) -> Result<(), Fault> {
    for rank in 0..sum.ranks {
        exchange.heed(wait, rank, step)?;
        if rank == 0 {
            fetch(exchange, rank, step, &mut sum.target);
        } else {
            fold(exchange, rank, step, &mut sum.target, sum.reduction);
        }
    }
    Ok(())
}

/// What [`combine`] makes.
#[derive(Debug)]
pub(crate) struct Sum<'a> {
    /// Where it goes.
    pub(crate) target: BytesViewMut<'a>,
    pub(crate) reduction: Reduction,
    /// How many of the ranks count.
    pub(crate) ranks: usize,
}

/// Combines the target with what `rank` posted in a step of which we have heard.
#[inline]
fn fold(
    exchange: &Exchange,
    rank: usize,
    step: u64,
    target: &mut BytesViewMut<'_>,
    reduction: Reduction,
) {
    let length_bytes = target.length_bytes();
    if length_bytes <= INLINE_BYTES {
        let inline = exchange.inline(rank, step, length_bytes);
        reduction.combine(target, inline.view(length_bytes));
    } else {
        reduction.combine(
            target,
            exchange.staged(rank, step, Part::first(length_bytes)),
        );
    }
}
