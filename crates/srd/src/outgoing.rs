// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages on their way out: what of them is sent, acknowledged, accepted, complete (srd-protocol
//! 12). Called by send_queue and transmit.

use std::collections::VecDeque;

use weft_wire::{Body, Data, Message, Receipt, Refusal, Segment};

use crate::config::{MESSAGE_COST_LEAST, MESSAGE_LIMIT, TURN_BYTES};
use crate::events::{Payload, Send};
use crate::sent::Piece;

/// How a message travels (srd-protocol 12.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Eager,
    Segments,
    /// Offered, not accepted yet.
    Offered,
    /// Accepted under this landing.
    Accepted {
        landing: u32,
    },
}

/// One message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) token: u64,
    pub(crate) message: Message,
    pub(crate) form: Form,
    /// See [`crate::Send::is_awaited`].
    pub(crate) is_awaited: bool,
    /// Bytes handed to packets.
    pub(crate) next_bytes: u64,
    /// Bytes to be handed to packets: the length, or what was accepted of it.
    goal_bytes: u64,
    acked_bytes: u64,
    /// Sequences that name this slot and are not acknowledged.
    piece_count: u16,
    receipt: bool,
    announced: bool,
    /// The remote has all that its order waits for: the message, or the offer.
    ordered: bool,
    reported: bool,
}

impl Outgoing {
    /// What it counts against the remote's receive limit (srd-protocol 11.3).
    pub(crate) fn cost(&self) -> u64 {
        match self.form {
            Form::Eager | Form::Segments => self.message.length_bytes.max(MESSAGE_COST_LEAST),
            Form::Offered | Form::Accepted { .. } => MESSAGE_COST_LEAST,
        }
    }

    /// Whether a packet has told the remote of it.
    pub(crate) fn is_announced(&self) -> bool {
        self.announced
    }

    pub(crate) fn left_bytes(&self) -> u64 {
        self.goal_bytes - self.next_bytes
    }

    fn is_complete(&self) -> bool {
        let sent = match self.form {
            Form::Eager => self.announced && self.piece_count == 0,
            Form::Segments | Form::Accepted { .. } => self.acked_bytes == self.goal_bytes,
            Form::Offered => false,
        };
        sent && (self.receipt || !self.message.wants_receipt)
    }
}

/// All messages of one flow, and the order in which they leave.
#[derive(Debug, Default)]
pub(crate) struct OutgoingTable {
    slots: Vec<Option<Outgoing>>,
    /// Messages that have to be announced, in order.
    pub(crate) fresh: VecDeque<u8>,
    /// Accepted messages with bytes to send.
    pub(crate) streams: VecDeque<u8>,
    /// What the first of them has sent in its turn.
    turn_bytes: u64,
    count: usize,
    /// No message below this id is still on its way to its place in the remote's order.
    ordered_below: u64,
}

impl OutgoingTable {
    /// Whether the message with this id, the next one, can be taken (srd-protocol 12.2).
    pub(crate) fn has_room(&mut self, next_id: u64) -> bool {
        if self.count >= MESSAGE_LIMIT {
            return false;
        }
        let near = |below: u64| next_id < below + MESSAGE_LIMIT as u64;
        if !near(self.ordered_below) {
            let open = self
                .slots
                .iter()
                .flatten()
                .filter(|outgoing| !outgoing.ordered);
            let oldest = open.map(|outgoing| outgoing.message.id).min();
            self.ordered_below = oldest.unwrap_or(next_id);
        }
        near(self.ordered_below)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes a message; there must be room.
    pub(crate) fn insert(&mut self, send: &Send, message: Message, form: Form) {
        let outgoing = Outgoing {
            token: send.token,
            message,
            form,
            is_awaited: send.is_awaited,
            next_bytes: 0,
            goal_bytes: message.length_bytes,
            acked_bytes: 0,
            piece_count: 0,
            receipt: false,
            announced: false,
            ordered: false,
            reported: false,
        };
        let slot = match self.slots.iter().position(Option::is_none) {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                self.slots.len() - 1
            }
        };
        self.slots[slot] = Some(outgoing);
        self.count += 1;
        self.fresh.push_back(slot as u8);
    }

