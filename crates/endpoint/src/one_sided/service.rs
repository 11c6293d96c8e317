// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Service messages as they arrive: answers to our operations, and requests of remotes, which are
//! carried out at once.
//!
//! Made by arrivals.rs for each; tells the user on both sides. What a remote wrote is checked in
//! request.rs and region.rs before anything is touched. Answers are put into the send queues, since
//! a transport must not be called from its own callback.

use weft_contract::{Envelope, Landing, LandingToken, TransferError};
use weft_memory::{BytesView, UserBuffer};

use super::region::Regions;
use super::request::{FETCHES, Kind, Tag, WANTS_ANSWER, error_of, reason};
use super::send_queues::{SendEntry, each_id};
use super::state::OneSided;
use super::target::{CarriedOut, Written};
use super::token;
use crate::completion::completions::{AccessKind, Completions};
use crate::completion::receive::ReceiveReports;
use crate::completion::transmit::TransmitReports;
use crate::error::Error;
use crate::remotes::Remotes;

/// Refusals that may wait for one remote. Chosen: more than the operations that can wait for an
/// answer; what a remote did not want answered is refused in silence beyond.
const REFUSALS_LIMIT: usize = 1024;

/// What hears one-sided operations of one endpoint.
pub(crate) struct Service<'a> {
    pub(crate) one_sided: &'a mut OneSided,
    /// For operations of ours.
    pub(crate) transmit: &'a mut TransmitReports,
    /// For operations of remotes.
    pub(crate) receive: &'a ReceiveReports,
    pub(crate) remotes: &'a Remotes,
    pub(crate) completions: &'a mut Completions,
    pub(crate) regions: &'a Regions,
}

impl Service<'_> {
    /// A service message is at hand.
    #[inline(never)]
    pub(crate) fn message(&mut self, envelope: &Envelope, payload: BytesView<'_>) {
        let Some(tag) = Tag::parse(envelope.tag) else {
            return;
        };
        let remote = envelope.remote;
        match tag.kind {
            Kind::Done => each_id(payload, |id| self.answered(envelope, id, Ok(()))),
            Kind::Refused => self.answered(envelope, tag.id, Err(error_of(tag.code))),
            Kind::Result => {
                let operations = &mut self.one_sided.operations;
                let length = envelope.length_bytes;
                let place = operations.place_of_result(remote, tag.id, length, false);
                let outcome = match place {
                    Some(buffer) => {
                        buffer.fill(0, payload);
                        Ok(())
                    }
                    None => Err(error_of(0)),
                };
                self.answered(envelope, tag.id, outcome);
            }
            Kind::Payload => {
                let target = &mut self.one_sided.target;
                if let Some((number, buffer)) = target.place_of_payload(remote, tag.id, false) {
                    buffer.fill(0, payload);
                    self.end_long_write(number, Ok(()));
                }
            }
            Kind::Write | Kind::LongWrite | Kind::Read | Kind::Atomic => {
                self.carry_out(envelope, tag, payload);
            }
        }
    }

    fn answered(&mut self, envelope: &Envelope, id: u32, outcome: Result<(), Error>) {
        let operations = &mut self.one_sided.operations;
        operations.answered(
            self.transmit,
            self.completions,
            envelope.remote,
            id,
            outcome,
        );
    }

    /// A service message is announced; answers where it goes.
    #[inline(never)]
    pub(crate) fn offer(&mut self, envelope: &Envelope) -> Landing {
        let remote = envelope.remote;
        let found = Tag::parse(envelope.tag).and_then(|tag| match tag.kind {
            Kind::Result => {
                let operations = &mut self.one_sided.operations;
                let length = envelope.length_bytes;
                let buffer = operations.place_of_result(remote, tag.id, length, true)?;
                Some((token::of_operation(tag.id), buffer))
            }
            Kind::Payload => {
                let target = &mut self.one_sided.target;
                let (number, buffer) = target.place_of_payload(remote, tag.id, true)?;
                Some((token::of_incoming(number), buffer))
            }
            _ => None,
        });
        let (token, buffer) = found.unwrap_or((token::DROPPED, UserBuffer::empty()));
        Landing {
            token: LandingToken(token),
            buffer,
        }
    }

    /// A landing of ours ended.
    #[inline(never)]
    pub(crate) fn landed(&mut self, token: u64, outcome: Result<(), TransferError>) {
        match token::operation(token) {
            None => self.end_long_write(token as u32, outcome),
            Some(id) => {
                let operations = &mut self.one_sided.operations;
                operations.landed(self.transmit, self.completions, id, outcome);
            }
        }
    }

    /// A send of ours ended.
    #[inline(never)]
    pub(crate) fn sent(&mut self, token: u64, outcome: Result<(), TransferError>) {
        if let Some(id) = token::operation(token) {
            let outcome = outcome.map_err(Error::Transfer);
            let operations = &mut self.one_sided.operations;
            operations.payload_sent(self.transmit, self.completions, id, outcome);
        } else if let Some(number) = token::result(token) {
            self.one_sided.target.end_result(number);
        }
    }

    fn end_long_write(&mut self, number: u32, outcome: Result<(), TransferError>) {
        let ended = self.one_sided.target.end_payload(number);
        let (Some((id, written)), Ok(())) = (ended, outcome) else {
            return;
        };
        let send_queues = &mut self.one_sided.send_queues;
        send_queues.push(written.remote, SendEntry::Done(id));
        self.tell_written(&written, AccessKind::Write);
    }

    fn carry_out(&mut self, envelope: &Envelope, tag: Tag, request: BytesView<'_>) {
        let OneSided {
            target,
            send_queues,
            ..
        } = &mut *self.one_sided;
        let done = target.carry_out(self.regions, send_queues, envelope, tag, request);
        match done {
            Ok(CarriedOut::Written(kind, written)) => {
                if tag.flags & WANTS_ANSWER != 0 {
                    send_queues.push(envelope.remote, SendEntry::Done(tag.id));
                }
                self.tell_written(&written, kind);
            }
            Ok(CarriedOut::Fetched(written)) => {
                self.receive
                    .accessed(self.completions, AccessKind::AtomicFetch);
                if let Some(written) = written {
                    self.tell_written(&written, AccessKind::AtomicWrite);
                }
            }
            Ok(CarriedOut::Read) => self.receive.accessed(self.completions, AccessKind::Read),
            Ok(CarriedOut::NotYet) => {}
            Err(error) => {
                let wanted = tag.kind != Kind::Write && tag.kind != Kind::Atomic
                    || tag.flags & (WANTS_ANSWER | FETCHES) != 0;
                if wanted || send_queues.count(envelope.remote) < REFUSALS_LIMIT {
                    let refused = SendEntry::Refused(tag.id, reason(error));
                    send_queues.push(envelope.remote, refused);
                }
            }
        }
    }

    /// Tells the user that a remote wrote, as far as that was asked for.
    #[inline]
    fn tell_written(&mut self, written: &Written, kind: AccessKind) {
        self.receive.accessed(self.completions, kind);
        if written.length_bytes > 0 {
            self.completions.count(self.regions.counter_of(written.key));
        }
        if let Some(cq_data) = written.cq_data {
            let source = self.receive.source(self.remotes, written.remote);
            let length_bytes = written.length_bytes;
            self.receive
                .written_with_data(self.completions, source, length_bytes, cq_data);
        }
    }
}
