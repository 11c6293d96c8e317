// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Serving: what remotes ask of our memory, carried out as it arrives, and what they answer to us.
//!
//! Called by progress.rs for every service message. What a remote wrote is checked in request.rs
//! and region.rs before anything is touched; answers are left in parcel.rs, since a transport must
//! not be called from its own callback.

use weft_contract::{Envelope, Landing, LandingToken, RemoteId, TransferError};
use weft_memory::atomic::{Change, apply};
use weft_memory::{BytesView, UserBuffer};

use super::outbox::Parcel;
use super::parcel::each_id;
use super::region::Wish;
use super::request::{FETCHES, Head, Kind, Tag, WANTS_ANSWER};
use super::{
    AccessKind, Incoming, NAMELESS, OURS, OneSided, Outgoing, REQUEST_LIMIT_BYTES, RESULT,
};
use crate::completion::Sinks;
use crate::core::Core;
use crate::error::Error;

/// Refusals that may wait for one remote. Chosen: more than the operations that can wait for an
/// answer; what a remote did not want answered is refused in silence beyond.
const REFUSALS_LIMIT: usize = 1024;

/// A landing that names nothing: what lands there is dropped.
const DROPPED: u64 = OURS | NAMELESS | u32::MAX as u64;

/// Reasons of a refusal, as docs/one-sided.md numbers them.
const REASONS: [Error; 4] = [
    Error::Transfer(TransferError::Corrupt),
    Error::KeyRejected,
    Error::AccessDenied,
    Error::OutOfRange,
];

pub(super) fn reason(error: Error) -> u8 {
    REASONS
        .iter()
        .position(|&known| known == error)
        .unwrap_or(0) as u8
}

fn error_of(reason: u8) -> Error {
    REASONS
        .get(usize::from(reason))
        .copied()
        .unwrap_or(REASONS[0])
}

/// What a request does to memory, for its rights.
const READS: Wish = Wish {
    read: true,
    write: false,
};
const WRITES: Wish = Wish {
    read: false,
    write: true,
};

impl Core {
    /// A service message is at hand.
    #[inline(never)]
    pub(crate) fn serve(&mut self, sinks: &mut Sinks, envelope: &Envelope, payload: BytesView<'_>) {
        self.has_chores = true;
        let one_sided = self.one_sided.get_or_insert_with(OneSided::new);
        let Some(tag) = Tag::parse(envelope.tag) else {
            return;
        };
        let source = (envelope.remote, tag.id);
        let report = &mut self.report;
        match tag.kind {
            Kind::Done => {
                let _ = each_id(payload, |id| {
                    one_sided.answered(envelope.remote, id, Ok(()), report, sinks);
                });
            }
            Kind::Refused => {
                let refused = Err(error_of(tag.code));
                one_sided.answered(envelope.remote, tag.id, refused, report, sinks);
            }
            Kind::Result => {
                let length = envelope.length_bytes;
                let outcome = match one_sided.place_of_result(source.0, source.1, length, false) {
                    Some(buffer) => {
                        buffer.fill(0, payload);
                        Ok(())
                    }
                    None => Err(REASONS[0]),
                };
                one_sided.answered(envelope.remote, tag.id, outcome, report, sinks);
            }
            Kind::Payload => {
                if let Some(slot) = one_sided.incoming_by_id.remove(&source) {
                    if let Some(incoming) = one_sided.incoming.get_mut(slot) {
                        incoming.target.fill(0, payload);
                    }
                    self.end_long_write(sinks, slot, Ok(()));
                }
            }
            Kind::Write | Kind::LongWrite | Kind::Read | Kind::Atomic => {
                self.carry_out(sinks, envelope, tag, payload);
            }
        }
    }

    /// A service message is announced.
    #[inline(never)]
    pub(crate) fn serve_offer(&mut self, envelope: &Envelope) -> Landing {
        let one_sided = self.begin_one_sided();
        let found = Tag::parse(envelope.tag).and_then(|tag| match tag.kind {
            Kind::Result => {
                let length = envelope.length_bytes;
                let buffer = one_sided.place_of_result(envelope.remote, tag.id, length, true)?;
                Some((OURS | u64::from(tag.id), buffer))
            }
            Kind::Payload => {
                let slot = one_sided
                    .incoming_by_id
                    .remove(&(envelope.remote, tag.id))?;
                let incoming = one_sided.incoming.get_mut(slot)?;
                incoming.lands = true;
                Some((OURS | NAMELESS | u64::from(slot), incoming.target.clone()))
            }
            _ => None,
        });
        let (token, buffer) = found.unwrap_or((DROPPED, UserBuffer::empty()));
        Landing {
            token: LandingToken(token),
            buffer,
        }
    }

