// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The target of one-sided operations: what remotes ask of our memory, carried out as it arrives.
//!
//! Called by service.rs for each request, by state.rs for long results that are sent; puts answers
//! into the send queues.

use std::collections::HashMap;

use slab::Slab;
use weft_contract::{Envelope, Peer, PostError, Posted, RemoteId};
use weft_memory::atomic::{Change, apply};
use weft_memory::{BytesView, UserBuffer};

use super::access::REQUEST_LIMIT_BYTES;
use super::region::{Regions, RequestedAccess};
use super::request::{Keys, Kind, RequestHead, Tag, error_of, reason};
use super::send_queues::{SendEntry, SendQueues, service};
use super::token;
use crate::completion::completions::AccessKind;
use crate::error::Error;

/// What a request does to memory, for its rights.
const READS: RequestedAccess = RequestedAccess {
    read: true,
    write: false,
};
const WRITES: RequestedAccess = RequestedAccess {
    read: false,
    write: true,
};

/// A long write of a remote, whose payload comes in a message of its own.
#[derive(Debug)]
struct Incoming {
    remote: RemoteId,
    id: u32,
    target: UserBuffer,
    cq_data: Option<u64>,
    keys: Keys,
    /// The route has its memory, and may write there.
    lands: bool,
}

/// What a remote's read asked for, too long to be copied: it is sent from where it lies.
#[derive(Debug)]
struct Outgoing {
    id: u32,
    keys: Keys,
    /// `None` once its region was closed.
    buffer: Option<UserBuffer>,
    /// The route has it, and may read there.
    is_sent: bool,
}

/// What a request did to our memory.
pub(super) enum CarriedOut {
    Read,
    Written(AccessKind, Written),
    /// Read, and changed if so.
    Fetched(Option<Written>),
    /// Its payload is still to come.
    NotYet,
}

/// A change of our memory by a remote.
pub(super) struct Written {
    pub(super) remote: RemoteId,
    /// Of its first range.
    pub(super) key: u64,
    pub(super) length_bytes: usize,
    pub(super) cq_data: Option<u64>,
}

/// The memory that a request names, in one buffer. Fast path for one range.
#[inline]
fn resolve(
    regions: &Regions,
    head: &RequestHead,
    requested: RequestedAccess,
) -> Result<UserBuffer, Error> {
    match head.ranges() {
        [only] => regions.resolve(only, requested),
        ranges => {
            let parts = ranges.iter().map(|range| regions.resolve(range, requested));
            let parts: Result<Vec<UserBuffer>, Error> = parts.collect();
            Ok(UserBuffer::joined(parts?.iter()))
        }
    }
}

/// The target's side of one endpoint.
pub(super) struct Target {
    incoming: Slab<Incoming>,
    incoming_by_id: HashMap<(RemoteId, u32), u32>,
    outgoing: Slab<Outgoing>,
    /// Room for operands and results while an atomic operation is carried out.
    workspace: Box<[u8]>,
}

impl Target {
    pub(super) fn new() -> Self {
        Self {
            incoming: Slab::new(),
            incoming_by_id: HashMap::new(),
            outgoing: Slab::new(),
            workspace: vec![0; 2 * REQUEST_LIMIT_BYTES].into(),
        }
    }

    /// Carries out a request.
    ///
    /// # Errors
    /// Why the remote is refused.
    pub(super) fn carry_out(
        &mut self,
        regions: &Regions,
        send_queues: &mut SendQueues,
        envelope: &Envelope,
        tag: Tag,
        request: BytesView<'_>,
    ) -> Result<CarriedOut, Error> {
        let (head, rest) = RequestHead::parse(tag, request).ok_or(error_of(0))?;
        let requested = match tag.kind {
            Kind::Read => READS,
            Kind::Atomic => RequestedAccess {
                read: tag.fetches(),
                write: !tag.atomic().ok_or(error_of(0))?.0.only_reads(),
            },
            _ => WRITES,
        };
        let target = resolve(regions, &head, requested)?;
        let written = Written {
            remote: envelope.remote,
            key: head.first_key(),
            length_bytes: target.length_bytes(),
            cq_data: envelope.cq_data,
        };
        match tag.kind {
            Kind::Write => {
                if target.length_bytes() != rest.length_bytes() {
                    return Err(error_of(0));
                }
                target.fill(0, rest);
                Ok(CarriedOut::Written(AccessKind::Write, written))
            }
            Kind::Atomic => {
                let before = self.change(&target, tag, rest)?;
                if !tag.fetches() {
                    return Ok(CarriedOut::Written(AccessKind::AtomicWrite, written));
                }
                let result = SendEntry::Result(tag.id, send_queues.keep_slice(before));
                send_queues.push(envelope.remote, result);
                Ok(CarriedOut::Fetched(requested.write.then_some(written)))
            }
            Kind::Read => {
                let result = if target.length_bytes() <= REQUEST_LIMIT_BYTES {
                    SendEntry::Result(tag.id, send_queues.keep(&target))
                } else {
                    let number = self.outgoing.insert(Outgoing {
                        id: tag.id,
                        keys: head.keys(),
                        buffer: Some(target),
                        is_sent: false,
                    });
                    SendEntry::LongResult(number as u32)
                };
                send_queues.push(envelope.remote, result);
                Ok(CarriedOut::Read)
            }
            _ => self.expect_payload(envelope, tag.id, head.keys(), target),
        }
    }

