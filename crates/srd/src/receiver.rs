// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receiving half of a flow: what arrives once, in its sender's order, within what it was
//! allowed (srd-protocol 7.2, 11, 12).
//!
//! Called by flow, with packets that are of this remote. A packet is checked against everything
//! before anything of it is taken, since what is taken is acknowledged and will not come again.

use weft_wire::time::Instant;
use weft_wire::{Acknowledgement, Body, Message, Packet, Segment};

use crate::ack::{Limits, Received};
use crate::config::{Config, MESSAGE_COST_LEAST, MESSAGE_LIMIT, UNASKED_BYTES};
use crate::credit::{Account, Inbox, Pool};
use crate::events::{Arrival, Event, Offer, PostError, Remote};
use crate::landing::Landings;
use crate::order::{Kept, Order, Ready};
use crate::reassembly::Misfit;
use crate::sent::Piece;
use crate::shared::Shared;

/// Below this much unused credit a grant is told at once (chosen: four batches are more than an
/// acknowledgement's way).
const GRANT_SOON_BYTES: u64 = 4 * crate::config::BATCH_BYTES as u64;

/// Why a packet is not taken, and not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reject {
    /// srd-protocol 12.5.
    Violation,
    /// srd-protocol 11.4, 14.4.
    NoRoom,
}

impl From<Misfit> for Reject {
    fn from(misfit: Misfit) -> Self {
        match misfit {
            Misfit::Overlap => Self::Violation,
            Misfit::Full => Self::NoRoom,
        }
    }
}

fn cost(message: &Message) -> u64 {
    message.length_bytes.max(MESSAGE_COST_LEAST)
}

/// What is kept of a receiver when nothing is under way (srd-protocol 6.6).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiverRest {
    cumulative: u64,
    received_bytes: u64,
    expected_id: u64,
    handed: u64,
    granted_bytes: u64,
}

/// Offers that the owner has and has not decided.
#[derive(Debug)]
pub(crate) struct Offers {
    /// See [`Offer::life`].
    life: u32,
    open_count: u32,
}

impl Offers {
    fn check(&self, offer: Offer) -> Result<(), PostError> {
        if self.open_count == 0 || self.life != offer.life {
            return Err(PostError::Unknown);
        }
        Ok(())
    }

    /// The owner has accepted or declined an offered message.
    pub(crate) fn decide(&mut self, offer: Offer) -> Result<(), PostError> {
        self.check(offer)?;
        self.open_count -= 1;
        Ok(())
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Receiver {
    remote: Remote,
    /// Which sequences have arrived, and when to say so.
    pub(crate) received: Received,
    pub(crate) order: Order,
    pub(crate) inbox: Inbox,
    pub(crate) landings: Landings,
    pub(crate) account: Account,
    pub(crate) offers: Offers,
    /// Waits in the machine's queue for grants.
    pub(crate) awaits_grant: bool,
}

impl Receiver {
    /// Goes on from a rest, with a remote that was heard up to its `newest_ns`.
    pub(crate) fn new(
        rest: &ReceiverRest,
        remote: Remote,
        life: u32,
        newest_ns: Instant,
        config: &Config,
    ) -> Self {
        let limit = rest.handed + config.memory.receive_credit_bytes;
        Self {
            remote,
            received: Received::new(rest.cumulative, rest.received_bytes, newest_ns),
            order: Order::new(rest.expected_id),
            inbox: Inbox::new(rest.handed, limit),
            landings: Landings::default(),
            account: Account::new(rest.granted_bytes),
            offers: Offers {
                life,
                open_count: 0,
            },
            awaits_grant: false,
        }
    }

    /// Of an idle one.
    pub(crate) fn rest(&self) -> ReceiverRest {
        ReceiverRest {
            cumulative: self.received.cumulative(),
            received_bytes: self.received.received_bytes(),
            expected_id: self.order.expected(),
            handed: self.inbox.handed(),
            granted_bytes: self.account.limit(),
        }
    }

    /// Whether a reliable packet that brings something of the remote's messages can be taken.
    pub(crate) fn check(&self, shared: &Shared, packet: &Packet<'_>) -> Result<(), Reject> {
        let length = packet.payload.len() as u64;
        match &packet.body {
            Body::Eager(message) => {
                self.order.check_whole(message)?;
                self.check_room(shared, message)
            }
            Body::Segment(segment) => {
                let message = &segment.message;
                self.order
                    .check_segment(message, segment.offset_bytes, length)?;
                if message.length_bytes > UNASKED_BYTES {
                    return Err(Reject::Violation);
                }
                if self.order.is_new(message.id) {
                    self.check_room(shared, message)
                } else {
                    Ok(())
                }
            }
            Body::Offer(message) => {
                self.order.check_whole(message)?;
                let full = self.offers.open_count as usize >= MESSAGE_LIMIT;
                if full || !self.inbox.covers(MESSAGE_COST_LEAST) {
                    Err(Reject::NoRoom)
                } else {
                    Ok(())
                }
            }
            Body::Data(data) => {
                self.landings.check(data, length)?;
                if self.account.covers(length) {
                    Ok(())
                } else {
                    Err(Reject::NoRoom)
                }
            }
            _ => Ok(()),
        }
    }

    /// Room for a message of which nothing has come (srd-protocol 11.4, 14.4). What is next in
    /// order is always taken, so that memory full of messages waiting for earlier ones cannot keep
    /// those out.
    fn check_room(&self, shared: &Shared, message: &Message) -> Result<(), Reject> {
        let next = message.id == self.order.expected();
        let held = shared.held_bytes + message.length_bytes;
        let fits = next || held <= shared.config.memory.held_limit_bytes;
        if fits && self.inbox.covers(cost(message)) {
            Ok(())
        } else {
            Err(Reject::NoRoom)
        }
    }

    /// Takes a checked packet.
    pub(crate) fn take<'d>(
        &mut self,
        shared: &mut Shared,
        packet: &Packet<'d>,
        now_ns: Instant,
    ) -> Arrival<'d> {
        match packet.body {
            Body::Eager(message) => return self.take_eager(shared, message, packet.payload),
            Body::Segment(segment) => {
                return self.take_segment(shared, segment, packet.payload);
            }
            Body::Offer(message) => {
                self.inbox.on_arrived(MESSAGE_COST_LEAST);
                self.order.keep_offer(message);
                self.hand_out(shared);
            }
            Body::Data(data) => {
                let length = packet.payload.len() as u64;
                self.account.on_arrived(length, &mut shared.pool, now_ns);
                let Some((landing, full)) = self.landings.insert_piece(&data, length) else {
                    return Arrival::Nothing;
                };
                if full {
                    shared.events.push(Event::Landed { landing });
                }
                return Arrival::Data {
                    remote: self.remote,
                    landing,
                    offset_bytes: data.offset_bytes,
                    payload: packet.payload,
                };
            }
            _ => {}
        }
        Arrival::Nothing
    }

