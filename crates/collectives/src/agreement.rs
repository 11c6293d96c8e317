// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How ranks that know only their own lengths agree on the number of steps of a call, and whether
//! it is carried out at all (docs/collectives.md, clause 4.8). Called by team.rs.

use weft_memory::BytesView;

use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::wait::Wait;

/// Longest length that is believed. Chosen: far beyond any host's memory, and so few steps that a
/// rank which lies about it cannot keep the others for long without a wait.
const LONGEST_BYTES: u64 = 1 << 40;

/// What a rank says instead of a length that refuses the call. Specified by docs/collectives.md,
/// clause 4.8.
pub(crate) const REFUSAL: usize = usize::MAX;

/// The longest length that any rank names. One step, in which all wait for all.
///
/// # Errors
/// [`Fault::Refused`] on all ranks if one of them says [`REFUSAL`].
pub(crate) fn longest(
    exchange: &mut Exchange,
    wait: &mut dyn Wait,
    own_bytes: usize,
) -> Result<usize, Fault> {
    let step = exchange.next_step();
    exchange.open(wait, step)?;
    exchange.publish_inline(step, BytesView::from_words(&[own_bytes as u64]));
    let mut longest_bytes = own_bytes as u64;
    let mut is_refused = own_bytes == REFUSAL;
    for rank in exchange.others() {
        exchange.heed(wait, rank, step)?;
        let inline = exchange.inline(rank, step, size_of::<u64>());
        let claim = inline.view(size_of::<u64>()).first_word();
        check(exchange, rank, claim)?;
        is_refused |= claim == REFUSAL as u64;
        longest_bytes = longest_bytes.max(claim);
    }
    exchange.finish(step);
    exchange.all_have_finished(step - 1);
    if is_refused {
        return Err(Fault::Refused);
    }
    Ok(longest_bytes as usize)
}

/// # Errors
/// [`Fault::Mismatch`], which ends the team, if a rank claims a length that is not believed.
#[inline]
pub(crate) fn check(exchange: &mut Exchange, rank: usize, claim: u64) -> Result<(), Fault> {
    if claim > LONGEST_BYTES && claim != REFUSAL as u64 {
        return Err(exchange.give_up(Fault::Mismatch { rank }));
    }
    Ok(())
}