    pub(crate) fn get(&self, slot: u8) -> Option<&Outgoing> {
        self.slots.get(usize::from(slot))?.as_ref()
    }

    /// What a piece is on the wire; `None` for an accept, which the receiver knows.
    pub(crate) fn body(&self, piece: &Piece) -> Option<Body> {
        let message = |slot: u8| {
            // A piece holds its slot until it is acknowledged.
            self.get(slot).expect("a piece's message is there").message
        };
        Some(match *piece {
            Piece::Eager { slot } => Body::Eager(message(slot)),
            Piece::Segment { slot, offset, .. } => Body::Segment(Segment {
                message: message(slot),
                offset_bytes: offset,
            }),
            Piece::Offer { slot } => Body::Offer(message(slot)),
            Piece::Data { slot, offset, .. } => {
                let landing = match self.get(slot).map(|outgoing| outgoing.form) {
                    Some(Form::Accepted { landing }) => landing,
                    _ => 0,
                };
                Body::Data(Data {
                    landing,
                    offset_bytes: offset,
                })
            }
            Piece::Receipt { message_id } => Body::Receipt(Receipt { message_id }),
            Piece::Refusal { message_id, reason } => Body::Refusal(Refusal { message_id, reason }),
            Piece::Accept { .. } => return None,
        })
    }

    /// Which bytes of the owner's a piece carries.
    pub(crate) fn payload(&self, piece: &Piece) -> Option<Payload> {
        let outgoing = self.get(piece.message_slot()?)?;
        let (offset_bytes, length_bytes) = match *piece {
            Piece::Eager { .. } => (0, outgoing.message.length_bytes as u32),
            Piece::Segment { length, offset, .. } | Piece::Data { length, offset, .. } => {
                (offset, u32::from(length))
            }
            _ => return None,
        };
        (length_bytes > 0).then_some(Payload {
            token: outgoing.token,
            offset_bytes,
            length_bytes,
        })
    }

    /// A piece is put into a packet for the first time, which stands for so many sequences.
    pub(crate) fn on_piece(&mut self, piece: &Piece, count: u8) {
        let Some(slot) = piece.message_slot() else {
            return;
        };
        let Some(outgoing) = self.slots[usize::from(slot)].as_mut() else {
            return;
        };
        outgoing.announced = true;
        outgoing.piece_count += u16::from(count);
        let mut whole = true;
        if let Piece::Segment { length, .. } | Piece::Data { length, .. } = *piece {
            outgoing.next_bytes += u64::from(length);
            self.turn_bytes += u64::from(length);
            whole = outgoing.left_bytes() == 0;
        }
        if whole {
            let data = matches!(piece, Piece::Data { .. });
            let queue = if data {
                self.turn_bytes = 0;
                &mut self.streams
            } else {
                &mut self.fresh
            };
            queue.pop_front();
        }
    }

    /// A batch has ended: the next stream's turn, if that of the first one is over.
    pub(crate) fn rotate_streams(&mut self) {
        if self.turn_bytes >= TURN_BYTES && self.streams.len() > 1 {
            self.turn_bytes = 0;
            self.streams.rotate_left(1);
        }
    }

    /// A piece is acknowledged. Answers the token of a message that is complete by it.
    pub(crate) fn on_acknowledged(&mut self, piece: &Piece) -> Option<u64> {
        let slot = piece.message_slot()?;
        let outgoing = self.slots[usize::from(slot)].as_mut()?;
        outgoing.piece_count -= 1;
        if let Piece::Segment { length, .. } | Piece::Data { length, .. } = *piece {
            outgoing.acked_bytes += u64::from(length);
        }
        let segments = matches!(piece, Piece::Segment { .. });
        outgoing.ordered |= !segments || outgoing.acked_bytes == outgoing.goal_bytes;
        self.settle(slot)
    }