    /// A message whose turn it is goes straight to the owner, unless events of earlier ones are
    /// still waiting.
    fn take_eager<'d>(
        &mut self,
        shared: &mut Shared,
        message: Message,
        payload: &'d [u8],
    ) -> Arrival<'d> {
        self.inbox.on_arrived(cost(&message));
        if message.id != self.order.expected() || shared.events.has_ordered() {
            shared.held_bytes += message.length_bytes;
            self.order.keep_whole(message, payload);
            self.hand_out(shared);
            return Arrival::Nothing;
        }
        self.order.pass();
        self.on_handed(shared, cost(&message));
        self.hand_out(shared);
        Arrival::Message {
            remote: self.remote,
            life: self.offers.life,
            message,
            payload,
        }
    }

    /// A piece of a message goes straight to where it belongs if the message's turn has come.
    fn take_segment<'d>(
        &mut self,
        shared: &mut Shared,
        segment: Segment,
        payload: &'d [u8],
    ) -> Arrival<'d> {
        let message = &segment.message;
        if self.order.is_new(message.id) {
            self.inbox.on_arrived(cost(message));
            if message.id == self.order.expected() && !shared.events.has_ordered() {
                return Arrival::Begun {
                    remote: self.remote,
                    life: self.offers.life,
                    segment,
                    payload,
                };
            }
            shared.held_bytes += message.length_bytes;
        }
        match self.put(shared, &segment, payload) {
            None => Arrival::Nothing,
            Some(landing) => Arrival::Data {
                remote: self.remote,
                landing,
                offset_bytes: segment.offset_bytes,
                payload,
            },
        }
    }

    /// A message has begun; its pieces go to the landing, or are kept until it is whole.
    pub(crate) fn begin(
        &mut self,
        shared: &mut Shared,
        segment: &Segment,
        payload: &[u8],
        landing: Option<u64>,
    ) {
        let message = &segment.message;
        if !self.order.is_new(message.id) {
            return;
        }
        match landing {
            None => shared.held_bytes += message.length_bytes,
            Some(landing) => self.order.land(*message, landing),
        }
        self.put(shared, segment, payload);
    }

    /// Puts a piece to its message, and hands out what is whole by it. Answers the landing that the
    /// piece goes to, if the message has one.
    fn put(&mut self, shared: &mut Shared, segment: &Segment, payload: &[u8]) -> Option<u64> {
        let kept = self
            .order
            .keep_segment(segment, payload, &mut shared.spares);
        let landing = match kept {
            Kept::Here => None,
            Kept::Lands(landing, false) => return Some(landing),
            Kept::Lands(landing, true) => {
                shared.events.push(Event::Landed { landing });
                self.on_handed(shared, cost(&segment.message));
                Some(landing)
            }
        };
        self.hand_out(shared);
        landing
    }

    fn on_handed(&mut self, shared: &Shared, cost: u64) {
        let window = shared.config.memory.receive_credit_bytes;
        if self.inbox.on_handed(cost, window) {
            self.received.timer.want_now();
        }
    }

    /// Hands out every message whose turn has come.
    fn hand_out(&mut self, shared: &mut Shared) {
        let (remote, life) = (self.remote, self.offers.life);
        while let Some(ready) = self.order.pop() {
            let (event, cost) = match ready {
                Ready::Whole(message, payload) => {
                    shared.held_bytes -= message.length_bytes;
                    let event = Event::Message {
                        remote,
                        life,
                        message,
                        payload,
                    };
                    (event, cost(&message))
                }
                Ready::Offer(message) => {
                    self.offers.open_count += 1;
                    let event = Event::Offer {
                        remote,
                        life,
                        message,
                    };
                    (event, MESSAGE_COST_LEAST)
                }
            };
            shared.events.push(event);
            self.on_handed(shared, cost);
        }
    }

    /// The owner takes an offered message, into a landing of its own name. Answers what to tell the
    /// remote.
    pub(crate) fn accept(
        &mut self,
        shared: &mut Shared,
        offer: Offer,
        landing: u64,
        length_bytes: u64,
    ) -> Result<Piece, PostError> {
        self.offers.check(offer)?;
        let message_id = offer.message_id;
        let mut name = 0;
        if length_bytes > 0 {
            name = self
                .landings
                .insert(landing, message_id, length_bytes)
                .ok_or(PostError::Busy)?;
            self.account.want(length_bytes);
        } else {
            shared.events.push(Event::Landed { landing });
        }
        self.offers.decide(offer)?;
        Ok(Piece::Accept {
            message_id,
            landing: name,
        })
    }

    /// The owner keeps so many bytes unread; answers whether the remote is to hear of a new limit.
    pub(crate) fn set_unread(&mut self, bytes: u64, config: &Config) -> bool {
        let window = config.memory.receive_credit_bytes;
        let tell = self.inbox.set_unread(bytes, window);
        if tell {
            self.received.timer.want_now();
        }
        tell
    }

    /// The acknowledgement, to be sent now; `None` if none is wanted.
    pub(crate) fn section(&mut self, now_ns: Instant, penalty: u8) -> Option<Acknowledgement> {
        if self.received.timer.due_ns() == Instant::NEVER {
            return None;
        }
        let limits = Limits {
            penalty,
            receive_limit: self.inbox.tell(),
            credit_limit: self.account.limit(),
        };
        Some(self.received.take(now_ns, &limits))
    }

    /// Gives a batch of credit to the sender, which hears of it soon (srd-protocol 11.1).
    pub(crate) fn grant(&mut self, pool: &mut Pool, now_ns: Instant) {
        // A sender with much unused credit hears of more with its next acknowledgement.
        if self.account.outstanding_bytes() < GRANT_SOON_BYTES {
            self.received.timer.want_now();
        }
        self.account.grant(pool, now_ns);
    }

    /// Whether offers or landings are open: then the remote must live.
    pub(crate) fn is_busy(&self) -> bool {
        !self.landings.is_empty() || self.offers.open_count > 0 || self.order.landing().is_some()
    }

    /// Whether nothing is kept, and all is acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.received.is_idle() && self.order.is_empty()
    }

    /// The flow ends: answers the landings that will not be full.
    pub(crate) fn close(&mut self, shared: &mut Shared) -> Vec<u64> {
        shared.held_bytes -= self.order.held_bytes();
        self.account.close(&mut shared.pool);
        let mut landings = self.landings.drain();
        landings.extend(self.order.landing());
        landings
    }

    /// Gives memory back when there is nothing to remember: nothing is newer than `newest_ns`.
    pub(crate) fn trim(&mut self, newest_ns: Instant) {
        self.order.trim();
        self.received.trim(newest_ns);
        if self.landings.is_empty() {
            self.landings = Landings::default();
        }
    }

    pub(crate) fn footprint_bytes(&self) -> usize {
        self.order.footprint_bytes()
            + self.received.footprint_bytes()
            + self.landings.footprint_bytes()
    }
}
