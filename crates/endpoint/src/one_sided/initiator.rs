// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Posting one-sided operations. Called by the provider; calls the route to the remote. Their ends
//! are in answer.rs.

use weft_contract::{MESSAGE_LIMIT_BYTES, PostError, Posted, Range, RemoteId, Route, SendOp};
use weft_memory::{Scratch, UserBuffer};

use super::answer::{NOBODY, tell};
use super::outbox::Parcel;
use super::parcel::service;
use super::request::{
    FETCHES, HEAD_LIMIT_BYTES, Kind, RANGE_LIMIT, Tag, WANTS_ANSWER, write_ranges,
};
use super::{
    ATOMIC_LIMIT_BYTES, Access, AccessKind, Atomic, Ending, OURS, OUTSTANDING_LIMIT, OneSided,
    Operation, REQUEST_LIMIT_BYTES,
};
use crate::backlog::{Ending as QueuedEnding, Payload, Queued};
use crate::completion::{Reporter, Sinks};
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::error::{Error, refused};
use crate::flags::{self, level};
use crate::ids::EndpointId;

/// What follows the ranges in a request: at most two buffers.
type Trailers<'a> = [&'a UserBuffer; 2];

/// A checked call.
pub(super) struct Plan<'a> {
    pub(super) access: &'a Access<'a>,
    pub(super) remote: RemoteId,
    /// Nothing is left to be done for the user once the request is sent.
    ends_when_sent: bool,
    pub(super) ending: Ending,
    /// The payload must be taken before the call returns.
    inject: bool,
}

impl Plan<'_> {
    /// Tells the user that the operation is over.
    #[inline]
    pub(super) fn tell(&self, report: &mut Reporter, sinks: &mut Sinks, kind: AccessKind) {
        tell(report, sinks, kind, self.access.context, self.ending);
    }
}

impl<P: Route> Endpoint<P> {
    /// Checks what all operations have in common.
    #[inline]
    fn plan<'a>(&mut self, access: &'a Access<'a>, length_bytes: usize) -> Result<Plan<'a>, Error> {
        if self.local.is_none() {
            return Err(Error::BadState);
        }
        let remote = self.core.remotes.named(access.to).ok_or(Error::Invalid)?;
        if access.ranges.len() > RANGE_LIMIT {
            return Err(Error::Invalid);
        }
        let remote_bytes = access
            .ranges
            .iter()
            .try_fold(0_u64, |sum, range| sum.checked_add(range.length_bytes));
        if remote_bytes != Some(length_bytes as u64) {
            return Err(Error::Invalid);
        }
        if length_bytes as u64 > MESSAGE_LIMIT_BYTES {
            return Err(Error::TooLong);
        }
        let default_flags = self.settings.transmit_flags;
        let flags = access.flags.unwrap_or(default_flags);
        if flags & flags::FENCE != 0 && self.core.is_under_way(remote) {
            return Err(Error::Again);
        }
        self.core.has_chores = true;
        let one_sided = self.core.one_sided.get_or_insert_with(OneSided::new);
        if one_sided.outstanding(remote) >= OUTSTANDING_LIMIT {
            return Err(Error::Again);
        }
        use weft_contract::CompletionLevel::{Delivery, Inject};
        let wanted = level(flags);
        Ok(Plan {
            access,
            remote,
            // An inject ends as soon as it is sent, unless the endpoint was opened for more than
            // that.
            ends_when_sent: if access.inject {
                wanted != Delivery
            } else {
                wanted == Inject
            },
            ending: if access.inject {
                Ending::Silent
            } else {
                Ending::Entry(flags)
            },
            inject: access.inject || flags & flags::INJECT != 0,
        })
    }

    /// Notes an operation that waits for its answer.
    #[inline]
    fn note(&mut self, mut operation: Operation) -> u32 {
        let remote = operation.remote;
        let one_sided = self.core.one_sided.get_or_insert_with(OneSided::new);
        one_sided.count_outstanding(remote, 1);
        operation.serial = one_sided.next_serial();
        let id = one_sided.operations.insert(operation);
        self.watch(remote);
        id
    }

