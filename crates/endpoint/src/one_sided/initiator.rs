// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Posting one-sided operations. Made by the calls on an endpoint, for one call each; calls the
//! route to the remote. How operations end: operations.rs.

use weft_contract::CompletionLevel::{Delivery, Inject};
use weft_contract::{MESSAGE_LIMIT_BYTES, PostError, RemoteId, Route, SendOp};
use weft_memory::{Scratch, UserBuffer};

use super::access::{Access, Atomic, REQUEST_LIMIT_BYTES};
use super::operations::{NOBODY, Operation};
use super::request::{
    FETCHES, HEAD_LIMIT_BYTES, Kind, RANGE_BYTES, RANGE_LIMIT, Tag, WANTS_ANSWER, write_ranges,
};
use super::send_queues::{SendEntry, service};
use super::state::OneSided;
use crate::completion::completions::{AccessKind, Completions};
use crate::completion::transmit::Ending;
use crate::endpoint::Endpoint;
use crate::error::{Error, refused};
use crate::flags::{self, level};
use crate::send::backlog::{Payload, Queued};

/// Operations of one endpoint that wait for the answer of one remote, at most; more are told to
/// come again. Chosen: bounds what the target may have to keep for answers that find no room, to 2
/// MiB for each initiator.
const OUTSTANDING_LIMIT: u32 = 256;

/// What follows the ranges in a request: at most two buffers.
type Trailers<'a> = [&'a UserBuffer; 2];

/// One call, checked.
pub(crate) struct Initiator<'a, P> {
    pub(super) endpoint: &'a mut Endpoint<P>,
    pub(super) completions: &'a mut Completions,
    pub(super) access: &'a Access<'a>,
    pub(super) remote: RemoteId,
    /// Nothing is left to be done for the user once the request is sent.
    ends_when_sent: bool,
    ending: Ending,
    /// The payload must be taken before the call returns.
    inject: bool,
}

impl<'a, P: Route> Initiator<'a, P> {
    /// Checks what all operations have in common; the local memory has `length_bytes`.
    ///
    /// # Errors
    /// As for [`crate::EndpointCalls::write`].
    #[inline]
    pub(crate) fn new(
        endpoint: &'a mut Endpoint<P>,
        completions: &'a mut Completions,
        access: &'a Access<'a>,
        length_bytes: usize,
    ) -> Result<Self, Error> {
        if endpoint.route.is_none() {
            return Err(Error::BadState);
        }
        let core = &mut endpoint.core;
        let remote = core.remotes.named(access.to).ok_or(Error::Invalid)?;
        if access.ranges.len() > RANGE_LIMIT {
            return Err(Error::Invalid);
        }
        let mut lengths = access.ranges.iter().map(|range| range.length_bytes);
        let remote_bytes = lengths.try_fold(0_u64, u64::checked_add);
        if remote_bytes != Some(length_bytes as u64) {
            return Err(Error::Invalid);
        }
        if length_bytes as u64 > MESSAGE_LIMIT_BYTES {
            return Err(Error::TooLong);
        }
        let flags = access.flags.unwrap_or(endpoint.settings.transmit_flags);
        if flags & flags::FENCE != 0 && core.is_under_way(remote) {
            return Err(Error::Again);
        }
        let operations = &core.begin_one_sided().operations;
        if operations.outstanding(remote) >= OUTSTANDING_LIMIT {
            return Err(Error::Again);
        }
        let wanted = level(flags);
        let inject = access.inject;
        Ok(Self {
            endpoint,
            completions,
            access,
            remote,
            // An inject ends as soon as it is sent, unless the endpoint was opened for more than
            // that.
            ends_when_sent: if inject {
                wanted != Delivery
            } else {
                wanted == Inject
            },
            ending: if inject {
                Ending::Silent
            } else {
                Ending::Entry(flags)
            },
            inject: inject || flags & flags::INJECT != 0,
        })
    }