    /// A landing of ours ended.
    #[inline(never)]
    pub(crate) fn service_landed(
        &mut self,
        sinks: &mut Sinks,
        token: u64,
        outcome: Result<(), TransferError>,
    ) {
        if token & NAMELESS != 0 {
            return self.end_long_write(sinks, token as u32, outcome);
        }
        if let Some(one_sided) = &mut self.one_sided {
            one_sided.landed(token as u32, outcome, &mut self.report, sinks);
        }
    }

    /// A send of ours ended.
    #[inline(never)]
    pub(crate) fn service_sent(
        &mut self,
        sinks: &mut Sinks,
        token: u64,
        outcome: Result<(), TransferError>,
    ) {
        let Some(one_sided) = &mut self.one_sided else {
            return;
        };
        if token & NAMELESS == 0 {
            let outcome = outcome.map_err(Error::Transfer);
            one_sided.payload_sent(token as u32, outcome, &mut self.report, sinks);
        } else if token & RESULT != 0 {
            one_sided.outgoing.remove(token as u32);
        }
    }

    fn end_long_write(&mut self, sinks: &mut Sinks, slot: u32, outcome: Result<(), TransferError>) {
        let Some(one_sided) = &mut self.one_sided else {
            return;
        };
        let Some(incoming) = one_sided.incoming.remove(slot) else {
            return;
        };
        if outcome.is_err() {
            return;
        }
        one_sided
            .outbox
            .push(incoming.remote, Parcel::Done(incoming.id));
        let written = Written {
            remote: incoming.remote,
            key: incoming.keys[0],
            length_bytes: incoming.target.length_bytes(),
            cq_data: incoming.cq_data,
        };
        self.tell_written(sinks, &written, AccessKind::Write);
    }

    fn carry_out(
        &mut self,
        sinks: &mut Sinks,
        envelope: &Envelope,
        tag: Tag,
        request: BytesView<'_>,
    ) {
        let Some(one_sided) = &mut self.one_sided else {
            return;
        };
        let done = match Head::parse(tag, request) {
            None => Err(REASONS[0]),
            Some((head, rest)) => match tag.kind {
                Kind::Write => one_sided.write(sinks, envelope, &head, rest),
                Kind::LongWrite => one_sided.expect_payload(sinks, envelope, tag, &head),
                Kind::Read => one_sided.read(sinks, envelope.remote, tag, &head),
                _ => one_sided.change(sinks, envelope, tag, &head, rest),
            },
        };
        match done {
            Ok(Touched::Written(kind, written)) => {
                if tag.flags & WANTS_ANSWER != 0 {
                    one_sided.outbox.push(envelope.remote, Parcel::Done(tag.id));
                }
                self.tell_written(sinks, &written, kind);
            }
            Ok(Touched::Fetched(written)) => {
                self.report.touched(sinks, AccessKind::AtomicFetch);
                if let Some(written) = written {
                    self.tell_written(sinks, &written, AccessKind::AtomicWrite);
                }
            }
            Ok(Touched::Read) => self.report.touched(sinks, AccessKind::Read),
            Ok(Touched::NotYet) => {}
            Err(error) => {
                let wanted = tag.kind != Kind::Write && tag.kind != Kind::Atomic
                    || tag.flags & (WANTS_ANSWER | FETCHES) != 0;
                if wanted || one_sided.outbox.count(envelope.remote) < REFUSALS_LIMIT {
                    let refused = Parcel::Refused(tag.id, reason(error));
                    one_sided.outbox.push(envelope.remote, refused);
                }
            }
        }
    }

    /// Tells the user that a remote wrote, as far as that was asked for.
    #[inline]
    fn tell_written(&mut self, sinks: &mut Sinks, written: &Written, kind: AccessKind) {
        self.report.touched(sinks, kind);
        if written.length_bytes > 0 {
            let counter = sinks.regions.counter_of(written.key);
            sinks.count(counter);
        }
        if let Some(cq_data) = written.cq_data {
            let source = self.remotes.name_of(written.remote);
            self.report
                .written_with_data(sinks, source, written.length_bytes, cq_data);
        }
    }
}

/// What a request did to our memory.
enum Touched {
    Read,
    Written(AccessKind, Written),
    /// Read, and changed if so.
    Fetched(Option<Written>),
    /// Its payload is still to come.
    NotYet,
}

/// A change of our memory by a remote.
struct Written {
    remote: RemoteId,
    /// Of its first range.
    key: u64,
    length_bytes: usize,
    cq_data: Option<u64>,
}

