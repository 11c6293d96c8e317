// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One step for each chunk, each given before the one before it is taken, so that ranks seldom
//! wait (docs/collectives.md, clause 4). Run by team.rs over the algorithms' transfers.

use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::wait::Wait;

/// What a rank does with each chunk of a call.
pub(crate) trait Transfer {
    /// How many chunks there are; the same on all ranks.
    fn count(&self) -> usize;

    /// Whether the ranks wait for each other, all for all.
    fn is_among_all(&self) -> bool;

    /// Whether [`Self::take`] of a chunk waits for this rank, maybe our own.
    fn awaits(&self, own: usize, rank: usize, chunk: usize) -> bool;

    /// Publishes this rank's part of a chunk in a step, if it has any. Whoever publishes opens the
    /// step's flag first.
    fn give(
        &mut self,
        exchange: &mut Exchange,
        wait: &mut dyn Wait,
        chunk: usize,
        step: u64,
    ) -> Result<(), Fault>;

    /// Waits for the others' parts and takes them.
    fn take(
        &mut self,
        exchange: &mut Exchange,
        wait: &mut dyn Wait,
        chunk: usize,
        step: u64,
    ) -> Result<(), Fault>;
}

/// Carries out all chunks.
pub(crate) fn run(
    exchange: &mut Exchange,
    wait: &mut dyn Wait,
    transfer: &mut impl Transfer,
) -> Result<(), Fault> {
    let mut given = None;
    for chunk in 0..transfer.count() {
        let step = exchange.next_step();
        transfer.give(exchange, wait, chunk, step)?;
        if let Some(earlier) = given {
            transfer.take(exchange, wait, chunk - 1, earlier)?;
            exchange.finish(earlier);
        }
        given = Some(step);
    }
    let Some(last) = given else {
        return Ok(());
    };
    transfer.take(exchange, wait, transfer.count() - 1, last)?;
    exchange.finish(last);
    if transfer.is_among_all() {
        // Each gave this chunk before it took the one before.
        exchange.all_have_finished(last.saturating_sub(2));
    }
    Ok(())
}