    /// Writes to the remote's memory. Fast path for short payload.
    ///
    /// # Errors
    /// As for [`crate::EndpointCalls::write`].
    pub(crate) fn write(
        mut self,
        payload: &UserBuffer,
        inject_limit_bytes: usize,
    ) -> Result<(), Error> {
        if self.inject && payload.length_bytes() > inject_limit_bytes {
            return Err(Error::TooLong);
        }
        if self.write_directly(payload) {
            return Ok(());
        }
        let head_bytes = self.access.ranges.len() * RANGE_BYTES;
        if head_bytes + payload.length_bytes() > REQUEST_LIMIT_BYTES {
            return self.write_long(payload);
        }
        let tag = Tag::new(Kind::Write, NOBODY);
        let trailers = [payload, &UserBuffer::empty()];
        self.request_change(AccessKind::Write, tag, trailers)
    }

    /// Reads the remote's memory into `target`.
    ///
    /// # Errors
    /// As for [`crate::EndpointCalls::write`].
    pub(crate) fn read(mut self, target: UserBuffer) -> Result<(), Error> {
        if self.read_directly(&target) {
            return Ok(());
        }
        let tag = Tag::new(Kind::Read, NOBODY);
        let nothing = UserBuffer::empty();
        self.request_result(AccessKind::Read, tag, [&nothing; 2], target)
    }

    /// Changes elements of the remote's memory; with `result`, stores there what they were before.
    ///
    /// # Errors
    /// As for [`crate::EndpointCalls::write`].
    pub(crate) fn atomic(
        mut self,
        atomic: &Atomic<'_>,
        result: Option<UserBuffer>,
    ) -> Result<(), Error> {
        if self.change_directly(atomic, result.as_ref()) {
            return Ok(());
        }
        let trailers = [atomic.operands, atomic.comparands];
        let mut tag = Tag {
            code: atomic.operator as u8,
            element: atomic.element as u8,
            ..Tag::new(Kind::Atomic, NOBODY)
        };
        match result {
            Some(result) => {
                tag.flags = FETCHES;
                self.request_result(AccessKind::AtomicFetch, tag, trailers, result)
            }
            None => self.request_change(AccessKind::AtomicWrite, tag, trailers),
        }
    }

    /// The state of one-sided operations.
    #[inline]
    fn one_sided(&mut self) -> &mut OneSided {
        self.endpoint.core.begin_one_sided()
    }

    /// Tells the user that the operation is over.
    #[inline]
    pub(super) fn tell(&mut self, kind: AccessKind) {
        let reports = &self.endpoint.core.sending.reports;
        reports.accessed(self.completions, kind, self.access.context, self.ending);
    }

    /// An operation whose request was just sent.
    fn waiting(&self, kind: AccessKind, buffer: UserBuffer) -> Operation {
        Operation::new(self.remote, kind, self.access.context, self.ending, buffer)
    }

    /// Notes an operation that waits for its answer; answers its name.
    #[inline]
    fn note(&mut self, operation: Operation) -> u32 {
        let id = self.one_sided().operations.insert(operation);
        self.endpoint.watch(self.remote);
        id
    }

