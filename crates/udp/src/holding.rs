// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether the payload of a send is copied, and when: it decides when the send is complete. Asked
//! by driver for each send; stands on what the machine knows of the remote.
//!
//! fi_cq(3) says for each completion level the soonest at which a send may be complete. One that
//! asks for nothing may be complete as soon as its buffer can be used again, as over TCP, where the
//! kernel has a copy. But no kernel sends ours again. So it is complete at once only where it has
//! left whole, and nothing was lost lately: its sender may compute for long.

use std::ops::RangeInclusive;

use weft_contract::{CompletionLevel, PostError, SendOp};
use weft_srd::{Machine, Remote};

use crate::sends::Sends;

/// Injects longer than this are copied after they have left, if they leave at once. Chosen: shorter
/// ones cost less to copy than to look at again.
const LONG_INJECT_FROM: usize = 8 << 10;

/// Payloads up to here are copied when their buffer shall be free at once. Chosen: above, copying
/// costs more than hearing from the remote.
const COPY_LIMIT_BYTES: usize = 16 << 10;

/// Payloads of this length are copied after they have left, if they leave at once. Chosen: shorter
/// ones leave in one piece with their head; longer ones wait for the remote's word first.
const LATE_COPY_BYTES: RangeInclusive<usize> = 4097..=64 << 10;

/// A send of which nothing was said is complete once it is copied while at most so much, with it,
/// is on its way to its remote. Chosen: two of the longest that leave unasked, so that a row of
/// blocking sends need not wait for each; a stream of sends hardly copies.
pub(crate) const UNSTATED_BYTES: u64 = 128 << 10;

/// Where the payload of a send is while it is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holding {
    /// With the user.
    Loan,
    /// In memory of ours.
    Copy,
    /// With the user until it has left, and from then on in memory of ours.
    LateCopy,
}

/// What counts of a send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) op: &'a SendOp,
    pub(crate) length_bytes: usize,
}

impl Asked<'_> {
    /// Whether it is complete once its payload is copied.
    #[inline]
    pub(crate) fn ends_when_copied(&self) -> bool {
        use CompletionLevel::{Inject, Unstated};
        matches!(self.op.level, Inject | Unstated)
    }

    /// Where its payload is while it is under way. Fast path.
    ///
    /// # Errors
    /// [`PostError::Busy`] when it must be copied and as much is copied as may be.
    #[inline]
    pub(crate) fn holding(
        &self,
        remote: Remote,
        machine: &Machine,
        sends: &Sends,
    ) -> Result<Holding, PostError> {
        let may_copy = sends.may_copy(self.length_bytes);
        if self.op.inject && self.length_bytes > LONG_INJECT_FROM && may_copy {
            return Ok(match self.is_carried_alone(remote, machine) {
                true => Holding::LateCopy,
                false => Holding::Copy,
            });
        }
        if self.op.inject {
            return may_copy.then_some(Holding::Copy).ok_or(PostError::Busy);
        }
        if may_copy && self.leaves_at_once(remote, machine) {
            return Ok(Holding::LateCopy);
        }
        let copies =
            self.op.level == CompletionLevel::Inject && self.length_bytes <= COPY_LIMIT_BYTES;
        match copies {
            true if !may_copy => Err(PostError::Busy),
            true => Ok(Holding::Copy),
            false => Ok(Holding::Loan),
        }
    }

    /// Whether it may end when it is copied, and is expected to leave at once.
    #[inline]
    fn leaves_at_once(&self, remote: Remote, machine: &Machine) -> bool {
        let inspection = machine.inspect();
        match self.op.level {
            CompletionLevel::Inject => {
                LATE_COPY_BYTES.contains(&self.length_bytes) && inspection.is_quiet(remote)
            }
            CompletionLevel::Unstated => {
                self.length_bytes <= *LATE_COPY_BYTES.end()
                    && self.is_carried_alone(remote, machine)
            }
            CompletionLevel::Transmit | CompletionLevel::Delivery => false,
        }
    }

    /// Whether it leaves at once, as far as can be told, and is likely to need its sender no more.
    #[inline]
    fn is_carried_alone(&self, remote: Remote, machine: &Machine) -> bool {
        let length_bytes = self.length_bytes as u64;
        machine
            .inspect()
            .carries_alone(remote, length_bytes, UNSTATED_BYTES)
    }
}