    fn expect_payload(
        &mut self,
        envelope: &Envelope,
        id: u32,
        keys: Keys,
        target: UserBuffer,
    ) -> Result<CarriedOut, Error> {
        let remote = envelope.remote;
        if self.incoming_by_id.contains_key(&(remote, id)) {
            return Err(error_of(0));
        }
        let number = self.incoming.insert(Incoming {
            remote,
            id,
            target,
            cq_data: envelope.cq_data,
            keys,
            lands: false,
        });
        self.incoming_by_id.insert((remote, id), number as u32);
        Ok(CarriedOut::NotYet)
    }

    /// Changes the elements of memory one by one; answers what they were, if the remote wants that.
    #[inline]
    fn change(
        &mut self,
        target: &UserBuffer,
        tag: Tag,
        rest: BytesView<'_>,
    ) -> Result<&[u8], Error> {
        let (operator, element) = tag.atomic().ok_or(error_of(0))?;
        let length = target.length_bytes();
        let takes = |takes: bool| if takes { length } else { 0 };
        let operand_bytes = takes(!operator.only_reads());
        let given_bytes = operand_bytes + takes(operator.compares());
        if rest.length_bytes() != given_bytes
            || !length.is_multiple_of(element.size_bytes())
            || length.max(given_bytes) > REQUEST_LIMIT_BYTES
        {
            return Err(error_of(0));
        }
        let (given, before) = self.workspace.split_at_mut(REQUEST_LIMIT_BYTES);
        let given = &mut given[..given_bytes];
        rest.copy_to_slice(given);
        let (operands, comparands) = given.split_at(operand_bytes);
        let change = Change {
            operator,
            element,
            operands,
            comparands,
        };
        let before = &mut before[..takes(tag.fetches())];
        apply(&change, target, before);
        Ok(before)
    }

    /// Where the payload of a remote's long write goes, and its number; [`Self::end_payload`]
    /// follows. `comes_later` says that the route writes there until then.
    pub(super) fn place_of_payload(
        &mut self,
        remote: RemoteId,
        id: u32,
        comes_later: bool,
    ) -> Option<(u32, UserBuffer)> {
        let number = self.incoming_by_id.remove(&(remote, id))?;
        let incoming = self.incoming.get_mut(number as usize)?;
        incoming.lands = comes_later;
        Some((number, incoming.target.clone()))
    }

    /// The payload of a long write is in its place, or is not: answers the initiator's name for it,
    /// and what was written.
    pub(super) fn end_payload(&mut self, number: u32) -> Option<(u32, Written)> {
        let incoming = self.incoming.try_remove(number as usize)?;
        let written = Written {
            remote: incoming.remote,
            key: incoming.keys[0],
            length_bytes: incoming.target.length_bytes(),
            cq_data: incoming.cq_data,
        };
        Some((incoming.id, written))
    }

    /// Sends what a remote's read asked for, from where it lies; or a refusal, if the region was
    /// closed meanwhile.
    pub(super) fn send_result<P: Peer>(
        &mut self,
        route: &mut P,
        remote: RemoteId,
        number: u32,
        nameless: u64,
    ) -> Result<(), PostError> {
        let Some(outgoing) = self.outgoing.get_mut(number as usize) else {
            return Ok(());
        };
        let Some(buffer) = &outgoing.buffer else {
            let tag = Tag::refusal(outgoing.id, reason(Error::KeyRejected));
            let op = service(remote, tag, nameless, true);
            route.post_send(&op, &UserBuffer::empty())?;
            self.end_result(number);
            return Ok(());
        };
        let tag = Tag::new(Kind::Result, outgoing.id);
        let op = service(remote, tag, token::of_result(number), false);
        match route.post_send(&op, buffer)? {
            Posted::Complete => self.end_result(number),
            Posted::Pending => outgoing.is_sent = true,
        }
        Ok(())
    }

    /// A long result is sent, or never will be.
    pub(super) fn end_result(&mut self, number: u32) {
        self.outgoing.try_remove(number as usize);
    }

    /// Refuses whatever was announced for a region and has not begun to move; what moves at this
    /// moment is waited for (docs/one-sided.md, clause 8). Whether nothing moves there now. Setup.
    pub(super) fn leave(&mut self, key: u64, send_queues: &mut SendQueues) -> bool {
        let mut is_left = true;
        let by_id = &mut self.incoming_by_id;
        self.incoming.retain(|_, incoming| {
            if !incoming.keys.contains(&key) {
                return true;
            }
            if incoming.lands {
                is_left = false;
                return true;
            }
            // Its payload finds no operation of that name when it comes, and is dropped.
            by_id.remove(&(incoming.remote, incoming.id));
            let refused = SendEntry::Refused(incoming.id, reason(Error::KeyRejected));
            send_queues.push(incoming.remote, refused);
            false
        });
        for (_, outgoing) in &mut self.outgoing {
            if outgoing.keys.contains(&key) {
                is_left &= !outgoing.is_sent;
                if !outgoing.is_sent {
                    outgoing.buffer = None;
                }
            }
        }
        is_left
    }

    /// A remote is gone: payload of its long writes that has not begun to land never will.
    pub(super) fn remote_lost(&mut self, remote: RemoteId) {
        let incoming = &mut self.incoming;
        self.incoming_by_id.retain(|&(of, _), &mut number| {
            let keep = of != remote;
            if !keep {
                incoming.try_remove(number as usize);
            }
            keep
        });
    }
}