    /// Sends a request; all of it travels in one message.
    #[inline]
    fn request(&mut self, tag: Tag, trailers: Trailers<'_>) -> Result<(), Error> {
        let (access, remote) = (self.access, self.remote);
        let Endpoint { route, core, .. } = &mut *self.endpoint;
        let route = route.as_mut().ok_or(Error::BadState)?;
        let holds = core.sending.holds(remote);
        let send_queues = &mut core.begin_one_sided().send_queues;
        if send_queues.count(remote) > 0 {
            // What waits for room comes first.
            return Err(Error::Again);
        }
        let mut head = [0; HEAD_LIMIT_BYTES];
        let mut length = write_ranges(access.ranges, &mut head);
        send_queues.scratch.write(0, &head[..length]);
        for trailer in trailers {
            length += send_queues.scratch.copy_in(length, trailer);
        }
        let tag = Tag {
            range_count: access.ranges.len() as u8,
            ..tag
        };
        let mut op = service(remote, tag, send_queues.nameless_token(), true);
        op.cq_data = access.cq_data;
        let payload = send_queues.scratch.payload(length);
        let posted = if holds {
            Err(PostError::Busy)
        } else {
            route.post_send(&op, &payload)
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
        let core = &mut self.endpoint.core;
        if !core.sending.has_room(op.remote, payload.length_bytes()) {
            return Err(Error::Again);
        }
        let queued = Queued {
            op,
            payload: Payload::copy_of(&payload),
            ending: Ending::Told,
            context: 0,
        };
        core.sending.push(&mut core.remotes, queued);
        self.endpoint.watch(self.remote);
        Ok(())
    }

    /// A request that changes memory and whose operands travel with it.
    #[inline]
    fn request_change(
        mut self,
        kind: AccessKind,
        tag: Tag,
        trailers: Trailers<'_>,
    ) -> Result<(), Error> {
        let remote = self.remote;
        let ends_when_sent = self.ends_when_sent;
        let operations = &self.one_sided().operations;
        // One that needs no answer asks for one all the same where another waits to be confirmed:
        // once it has come, operations can be direct again.
        let confirms = || operations.is_unconfirmed(remote) && operations.outstanding(remote) == 0;
        if ends_when_sent && !confirms() {
            self.request(tag, trailers)?;
            self.one_sided().operations.note_unconfirmed(remote);
            self.tell(kind);
            return Ok(());
        }
        let tag = Tag {
            flags: tag.flags | WANTS_ANSWER,
            id: operations.next_id(),
            ..tag
        };
        self.request(tag, trailers)?;
        let mut operation = self.waiting(kind, UserBuffer::empty());
        if ends_when_sent {
            self.tell(kind);
            operation.ending = Ending::Told;
        }
        self.note(operation);
        Ok(())
    }

    /// A request whose answer brings a result.
    #[inline]
    fn request_result(
        mut self,
        kind: AccessKind,
        tag: Tag,
        trailers: Trailers<'_>,
        result: UserBuffer,
    ) -> Result<(), Error> {
        let id = self.one_sided().operations.next_id();
        self.request(Tag { id, ..tag }, trailers)?;
        let operation = self.waiting(kind, result);
        self.note(operation);
        Ok(())
    }

    /// A write whose payload does not fit its request.
    #[inline(never)]
    fn write_long(mut self, payload: &UserBuffer) -> Result<(), Error> {
        let tag = Tag {
            flags: WANTS_ANSWER,
            ..Tag::new(Kind::LongWrite, self.one_sided().operations.next_id())
        };
        self.request(tag, [&UserBuffer::empty(); 2])?;
        let mut operation = self.waiting(AccessKind::Write, payload.clone());
        operation.awaits_sent = true;
        if self.inject {
            // Not longer than the inject limit, which a scratch holds.
            let copy = Scratch::take_for(payload.length_bytes());
            let length = copy.copy_in(0, payload);
            operation.buffer = copy.payload(length);
            operation.copy = Some(copy);
            if self.ends_when_sent {
                self.tell(AccessKind::Write);
                operation.ending = Ending::Told;
            }
        }
        let id = self.note(operation);
        self.send_payload(id);
        Ok(())
    }

    /// Sends the payload of a long write, now or when there is room.
    fn send_payload(&mut self, id: u32) {
        let remote = self.remote;
        let Endpoint { route, core, .. } = &mut *self.endpoint;
        let (Some(route), Some(one_sided)) = (route, &mut core.one_sided) else {
            return;
        };
        let operations = &mut one_sided.operations;
        match operations.send_payload(route, remote, id) {
            Ok(true) => {
                let reports = &mut core.sending.reports;
                operations.payload_sent(reports, self.completions, id, Ok(()));
            }
            Ok(false) => {}
            // A failure is met again by the next progress, where it can be told.
            Err(PostError::Busy | PostError::Failed(_)) => {
                one_sided.send_queues.push(remote, SendEntry::Payload(id));
            }
        }
    }
}