    fn settle(&mut self, slot: u8) -> Option<u64> {
        let outgoing = self.slots[usize::from(slot)].as_mut()?;
        let news = !outgoing.reported && outgoing.is_complete();
        outgoing.reported |= news;
        let token = outgoing.token;
        self.free(slot);
        news.then_some(token)
    }

    /// Forgets a message that is reported and that no packet names any more.
    fn free(&mut self, slot: u8) {
        let entry = &mut self.slots[usize::from(slot)];
        if entry
            .as_ref()
            .is_some_and(|outgoing| outgoing.reported && outgoing.piece_count == 0)
        {
            *entry = None;
            self.count -= 1;
        }
    }

    fn find(&self, message_id: u64) -> Option<u8> {
        let named = |entry: &Option<Outgoing>| {
            entry
                .as_ref()
                .is_some_and(|outgoing| outgoing.message.id == message_id && !outgoing.reported)
        };
        self.slots.iter().position(named).map(|slot| slot as u8)
    }

    /// Whether an accept or refusal of this message makes sense (srd-protocol 12.5).
    pub(crate) fn is_offered(&self, message_id: u64, length_bytes: u64) -> bool {
        self.find(message_id)
            .and_then(|slot| self.get(slot))
            .is_some_and(|outgoing| {
                outgoing.form == Form::Offered
                    && outgoing.announced
                    && length_bytes <= outgoing.message.length_bytes
            })
    }

    /// An offer was accepted. Answers the token if nothing was wanted of it.
    pub(crate) fn on_accept(
        &mut self,
        message_id: u64,
        landing: u32,
        length_bytes: u64,
    ) -> Option<u64> {
        let slot = self.find(message_id)?;
        let outgoing = self.slots[usize::from(slot)].as_mut()?;
        outgoing.form = Form::Accepted { landing };
        outgoing.ordered = true;
        outgoing.goal_bytes = length_bytes;
        if length_bytes > 0 {
            self.streams.push_back(slot);
        }
        self.settle(slot)
    }

    /// An offer was refused. Answers its token.
    pub(crate) fn on_refusal(&mut self, message_id: u64) -> Option<u64> {
        let slot = self.find(message_id)?;
        let outgoing = self.slots[usize::from(slot)].as_mut()?;
        outgoing.reported = true;
        outgoing.ordered = true;
        let token = outgoing.token;
        self.free(slot);
        Some(token)
    }

    /// Whether a receipt of this message makes sense.
    pub(crate) fn awaits_receipt(&self, message_id: u64) -> bool {
        self.find(message_id)
            .and_then(|slot| self.get(slot))
            .is_some_and(|outgoing| {
                outgoing.message.wants_receipt && !outgoing.receipt && outgoing.announced
            })
    }

    /// A receipt came. Answers the token if the message is complete by it.
    pub(crate) fn on_receipt(&mut self, message_id: u64) -> Option<u64> {
        let slot = self.find(message_id)?;
        self.slots[usize::from(slot)].as_mut()?.receipt = true;
        self.settle(slot)
    }

    /// Tokens of all messages that were not reported, in the order they were posted.
    pub(crate) fn drain(&mut self) -> Vec<u64> {
        let mut open: Vec<(u64, u64)> = self
            .slots
            .drain(..)
            .flatten()
            .filter(|outgoing| !outgoing.reported)
            .map(|outgoing| (outgoing.message.id, outgoing.token))
            .collect();
        open.sort_unstable();
        self.fresh.clear();
        self.streams.clear();
        self.count = 0;
        open.into_iter().map(|pair| pair.1).collect()
    }

    /// Gives memory back when there is nothing to remember.
    pub(crate) fn trim(&mut self) {
        if self.is_empty() {
            *self = Self::default();
        }
    }

    pub(crate) fn footprint_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Option<Outgoing>>()
            + self.fresh.capacity()
            + self.streams.capacity()
    }
}

/// Somebody waits for the end of the message with this token after all.
pub(crate) fn await_end(table: &mut OutgoingTable, token: u64) {
    let mut open = table.slots.iter_mut().flatten();
    if let Some(outgoing) = open.find(|outgoing| outgoing.token == token) {
        outgoing.is_awaited = true;
    }
}
