// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Barrier (docs/collectives.md, clause 4.1): each rank publishes a step without data and waits for
//! all others. Called by team.rs.

use weft_memory::BytesView;

use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::pipeline::Transfer;
use crate::wait::Wait;

/// A barrier that nobody waits for, in one step. Run by nonblocking.rs.
#[derive(Debug)]
pub(crate) struct Meeting;

impl Transfer for Meeting {
    fn count(&self) -> usize {
        1
    }

    fn is_among_all(&self) -> bool {
        true
    }

    fn awaits(&self, own: usize, rank: usize, _: usize) -> bool {
        rank != own
    }

    fn give(
        &mut self,
        exchange: &mut Exchange,
        wait: &mut dyn Wait,
        _: usize,
        step: u64,
    ) -> Result<(), Fault> {
        arrive(exchange, wait, step)
    }

    fn take(
        &mut self,
        exchange: &mut Exchange,
        wait: &mut dyn Wait,
        _: usize,
        step: u64,
    ) -> Result<(), Fault> {
        meet_others(exchange, wait, step)
    }
}

/// Publishes that this rank has come.
#[inline(always)]
fn arrive(exchange: &mut Exchange, wait: &mut dyn Wait, step: u64) -> Result<(), Fault> {
    exchange.open(wait, step)?;
    exchange.publish_inline(step, BytesView::from_slice(&[]));
    Ok(())
}

/// Waits until all others have come.
#[inline(always)]
fn meet_others(exchange: &mut Exchange, wait: &mut dyn Wait, step: u64) -> Result<(), Fault> {
    for rank in exchange.others() {
        exchange.heed(wait, rank, step)?;
    }
    Ok(())
}

/// Returns once all ranks have called. One step.
#[inline]
pub(crate) fn run(exchange: &mut Exchange, wait: &mut dyn Wait) -> Result<(), Fault> {
    let step = exchange.next_step();
    arrive(exchange, wait, step)?;
    meet_others(exchange, wait, step)?;
    exchange.finish(step);
    exchange.all_have_finished(step - 1);
    Ok(())
}

/// Returns at once, but at `root`, where it returns once all ranks have called. One step.
#[inline]
pub(crate) fn report(
    exchange: &mut Exchange,
    wait: &mut dyn Wait,
    root: usize,
) -> Result<(), Fault> {
    let step = exchange.next_step();
    if exchange.rank() == root {
        meet_others(exchange, wait, step)?;
        exchange.finish(step);
        exchange.all_have_finished(step - 1);
    } else {
        arrive(exchange, wait, step)?;
        exchange.finish(step);
    }
    Ok(())
}
