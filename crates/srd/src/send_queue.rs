// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What has to be sent to one remote: our messages, in turn, and answers to the remote's messages
//! (srd-protocol 11, 12).
//!
//! Called by flow (the owner posts, the remote answers) and by transmit (what leaves next).

use std::collections::VecDeque;

use weft_wire::acknowledgement::ACKNOWLEDGEMENT_BYTES;
use weft_wire::message::MESSAGE_BYTES;
use weft_wire::{Acknowledgement, Body, Message, data};

use crate::config::MESSAGE_LIMIT;
use crate::credit::Allowance;
use crate::events::{Event, Failure, Send};
use crate::identity::{Identity, SECTION_ROOM};
use crate::outgoing::{Form, OutgoingTable};
use crate::sent::Piece;

/// The length of a long message's pieces is rounded down to a multiple of this, if that cuts off
/// less than a 64th. Then each piece begins at the same byte of a cache line as the message, which
/// makes the two reads and two copies of it faster. Measured:
/// docs/lab/2026-11-22-streams-over-one-link.md.
const EVEN_BYTES: u64 = 64;

/// The longest such piece that has room in this many bytes.
fn even_bytes(room_bytes: u64) -> u64 {
    if room_bytes < EVEN_BYTES * EVEN_BYTES {
        return room_bytes;
    }
    room_bytes - room_bytes % EVEN_BYTES
}

/// How many bytes an acknowledgement takes while hardly anything arrives out of order.
const SHORT_SECTION_BYTES: u64 = ACKNOWLEDGEMENT_BYTES as u64 + 8;

/// How long the segments of a message are. There are as few segments as possible, of equal length,
/// so that the kernel sends them in one call. The last one is shorter and leaves room for an
/// acknowledgement (srd-protocol 12.2).
fn segment_bytes(message_bytes: u64, room_bytes: u64) -> u64 {
    let whole = message_bytes + SHORT_SECTION_BYTES;
    whole.div_ceil(whole.div_ceil(room_bytes))
}

/// See the module.
#[derive(Debug)]
pub(crate) struct SendQueue {
    pub(crate) messages: OutgoingTable,
    next_message_id: u64,
    pub(crate) allowance: Allowance,
    /// Accepts, receipts and refusals that have not left yet.
    answers: VecDeque<Piece>,
}

impl SendQueue {
    /// A queue that goes on where an earlier one to the same remote ended, or that begins with
    /// message 0 and an unused allowance.
    pub(crate) fn new(next_message_id: u64, allowance: Allowance) -> Self {
        Self {
            messages: OutgoingTable::default(),
            next_message_id,
            allowance,
            answers: VecDeque::new(),
        }
    }

    pub(crate) fn next_message_id(&self) -> u64 {
        self.next_message_id
    }

    /// Takes a message to send. Up to `segments_bytes` it goes in segments, longer ones are offered
    /// first. Returns false if 64 messages are under way (srd-protocol 12.1, 12.2).
    pub(crate) fn post(&mut self, send: &Send, identity: &Identity, segments_bytes: u64) -> bool {
        if !self.messages.has_room(self.next_message_id) {
            return false;
        }
        let message = Message {
            id: self.next_message_id,
            tag: send.tag.or(send.is_service.then_some(0)),
            cq_data: send.cq_data,
            length_bytes: send.length_bytes,
            wants_receipt: send.wants_receipt,
            is_service: send.is_service,
        };
        self.next_message_id += 1;
        let form = if send.length_bytes <= identity.eager_limit_bytes() {
            Form::Eager
        } else if send.length_bytes <= segments_bytes {
            Form::Segments
        } else {
            Form::Offered
        };
        self.messages.insert(send, message, form);
        true
    }

    /// Queues an answer to a message of the remote; returns false if the owner has answered more
    /// messages than there can be.
    pub(crate) fn answer(&mut self, piece: Piece) -> bool {
        // Offers and unreceipted messages are limited to 64 each, so an owner that answers once
        // never meets this.
        if self.answers.len() >= 4 * MESSAGE_LIMIT {
            return false;
        }
        self.answers.push_back(piece);
        true
    }

    /// The answer that leaves next.
    pub(crate) fn next_answer(&self) -> Option<Piece> {
        self.answers.front().copied()
    }

    /// The piece of a message that leaves next, as far as the remote allows it.
    pub(crate) fn next_piece(&self, identity: &Identity) -> Option<Piece> {
        self.next_announcement(identity)
            .or_else(|| self.next_data(identity))
    }

    fn next_announcement(&self, identity: &Identity) -> Option<Piece> {
        let slot = *self.messages.fresh.front()?;
        let outgoing = self.messages.get(slot)?;
        if !outgoing.is_announced() && outgoing.cost() > self.allowance.receive_left() {
            return None;
        }
        Some(match outgoing.form {
            Form::Eager => Piece::Eager { slot },
            Form::Segments => {
                let room_bytes = identity.segment_room_bytes();
                let length = segment_bytes(outgoing.message.length_bytes, room_bytes);
                Piece::Segment {
                    slot,
                    length: outgoing.left_bytes().min(length) as u16,
                    offset: outgoing.next_bytes,
                }
            }
            Form::Offered | Form::Accepted { .. } => Piece::Offer { slot },
        })
    }