    /// Sends a request; all of it travels in one message.
    #[inline]
    fn request(&mut self, plan: &Plan<'_>, tag: Tag, trailers: Trailers<'_>) -> Result<(), Error> {
        let &Plan { access, remote, .. } = plan;
        let local = self.local.as_mut().ok_or(Error::BadState)?;
        let core = &mut self.core;
        let one_sided = core.one_sided.get_or_insert_with(OneSided::new);
        if one_sided.outbox.waits_for(remote) {
            // What waits for room comes first.
            return Err(Error::Again);
        }
        let mut head = [0; HEAD_LIMIT_BYTES];
        let mut length = write_ranges(access.ranges, &mut head);
        one_sided.scratch.write(0, &head[..length]);
        for trailer in trailers {
            length += one_sided.scratch.copy_in(length, trailer);
        }
        let tag = Tag {
            range_count: access.ranges.len() as u8,
            ..tag
        };
        let mut op = service(remote, tag, one_sided.nameless_token(), true);
        op.cq_data = access.cq_data;
        let payload = one_sided.scratch.payload(length);
        let posted = if core.backlog.holds(remote) {
            Err(PostError::Busy)
        } else {
            local.post_send(&op, &payload)
        };
        match posted {
            // Its payload must come after it, and is not queued.
            Err(PostError::Busy) if tag.kind == Kind::LongWrite => Err(Error::Again),
            Err(PostError::Busy) => self.request_later(SendOp { ..op }, payload.clone()),
            Err(failed) => Err(refused(failed)),
            Ok(_) => Ok(()),
        }
    }

    /// Queues a request behind what waits already.
    #[cold]
    fn request_later(&mut self, op: SendOp, payload: UserBuffer) -> Result<(), Error> {
        let core = &mut self.core;
        if !core.backlog.has_room(op.remote, payload.length_bytes()) {
            return Err(Error::Again);
        }
        core.queue(Queued {
            op,
            payload: Payload::copy_of(&payload),
            ending: QueuedEnding::Told,
        });
        self.watch(op.remote);
        Ok(())
    }
}

fn waiting(plan: &Plan<'_>, kind: AccessKind, buffer: UserBuffer) -> Operation {
    Operation {
        remote: plan.remote,
        serial: 0,
        kind,
        context: plan.access.context,
        ending: plan.ending,
        buffer,
        _copy: None,
        awaits_answer: true,
        awaits_sent: false,
        lands: false,
        failed: None,
    }
}

fn head_bytes(ranges: &[Range]) -> usize {
    ranges.len() * super::request::RANGE_BYTES
}

impl<P: Route> Domain<P> {
    /// Writes to a remote's registered memory (fi_write and its forms). The payload stays ours
    /// until the completion, unless the access is an inject. Fast path for short payload.
    ///
    /// # Errors
    /// [`Error::Again`] when there is no room now, or FI_FENCE must wait: nothing was sent; make
    /// progress and call again. [`Error::Invalid`] if `to` names no remote or the ranges are not as
    /// long as the payload, [`Error::BadState`] before the endpoint is enabled, [`Error::TooLong`]
    /// beyond the inject limit, [`Error::Transfer`] if the remote is gone or cannot be reached.
    /// What the target refuses is told in the completion.
    pub fn write(
        &mut self,
        endpoint: EndpointId,
        access: &Access<'_>,
        payload: &UserBuffer,
    ) -> Result<(), Error> {
        let inject_limit_bytes = self.settings.inject_limit_bytes;
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let plan = endpoint.plan(access, payload.length_bytes())?;
        if plan.inject && payload.length_bytes() > inject_limit_bytes {
            return Err(Error::TooLong);
        }
        if endpoint.write_directly(&mut self.sinks, &plan, payload) {
            return Ok(());
        }
        if head_bytes(access.ranges) + payload.length_bytes() > REQUEST_LIMIT_BYTES {
            return endpoint.write_long(&mut self.sinks, &plan, payload);
        }
        let tag = Tag::new(Kind::Write, NOBODY);
        let trailers = [payload, &UserBuffer::empty()];
        let sinks = &mut self.sinks;
        endpoint.request_change(sinks, &plan, AccessKind::Write, tag, trailers)
    }

