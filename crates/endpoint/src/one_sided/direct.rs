// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One-sided operations that need no message: the memory is within this process's reach (docs/one-sided.md, clause 8).
//! Asked by initiator.rs before it sends a request; calls the route to the remote.
//!
//! Nothing is decided here about rights and ranges: what the route does not find in order is asked of the target, whose answer
//! says what was wrong. What is decided here is order: an operation is carried out directly only when all earlier ones to
//! that remote have been.

use weft_contract::{DirectAccess, DirectOp, RemoteId, Route};
use weft_memory::atomic::Change;
use weft_memory::{BytesView, BytesViewMut, UserBuffer};

use super::initiator::Plan;
use super::{AccessKind, Atomic, OneSided};
use crate::completion::Sinks;
use crate::endpoint::Endpoint;

/// Bytes of elements that are changed directly at once. Chosen: a line; longer rows are changed by the target, which has room
/// for what they were.
const ELEMENTS_LIMIT_BYTES: usize = 64;

impl OneSided {
    /// A number for an operation that is being posted.
    pub(super) fn next_serial(&mut self) -> u64 {
        self.last_serial += 1;
        self.last_serial
    }

    /// An operation was carried out, and with it all requests to that remote that were sent before it.
    #[inline]
    pub(super) fn confirm(&mut self, remote: RemoteId, serial: u64) {
        if let Some(last) = self.unconfirmed.get_mut(remote.index())
            && *last < serial
        {
            *last = 0;
        }
    }

    fn is_unconfirmed(&self, remote: RemoteId) -> bool {
        self.unconfirmed
            .get(remote.index())
            .is_some_and(|&serial| serial > 0)
    }

    /// Whether all that was posted to a remote has been carried out.
    #[inline]
    fn is_all_done(&self, remote: RemoteId) -> bool {
        self.outstanding(remote) == 0
            && !self.outbox.waits_for(remote)
            && !self.is_unconfirmed(remote)
    }
}

impl<P: Route> Endpoint<P> {
    /// A request without an answer was sent.
    pub(super) fn note_unconfirmed(&mut self, remote: RemoteId) {
        let one_sided = self.core.one_sided.get_or_insert_with(OneSided::new);
        if one_sided.unconfirmed.len() <= remote.index() {
            one_sided.unconfirmed.resize(remote.index() + 1, 0);
        }
        one_sided.unconfirmed[remote.index()] = one_sided.next_serial();
    }

    /// Whether a request that needs no answer asks for one all the same: once it has come, operations can be direct again.
    pub(super) fn wants_confirmation(&self, remote: RemoteId) -> bool {
        let one_sided = self.core.one_sided.as_ref();
        one_sided.is_some_and(|one_sided| {
            one_sided.is_unconfirmed(remote) && one_sided.outstanding(remote) == 0
        })
    }

    /// Carries out an operation without the target's help and tells the user; false if that cannot be, and nothing was done.
    #[inline]
    fn access_directly(
        &mut self,
        sinks: &mut Sinks,
        plan: &Plan<'_>,
        kind: AccessKind,
        mut op: DirectOp<'_>,
    ) -> bool {
        let access = plan.access;
        let (&[range], Some(local)) = (access.ranges, &mut self.local) else {
            return false;
        };
        let is_all_done = |one_sided: &OneSided| one_sided.is_all_done(plan.remote);
        if access.cq_data.is_some()
            || range.length_bytes == 0
            || self.settings.accesses_after_sends
            || !self.core.one_sided.as_deref().is_none_or(is_all_done)
        {
            return false;
        }
        let direct = local.direct();
        if !direct.is_some_and(|direct| direct.access_directly(plan.remote, &range, &mut op)) {
            return false;
        }
        plan.tell(&mut self.core.report, sinks, kind);
        true
    }

    #[inline]
    pub(super) fn write_directly(
        &mut self,
        sinks: &mut Sinks,
        plan: &Plan<'_>,
        payload: &UserBuffer,
    ) -> bool {
        let op = DirectOp::Write(payload);
        self.access_directly(sinks, plan, AccessKind::Write, op)
    }

    #[inline]
    pub(super) fn read_directly(
        &mut self,
        sinks: &mut Sinks,
        plan: &Plan<'_>,
        target: &UserBuffer,
    ) -> bool {
        let op = DirectOp::Read(target);
        self.access_directly(sinks, plan, AccessKind::Read, op)
    }

    #[inline]
    pub(super) fn change_directly(
        &mut self,
        sinks: &mut Sinks,
        plan: &Plan<'_>,
        atomic: &Atomic<'_>,
        result: Option<&UserBuffer>,
    ) -> bool {
        let given = [atomic.operands, atomic.comparands].map(UserBuffer::length_bytes);
        let result_bytes = result.map_or(0, UserBuffer::length_bytes);
        if given.into_iter().chain([result_bytes]).max() > Some(ELEMENTS_LIMIT_BYTES) {
            return false;
        }
        let mut room = [[0; ELEMENTS_LIMIT_BYTES]; 3];
        let [operands, comparands, before] = &mut room;
        let operands = &mut operands[..given[0]];
        let comparands = &mut comparands[..given[1]];
        let before = &mut before[..result_bytes];
        atomic
            .operands
            .drain(0, &mut BytesViewMut::from_slice(operands));
        atomic
            .comparands
            .drain(0, &mut BytesViewMut::from_slice(comparands));
        let change = Change {
            operator: atomic.operator,
            element: atomic.element,
            operands,
            comparands,
        };
        let kind = match result {
            Some(_) => AccessKind::AtomicFetch,
            None => AccessKind::AtomicWrite,
        };
        let op = DirectOp::Atomic(&change, before);
        if !self.access_directly(sinks, plan, kind, op) {
            return false;
        }
        if let Some(result) = result {
            result.fill(0, BytesView::from_slice(before));
        }
        true
    }
}