    fn next_data(&self, identity: &Identity) -> Option<Piece> {
        let slot = *self.messages.streams.front()?;
        let outgoing = self.messages.get(slot)?;
        let length = outgoing
            .left_bytes()
            .min(even_bytes(identity.room_bytes(data::DATA_BYTES)))
            .min(self.allowance.credit_left()) as u16;
        (length > 0).then_some(Piece::Data {
            slot,
            length,
            offset: outgoing.next_bytes,
        })
    }

    /// How many bytes of this piece's message may leave, from the piece on.
    pub(crate) fn left_bytes(&self, piece: &Piece) -> u64 {
        let message = piece
            .message_slot()
            .and_then(|slot| self.messages.get(slot));
        let left_bytes = message.map_or(0, |outgoing| outgoing.left_bytes());
        match piece {
            Piece::Data { .. } => left_bytes.min(self.allowance.credit_left()),
            _ => left_bytes,
        }
    }

    /// Whether the next packet has room for an acknowledgement too.
    pub(crate) fn next_is_small(&self, identity: &Identity) -> bool {
        if !self.answers.is_empty() {
            return true;
        }
        let first = self.messages.fresh.front();
        let first = first.and_then(|slot| self.messages.get(*slot));
        first.is_some_and(|outgoing| {
            let bytes = outgoing.message.length_bytes + SECTION_ROOM as u64;
            outgoing.form == Form::Eager && bytes <= identity.room_bytes(MESSAGE_BYTES)
        })
    }

    /// Notes that a piece is put into a packet for the first time; the packet stands for `count`
    /// sequences.
    pub(crate) fn on_piece(&mut self, piece: &Piece, count: u8) {
        match *piece {
            Piece::Accept { .. } | Piece::Receipt { .. } | Piece::Refusal { .. } => {
                self.answers.pop_front();
            }
            Piece::Data { length, .. } => self.allowance.credit_used += u64::from(length),
            Piece::Eager { slot } | Piece::Segment { slot, .. } | Piece::Offer { slot } => {
                let fresh = self.messages.get(slot).filter(|one| !one.is_announced());
                self.allowance.receive_used += fresh.map_or(0, |outgoing| outgoing.cost());
            }
        }
        self.messages.on_piece(piece, count);
    }

    /// Takes the limits that the remote sent with an acknowledgement; returns whether they allow
    /// more than before.
    pub(crate) fn on_limits(&mut self, section: &Acknowledgement) -> bool {
        let before = self.allowance;
        self.allowance
            .learn(section.receive_limit, section.credit_limit);
        before != self.allowance
    }

    /// Whether the remote's answer can be an answer to one of our messages (srd-protocol 12.5).
    pub(crate) fn expects(&self, answer: &Body) -> bool {
        match answer {
            Body::Accept(accept) => self
                .messages
                .is_offered(accept.message_id, accept.length_bytes),
            Body::Receipt(receipt) => self.messages.awaits_receipt(receipt.message_id),
            Body::Refusal(refusal) => self.messages.is_offered(refusal.message_id, 0),
            _ => true,
        }
    }

    /// Takes the remote's answer to one of our messages; returns the event for the owner, if there
    /// is one.
    pub(crate) fn on_answer(&mut self, answer: &Body) -> Option<Event> {
        match answer {
            Body::Accept(accept) => {
                let (id, length_bytes) = (accept.message_id, accept.length_bytes);
                let done = self.messages.on_accept(id, accept.landing, length_bytes);
                done.map(|token| Event::Sent { token })
            }
            Body::Receipt(receipt) => {
                let done = self.messages.on_receipt(receipt.message_id);
                done.map(|token| Event::Sent { token })
            }
            Body::Refusal(refusal) => {
                let why = Failure::Refused(refusal.reason);
                let refused = self.messages.on_refusal(refusal.message_id);
                refused.map(|token| Event::SendFailed { token, why })
            }
            _ => None,
        }
    }

    /// Whether no message is under way and no answer waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.answers.is_empty()
    }

    /// Whether messages have bytes that have not left.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        !self.messages.fresh.is_empty() || !self.messages.streams.is_empty()
    }

    /// Whether there is something to send that the remote need not ask for.
    #[inline]
    pub(crate) fn owes(&self) -> bool {
        !self.messages.fresh.is_empty() || !self.answers.is_empty()
    }

    /// Gives memory back when nothing has to be kept.
    pub(crate) fn trim(&mut self) {
        self.messages.trim();
        if self.answers.is_empty() {
            self.answers = VecDeque::new();
        }
    }

    pub(crate) fn footprint_bytes(&self) -> usize {
        self.messages.footprint_bytes() + self.answers.capacity() * size_of::<Piece>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_few_and_equal_and_the_last_has_room_for_an_acknowledgement() {
        for room_bytes in [1_100, 1_332, 1_364, 3_900, 8_864] {
            for message_bytes in (room_bytes..=65_536).step_by(7) {
                let each = segment_bytes(message_bytes, room_bytes);
                let count = message_bytes.div_ceil(each);
                let last = message_bytes - (count - 1) * each;
                assert!(each <= room_bytes && last + SHORT_SECTION_BYTES <= each);
                let fewest = (message_bytes + SHORT_SECTION_BYTES).div_ceil(room_bytes);
                assert_eq!(
                    count, fewest,
                    "{message_bytes} bytes, room for {room_bytes}"
                );
            }
        }
    }
}
