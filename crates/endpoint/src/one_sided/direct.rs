// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One-sided operations that need no message: the memory is within this process's reach
//! (docs/one-sided.md, clause 8). Asked by initiator.rs before it sends a request; calls the route
//! to the remote.
//!
//! Nothing is decided here about rights and ranges: what the route does not find in order is asked
//! of the target, whose answer says what was wrong. What is decided here is order: an operation is
//! carried out directly only when all earlier ones to that remote have been.

use weft_contract::{DirectAccess, DirectOp, Route};
use weft_memory::atomic::Change;
use weft_memory::{BytesView, BytesViewMut, UserBuffer};

use super::access::Atomic;
use super::initiator::Initiator;
use super::state::OneSided;
use crate::completion::completions::AccessKind;

/// Bytes of elements that are changed directly at once. Chosen: a line; longer rows are changed by
/// the target, which has room for what they were.
const ELEMENTS_LIMIT_BYTES: usize = 64;

impl<P: Route> Initiator<'_, P> {
    /// Carries out an operation without the target's help and tells the user; false if that cannot
    /// be, and nothing was done.
    #[inline]
    fn access_directly(&mut self, kind: AccessKind, mut op: DirectOp<'_>) -> bool {
        let (access, remote) = (self.access, self.remote);
        let endpoint = &mut *self.endpoint;
        let (&[range], Some(route)) = (access.ranges, &mut endpoint.route) else {
            return false;
        };
        let is_all_done = |one_sided: &OneSided| one_sided.is_all_done(remote);
        if access.cq_data.is_some()
            || range.length_bytes == 0
            || endpoint.settings.accesses_after_sends
            || !endpoint.core.one_sided.as_deref().is_none_or(is_all_done)
        {
            return false;
        }
        let direct = route.direct();
        if !direct.is_some_and(|direct| direct.access_directly(remote, &range, &mut op)) {
            return false;
        }
        self.tell(kind);
        true
    }

    #[inline]
    pub(super) fn write_directly(&mut self, payload: &UserBuffer) -> bool {
        self.access_directly(AccessKind::Write, DirectOp::Write(payload))
    }

    #[inline]
    pub(super) fn read_directly(&mut self, target: &UserBuffer) -> bool {
        self.access_directly(AccessKind::Read, DirectOp::Read(target))
    }

    #[inline]
    pub(super) fn change_directly(
        &mut self,
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
        if !self.access_directly(kind, DirectOp::Atomic(&change, before)) {
            return false;
        }
        if let Some(result) = result {
            result.fill(0, BytesView::from_slice(before));
        }
        true
    }
}