    /// Reads a remote's registered memory (fi_read and its forms) into `target`.
    ///
    /// # Errors
    /// As [`Domain::write`].
    pub fn read(
        &mut self,
        endpoint: EndpointId,
        access: &Access<'_>,
        target: UserBuffer,
    ) -> Result<(), Error> {
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let plan = endpoint.plan(access, target.length_bytes())?;
        if endpoint.read_directly(&mut self.sinks, &plan, &target) {
            return Ok(());
        }
        let nothing = UserBuffer::empty();
        endpoint.request_result(&plan, AccessKind::Read, |id| {
            (Tag::new(Kind::Read, id), [&nothing; 2], target)
        })
    }

    /// Changes elements of a remote's registered memory (fi_atomic); with `result`, stores there
    /// what they were before (fi_fetch_atomic, fi_compare_atomic).
    ///
    /// # Errors
    /// As [`Domain::write`]; and [`Error::Unsupported`] if the operation has no meaning for the
    /// type or takes a result or comparands that are not given, [`Error::Invalid`] if buffers
    /// differ in length, [`Error::TooLong`] beyond [`ATOMIC_LIMIT_BYTES`].
    pub fn atomic(
        &mut self,
        endpoint: EndpointId,
        access: &Access<'_>,
        atomic: &Atomic<'_>,
        result: Option<UserBuffer>,
    ) -> Result<(), Error> {
        let length_bytes = check(atomic, access, result.as_ref())?;
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let plan = endpoint.plan(access, length_bytes)?;
        if endpoint.change_directly(&mut self.sinks, &plan, atomic, result.as_ref()) {
            return Ok(());
        }
        let trailers = [atomic.operands, atomic.comparands];
        let tag = |id, flags| Tag {
            flags,
            code: atomic.operator as u8,
            element: atomic.element as u8,
            ..Tag::new(Kind::Atomic, id)
        };
        match result {
            Some(result) => endpoint.request_result(&plan, AccessKind::AtomicFetch, |id| {
                (tag(id, FETCHES), trailers, result)
            }),
            None => {
                let kind = AccessKind::AtomicWrite;
                endpoint.request_change(&mut self.sinks, &plan, kind, tag(NOBODY, 0), trailers)
            }
        }
    }
}

/// Whether an atomic operation holds together; answers the length of its target.
fn check(
    atomic: &Atomic<'_>,
    access: &Access<'_>,
    result: Option<&UserBuffer>,
) -> Result<usize, Error> {
    let size = atomic.element.size_bytes() as u64;
    let operator = atomic.operator;
    let fetches_only = operator.only_reads() || operator.compares();
    if !atomic.element.allows(operator) || (fetches_only && result.is_none()) {
        return Err(Error::Unsupported);
    }
    if access
        .ranges
        .iter()
        .any(|range| range.length_bytes % size != 0)
    {
        return Err(Error::Invalid);
    }
    let total = access.ranges.iter().map(|range| range.length_bytes);
    let length_bytes = total.fold(0, u64::saturating_add);
    let (operands, comparands) = (
        atomic.operands.length_bytes() as u64,
        atomic.comparands.length_bytes() as u64,
    );
    let fits = |given, taken: bool| given == if taken { length_bytes } else { 0 };
    if !fits(operands, !operator.only_reads())
        || !fits(comparands, operator.compares())
        || result.is_some_and(|result| result.length_bytes() as u64 != length_bytes)
    {
        return Err(Error::Invalid);
    }
    if length_bytes.max(operands + comparands) > ATOMIC_LIMIT_BYTES as u64 {
        return Err(Error::TooLong);
    }
    Ok(length_bytes as usize)
}

