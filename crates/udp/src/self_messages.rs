// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages to ourselves: they never meet the machine or a socket, and move with the next call of
//! progress. Called by transport.rs; short ones are copied when posted, long ones offered and
//! copied from buffer to buffer.

use std::collections::VecDeque;

use slab::Slab;
use weft_contract::{
    AckToken, CompletionLevel, Envelope, Landing, OfferId, Owner, PostError, Posted, ROUTE_ID_BITS,
    SendOp, SendToken,
};
use weft_memory::{BytesView, BytesViewMut, UserBuffer};

/// Set in our own offers and receipts, to tell them from the machine's, which are numbered from 0:
/// the highest bit that is the route's.
const OWN: u64 = 1 << (ROUTE_ID_BITS - 1);
/// Up to here a message is copied when it is posted. Chosen: as other messages are.
const SHORT_BYTES: usize = 16 << 10;
/// Messages that may wait for progress. Chosen: as many as one remote may have under way, twice.
const WAITING_LIMIT: usize = 128;
/// Long messages are copied in steps of so much.
const STEP_BYTES: usize = 64 << 10;

#[derive(Debug)]
enum Held {
    Copy(Vec<u8>),
    User(UserBuffer),
}

/// A message on its short way.
#[derive(Debug)]
struct SelfMessage {
    envelope: Envelope,
    held: Held,
    /// Who hears of its end, if anybody.
    token: Option<SendToken>,
    /// The end is its delivery.
    wants_receipt: bool,
}

/// All messages to ourselves.
#[derive(Debug, Default)]
pub(crate) struct SelfMessages {
    waiting: VecDeque<SelfMessage>,
    offers: Slab<SelfMessage>,
    receipts: Slab<SendToken>,
    accepted: Vec<(SelfMessage, Landing)>,
    done: Vec<SendToken>,
    steps: Vec<u8>,
}

/// Whether an offer or a receipt is one of ours.
pub(crate) fn is_own(number: u64) -> bool {
    number & OWN != 0
}

impl SelfMessages {
    /// Takes a send.
    pub(crate) fn post(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        if self.waiting.len() >= WAITING_LIMIT {
            return Err(PostError::Busy);
        }
        let length_bytes = payload.length_bytes();
        let copies = op.inject || length_bytes <= SHORT_BYTES;
        let held = if copies {
            let mut bytes = vec![0; length_bytes];
            payload.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
            Held::Copy(bytes)
        } else {
            Held::User(payload.clone())
        };
        let wants_receipt = op.level == CompletionLevel::Delivery;
        // A copy needs the sender no longer.
        let complete = copies && !wants_receipt;
        self.waiting.push_back(SelfMessage {
            envelope: Envelope {
                remote: op.remote,
                class: op.class,
                tag: op.tag,
                cq_data: op.cq_data,
                length_bytes: length_bytes as u64,
            },
            held,
            token: (!complete).then_some(op.token),
            wants_receipt,
        });
        Ok(if complete {
            Posted::Complete
        } else {
            Posted::Pending
        })
    }

    /// Takes delivery of an offer of ours; the payload moves with the next progress.
    pub(crate) fn accept(&mut self, offer: OfferId, landing: Landing) {
        if let Some(message) = self.offers.try_remove((offer.0 & !OWN) as usize) {
            self.accepted.push((message, landing));
        }
    }

    /// Drops an offer of ours.
    pub(crate) fn discard(&mut self, offer: OfferId) {
        let message = self.offers.try_remove((offer.0 & !OWN) as usize);
        self.done.extend(message.and_then(|message| message.token));
    }

    /// A message that was kept has been delivered.
    pub(crate) fn acknowledge(&mut self, ack: AckToken) {
        let token = self.receipts.try_remove((ack.0 & !OWN) as usize);
        self.done.extend(token);
    }

    /// Whether nothing waits for progress. Fast path.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.accepted.is_empty() && self.done.is_empty()
    }

    /// Delivers all that waits; answers how much that was.
    pub(crate) fn deliver<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut events = 0;
        while let Some(message) = self.waiting.pop_front() {
            events += 1;
            match &message.held {
                Held::Copy(_) => self.deliver_short(message, owner),
                Held::User(_) => {
                    let envelope = message.envelope;
                    let offer = self.offers.insert(message);
                    if let Some(landing) = owner.on_offer(&envelope, OfferId(offer as u64 | OWN)) {
                        let message = self.offers.remove(offer);
                        self.accepted.push((message, landing));
                    }
                }
            }
        }
        for (message, landing) in std::mem::take(&mut self.accepted) {
            events += 1;
            self.copy(&message, &landing.buffer);
            owner.on_landed(landing.token, Ok(()));
            self.done.extend(message.token);
        }
        for token in std::mem::take(&mut self.done) {
            events += 1;
            owner.on_sent(token, Ok(()));
        }
        events
    }

    fn deliver_short<O: Owner>(&mut self, message: SelfMessage, owner: &mut O) {
        let Held::Copy(bytes) = &message.held else {
            return;
        };
        let view = BytesView::from_slice(bytes);
        let receipt = message.token.filter(|_| message.wants_receipt);
        let receipt = receipt.map(|token| self.receipts.insert(token));
        let ack = receipt.map(|receipt| AckToken(receipt as u64 | OWN));
        if owner.on_message(&message.envelope, view, ack) || receipt.is_none() {
            if let Some(receipt) = receipt {
                self.receipts.remove(receipt);
            }
            self.done.extend(message.token);
        }
    }

    fn copy(&mut self, message: &SelfMessage, target: &UserBuffer) {
        let Held::User(source) = &message.held else {
            return;
        };
        self.steps.resize(STEP_BYTES, 0);
        let wanted = source.length_bytes().min(target.length_bytes());
        let mut offset = 0;
        while offset < wanted {
            let step = &mut self.steps[..STEP_BYTES.min(wanted - offset)];
            source.drain(offset, &mut BytesViewMut::from_slice(step));
            target.fill(offset, BytesView::from_slice(step));
            offset += step.len();
        }
    }
}
