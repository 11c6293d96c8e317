// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two processes of which one cannot map the other's region (docs/shm-layout.md, clause 3a): their
//! messages go by another route, which the owner knows. Called by loss.
//!
//! Whoever cannot answer a sender takes from its lane what needs no answer, up to the first message
//! that does. That one and all behind it are their sender's again: it finds the lane refused, takes
//! them back, and hands them to its owner in their order.

use std::collections::VecDeque;

use weft_contract::{CompletionLevel, RemoteId, Returned, SendOp, SendToken};
use weft_memory::{BytesView, SCRATCH_BYTES, Scratch, UserBuffer};

use crate::contact::attached::Attached;
use crate::contact::remote::Waiting;
use crate::protocol::cell::{self, Carrier, Cell, Control, Eager, MatchHeader, Rts};
use crate::send::sends::Sends;

/// What a remote that refused our lane has not received, the slot being free after that; and sends
/// that it did take, and can tell us nothing of.
pub(crate) fn take_back(
    remote: RemoteId,
    attached: &mut Attached,
    waiting: VecDeque<Waiting>,
    sends: &mut Sends,
) -> (Vec<Returned>, Vec<SendToken>) {
    let mut taken = TakenBack {
        remote,
        sends: Vec::new(),
        arriving: None,
    };
    taken.read(attached, sends);
    let mut returned = taken.sends;
    for waiting in waiting {
        if let Some(send_id) = waiting.outgoing {
            sends.end(send_id);
        }
        returned.push(Returned {
            op: SendOp {
                inject: false,
                ..waiting.op
            },
            payload: waiting.payload,
            copy: None,
        });
    }
    attached.lane_mut().untaken().0.reset();
    attached.free_slot();
    (returned, sends.lose(remote))
}

/// Sends as they are read back out of a lane.
struct TakenBack {
    remote: RemoteId,
    sends: Vec<Returned>,
    /// A streamed message, and how much of it was read.
    arriving: Option<(Returned, usize)>,
}

impl TakenBack {
    /// Reads all that was not taken. These are our own words, but another process may write there
    /// too: what makes no sense is left out.
    fn read(&mut self, attached: &mut Attached, sends: &mut Sends) {
        let (mut untaken, pool) = attached.lane_mut().untaken();
        while let Some(arrival) = untaken.peek() {
            let length_bytes = arrival.head.length_bytes;
            if cell::is_inline(arrival.head) {
                let Some(payload) = arrival.inline_payload() else {
                    return;
                };
                let op = self.op(MatchHeader::of_inline(&arrival), None);
                let (copy, payload) = copied(payload.length_bytes(), Some(payload));
                self.sends.push(Returned { op, payload, copy });
                untaken.advance_inline(length_bytes);
                continue;
            }
            match Cell::of(&arrival) {
                Ok(Cell::Carrier(carrier)) => {
                    let payload = match arrival.chunk() {
                        Some(stretch) => pool.arrived(stretch),
                        None => arrival.data_payload(),
                    };
                    self.take(carrier, payload, sends);
                }
                Ok(Cell::Control(Control::Rts(rts))) => self.take_rts(&rts, sends),
                Ok(Cell::Control(_)) | Err(_) => {}
            }
            untaken.advance(0);
        }
    }

    fn take(&mut self, carrier: Carrier, payload: Option<BytesView<'_>>, sends: &mut Sends) {
        match (carrier, payload) {
            (Carrier::Eager(eager) | Carrier::Stream(eager), Some(payload)) => {
                self.begin(eager, sends);
                self.fill(payload);
            }
            (Carrier::Piece(_), Some(payload)) => self.fill(payload),
            (Carrier::EarlyRts(rts, _), _) => self.take_rts(&rts, sends),
            _ => {}
        }
    }

    /// The first cell of a message that goes as it is.
    fn begin(&mut self, eager: Eager, sends: &mut Sends) {
        let send_id = eager.receipt.map(|id| id as usize);
        let receipt = send_id.and_then(|id| sends.end(id));
        let op = self.op(eager.header, receipt.map(|outgoing| outgoing.token()));
        let (copy, payload) = copied(eager.length_bytes as usize, None);
        self.arriving = Some((Returned { op, payload, copy }, 0));
    }

    /// A message that was only described is still in its buffer.
    fn take_rts(&mut self, rts: &Rts, sends: &mut Sends) {
        let send_id = rts.send_id as usize;
        if sends.payload(send_id, self.remote).is_none() {
            return;
        }
        let Some(outgoing) = sends.end(send_id) else {
            return;
        };
        let token = outgoing.token();
        let Some((payload, level)) = outgoing.into_payload() else {
            return;
        };
        let op = SendOp {
            level,
            inject: false,
            ..self.op(rts.header, Some(token))
        };
        self.sends.push(Returned {
            op,
            payload,
            copy: None,
        });
    }

    /// A piece of the message that is being read.
    fn fill(&mut self, piece: BytesView<'_>) {
        let Some((send, done)) = &mut self.arriving else {
            return;
        };
        *done += send.payload.fill(*done, piece);
        // One that is not whole waits for room with its sender.
        if *done == send.payload.length_bytes()
            && let Some((send, _)) = self.arriving.take()
        {
            self.sends.push(send);
        }
    }

    /// A send that was told to be complete, unless it has a `token`: it waits for its receipt.
    fn op(&self, header: MatchHeader, token: Option<SendToken>) -> SendOp {
        SendOp {
            remote: self.remote,
            class: header.class,
            tag: header.tag,
            cq_data: header.cq_data,
            level: match token {
                Some(_) => CompletionLevel::Delivery,
                None => CompletionLevel::Inject,
            },
            token: token.unwrap_or(SendToken::NOBODY),
            inject: true,
        }
    }
}

/// Memory for a message whose buffer is the user's again, with what is there of it.
fn copied(length_bytes: usize, bytes: Option<BytesView<'_>>) -> (Option<Scratch>, UserBuffer) {
    let scratch = (length_bytes <= SCRATCH_BYTES).then(Scratch::take);
    let payload = match &scratch {
        Some(scratch) => scratch.payload(length_bytes),
        // What a stream carries at most, for what a lane holds of them: never given back.
        None => UserBuffer::leaked(&[length_bytes]),
    };
    if let Some(bytes) = bytes {
        payload.fill(0, bytes);
    }
    (scratch, payload)
}