impl<P: Route> Endpoint<P> {
    /// A request that changes memory and whose operands travel with it.
    #[inline]
    fn request_change(
        &mut self,
        sinks: &mut Sinks,
        plan: &Plan<'_>,
        kind: AccessKind,
        tag: Tag,
        trailers: Trailers<'_>,
    ) -> Result<(), Error> {
        if plan.ends_when_sent && !self.wants_confirmation(plan.remote) {
            self.request(plan, tag, trailers)?;
            self.note_unconfirmed(plan.remote);
            plan.tell(&mut self.core.report, sinks, kind);
            return Ok(());
        }
        let one_sided = self.core.one_sided.get_or_insert_with(OneSided::new);
        let tag = Tag {
            flags: tag.flags | WANTS_ANSWER,
            id: one_sided.operations.next(),
            ..tag
        };
        self.request(plan, tag, trailers)?;
        let mut operation = waiting(plan, kind, UserBuffer::empty());
        if plan.ends_when_sent {
            plan.tell(&mut self.core.report, sinks, kind);
            operation.ending = Ending::Told;
        }
        self.note(operation);
        Ok(())
    }

    /// A request whose answer brings a result. `make` says, for the operation's name, what to send
    /// and where the result goes.
    #[inline]
    fn request_result<'a>(
        &mut self,
        plan: &Plan<'_>,
        kind: AccessKind,
        make: impl FnOnce(u32) -> (Tag, Trailers<'a>, UserBuffer),
    ) -> Result<(), Error> {
        let one_sided = self.core.one_sided.get_or_insert_with(OneSided::new);
        let (tag, trailers, result) = make(one_sided.operations.next());
        self.request(plan, tag, trailers)?;
        self.note(waiting(plan, kind, result));
        Ok(())
    }

    /// A write whose payload does not fit its request.
    #[inline(never)]
    fn write_long(
        &mut self,
        sinks: &mut Sinks,
        plan: &Plan<'_>,
        payload: &UserBuffer,
    ) -> Result<(), Error> {
        let one_sided = self.core.one_sided.get_or_insert_with(OneSided::new);
        let tag = Tag {
            flags: WANTS_ANSWER,
            ..Tag::new(Kind::LongWrite, one_sided.operations.next())
        };
        self.request(plan, tag, [&UserBuffer::empty(); 2])?;
        let mut operation = waiting(plan, AccessKind::Write, payload.clone());
        operation.awaits_sent = true;
        if plan.inject {
            // Not longer than the inject limit, which a scratch holds.
            let copy = Scratch::take();
            let length = copy.copy_in(0, payload);
            operation.buffer = copy.payload(length);
            operation._copy = Some(copy);
            if plan.ends_when_sent {
                plan.tell(&mut self.core.report, sinks, AccessKind::Write);
                operation.ending = Ending::Told;
            }
        }
        let id = self.note(operation);
        self.send_payload(plan.remote, id);
        Ok(())
    }

    /// Sends the payload of a long write, now or when there is room.
    fn send_payload(&mut self, remote: RemoteId, id: u32) {
        let (Some(local), Some(one_sided)) = (&mut self.local, &mut self.core.one_sided) else {
            return;
        };
        let Some(operation) = one_sided.operations.get_mut(id) else {
            return;
        };
        let tag = Tag::new(Kind::Payload, id);
        let op = service(remote, tag, OURS | u64::from(id), false);
        match local.post_send(&op, &operation.buffer) {
            Ok(Posted::Complete) => operation.awaits_sent = false,
            Ok(Posted::Pending) => {}
            // A failure is met again by the next progress, where it can be told.
            Err(PostError::Busy | PostError::Failed(_)) => {
                one_sided.outbox.push(remote, Parcel::Payload(id));
            }
        }
    }
}