impl Written {
    fn of(envelope: &Envelope, head: &Head, target: &UserBuffer) -> Self {
        Self {
            remote: envelope.remote,
            key: head.first_key(),
            length_bytes: target.length_bytes(),
            cq_data: envelope.cq_data,
        }
    }
}

/// The memory that a request names, in one buffer. Fast path for one range.
#[inline]
fn resolve(sinks: &Sinks, head: &Head, wish: Wish) -> Result<UserBuffer, Error> {
    match head.ranges() {
        [only] => sinks.regions.resolve(only, wish),
        ranges => {
            let parts: Result<Vec<UserBuffer>, Error> = ranges
                .iter()
                .map(|range| sinks.regions.resolve(range, wish))
                .collect();
            Ok(UserBuffer::joined(parts?.iter()))
        }
    }
}

impl OneSided {
    #[inline]
    fn write(
        &mut self,
        sinks: &Sinks,
        envelope: &Envelope,
        head: &Head,
        payload: BytesView<'_>,
    ) -> Result<Touched, Error> {
        let target = resolve(sinks, head, WRITES)?;
        if target.length_bytes() != payload.length_bytes() {
            return Err(REASONS[0]);
        }
        target.fill(0, payload);
        let written = Written::of(envelope, head, &target);
        Ok(Touched::Written(AccessKind::Write, written))
    }

    fn expect_payload(
        &mut self,
        sinks: &Sinks,
        envelope: &Envelope,
        tag: Tag,
        head: &Head,
    ) -> Result<Touched, Error> {
        let target = resolve(sinks, head, WRITES)?;
        let name = (envelope.remote, tag.id);
        if self.incoming_by_id.contains_key(&name) {
            return Err(REASONS[0]);
        }
        let slot = self.incoming.insert(Incoming {
            remote: envelope.remote,
            id: tag.id,
            target,
            cq_data: envelope.cq_data,
            keys: head.keys(),
            lands: false,
        });
        self.incoming_by_id.insert(name, slot);
        Ok(Touched::NotYet)
    }

    #[inline]
    fn read(
        &mut self,
        sinks: &Sinks,
        remote: RemoteId,
        tag: Tag,
        head: &Head,
    ) -> Result<Touched, Error> {
        let source = resolve(sinks, head, READS)?;
        let parcel = if source.length_bytes() <= REQUEST_LIMIT_BYTES {
            Parcel::Result(tag.id, self.outbox.keep(&source))
        } else {
            Parcel::LongResult(self.outgoing.insert(Outgoing {
                id: tag.id,
                keys: head.keys(),
                buffer: Some(source),
                is_sent: false,
            }))
        };
        self.outbox.push(remote, parcel);
        Ok(Touched::Read)
    }

    #[inline]
    fn change(
        &mut self,
        sinks: &Sinks,
        envelope: &Envelope,
        tag: Tag,
        head: &Head,
        rest: BytesView<'_>,
    ) -> Result<Touched, Error> {
        let (operator, element) = tag.atomic().ok_or(REASONS[0])?;
        let fetches = tag.flags & FETCHES != 0;
        let wish = Wish {
            read: fetches,
            write: !operator.only_reads(),
        };
        let target = resolve(sinks, head, wish)?;
        let length = target.length_bytes();
        let takes = |takes: bool| if takes { length } else { 0 };
        let (operand_bytes, comparand_bytes) =
            (takes(!operator.only_reads()), takes(operator.compares()));
        let given_bytes = operand_bytes + comparand_bytes;
        if rest.length_bytes() != given_bytes
            || length % element.size_bytes() != 0
            || length.max(given_bytes) > REQUEST_LIMIT_BYTES
        {
            return Err(REASONS[0]);
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
        let before = &mut before[..takes(fetches)];
        apply(&change, &target, before);
        let written = Written::of(envelope, head, &target);
        if !fetches {
            return Ok(Touched::Written(AccessKind::AtomicWrite, written));
        }
        let bytes = self.outbox.keep_slice(before);
        self.outbox
            .push(envelope.remote, Parcel::Result(tag.id, bytes));
        Ok(Touched::Fetched(
            (!operator.only_reads()).then_some(written),
        ))
    }

    /// A remote is gone: payload of its long writes that has not begun to land never will.
    pub(super) fn forget_incoming(&mut self, remote: RemoteId) {
        let incoming = &mut self.incoming;
        self.incoming_by_id.retain(|&(of, _), &mut slot| {
            let keep = of != remote;
            if !keep {
                incoming.remove(slot);
            }
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_lead_back_to_their_errors() {
        for error in REASONS {
            assert_eq!(error_of(reason(error)), error);
        }
        assert_eq!(error_of(200), REASONS[0]);
    }
}
