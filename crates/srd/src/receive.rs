// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One packet of a known remote: learn who it is, take its acknowledgement, take its body once (srd-protocol 6.2, 7.2, 12).
//!
//! Called by machine. A packet is checked against everything before anything of it is taken, since what is taken is
//! acknowledged and will not come again.

use weft_wire::{Body, Kind, Message, Packet};

use crate::ack::Standing;
use crate::config::{FIRST_CONTACT_BYTES, MESSAGE_COST_LEAST, MESSAGE_LIMIT};
use crate::events::{Arrival, Event, Failure, Remote};
use crate::flow::{Flow, Shared};
use crate::loss::{self, Heard};
use crate::order::Ready;
use crate::reassembly::Misfit;
use crate::timers::NEVER;

/// When a packet was read, and how long it had waited in our own host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now_ns: u64,
    pub(crate) waited_ns: u64,
    pub(crate) datagram_bytes: usize,
    /// See [`Heard::is_news`]; found out by the flow.
    pub(crate) is_news: bool,
}

/// Why a packet is not taken, and not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reject {
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

impl Flow {
    /// Takes a packet that machine has found to be of this flow. Fast path.
    pub(crate) fn on_packet<'d>(
        &mut self,
        shared: &mut Shared,
        packet: &Packet<'d>,
        moment: Moment,
    ) -> Arrival<'d> {
        let Moment {
            now_ns,
            waited_ns,
            datagram_bytes,
            ..
        } = moment;
        let arrived_ns = now_ns.saturating_sub(waited_ns);
        self.meet(shared, packet, now_ns);
        let is_news = self.silence.is_news(packet.header.sent_ns);
        if is_news {
            self.silence.on_heard(now_ns);
        }
        let moment = Moment { is_news, ..moment };
        self.take_section(shared, packet, &moment);
        let header = &packet.header;
        let delay_ns = shared.config.timing.acknowledgement_delay_ns;
        let reliable = packet.body.kind().is_reliable();
        let is_first = self.received.is_first(header, reliable, is_news);
        match packet.body {
            Body::Probe if is_first => {
                self.received.on_probe(header, arrived_ns);
                return Arrival::Nothing;
            }
            _ if !reliable => return Arrival::Nothing,
            _ => {}
        }
        match self.received.standing(header.sequence) {
            Standing::Duplicate => {
                shared.statistics.duplicate_count += 1;
                if is_first {
                    self.touch(now_ns);
                    self.received.on_heard(header, true, arrived_ns);
                    self.received.want(true, true, now_ns, delay_ns);
                }
                Arrival::Nothing
            }
            Standing::Beyond => {
                shared.statistics.dropped_count += 1;
                Arrival::Nothing
            }
            Standing::Fresh => match self.check(shared, packet) {
                Ok(()) => {
                    self.touch(now_ns);
                    self.received.on_heard(header, true, arrived_ns);
                    self.received.insert(header.sequence, datagram_bytes as u64);
                    self.received
                        .want(header.acknowledge_now, false, now_ns, delay_ns);
                    self.take(shared, packet, now_ns)
                }
                Err(Reject::Violation) => {
                    shared.statistics.violation_count += 1;
                    Arrival::Nothing
                }
                Err(Reject::NoRoom) => {
                    shared.statistics.dropped_count += 1;
                    Arrival::Nothing
                }
            },
        }
    }

    /// Takes what the last packet of a remote acknowledges (srd-protocol 13.4).
    pub(crate) fn on_farewell(&mut self, shared: &mut Shared, packet: &Packet<'_>, now_ns: u64) {
        let moment = Moment {
            now_ns,
            waited_ns: 0,
            datagram_bytes: 0,
            is_news: false,
        };
        self.take_section(shared, packet, &moment);
    }

    /// srd-protocol 6.2.
    fn meet(&mut self, shared: &mut Shared, packet: &Packet<'_>, now_ns: u64) {
        let header = &packet.header;
        let fresh = shared.config.fresh_contact;
        // A greeted stranger names us before it has our hello (srd-protocol 14.6).
        let has_hello = !fresh || header.context != 0;
        self.identity.reach.on_heard(header.path);
        if !self.identity.knows_us && has_hello && header.target == shared.incarnation {
            self.on_known(shared);
        }
        let Some(hello) = &packet.hello else { return };
        if self.identity.port_count != 0 {
            return;
        }
        if self
            .identity
            .learn(hello, packet.header.source, &shared.config)
        {
            shared.unrouted.push(self.remote);
        }
        // Who was contacted first is never greeted: what it sends is taken, since it names the remote as its target.
        self.identity.awaits_greeting = false;
        self.size_datagrams(now_ns);
        self.open_paths(shared);
        self.allowance.learn(hello.receive_limit, 0);
    }

    fn take_section(&mut self, shared: &mut Shared, packet: &Packet<'_>, moment: &Moment) {
        let Moment {
            now_ns,
            waited_ns,
            is_news,
            ..
        } = *moment;
        let possible = match &packet.acknowledgement {
            None => true,
            Some(section) => {
                self.on_size_echo(section, now_ns);
                let (outgoing, events) = (&mut self.outgoing, &mut shared.events);
                let heard = Heard {
                    section,
                    now_ns,
                    waited_ns,
                    lag_ns: shared.departures.lag_ns(section.echo_sent_ns),
                    is_news,
                };
                let result =
                    loss::on_section(&mut self.sender, &heard, &mut shared.statistics, |piece| {
                        let done = outgoing.on_acknowledged(&piece);
                        if let Some(token) = done {
                            events.push_back(Event::Sent { token });
                        }
                    });
                if result.is_ok() {
                    let before = (self.allowance.receive_limit, self.allowance.credit_limit);
                    self.allowance
                        .learn(section.receive_limit, section.credit_limit);
                    if before != (self.allowance.receive_limit, self.allowance.credit_limit) {
                        self.silence.asked_count = 0;
                    }
                }
                result.is_ok()
            }
        };
        if !possible {
            shared.statistics.violation_count += 1;
        }
        let waiting = self.sender.in_flight_bytes > 0;
        if !waiting {
            self.silence.unanswered_ns = NEVER;
        } else if is_news {
            self.silence.unanswered_ns = now_ns;
        }
    }

    fn check(&self, shared: &Shared, packet: &Packet<'_>) -> Result<(), Reject> {
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
                if message.length_bytes > FIRST_CONTACT_BYTES {
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
                let full = self.open_offer_count as usize >= MESSAGE_LIMIT;
                if full || !self.inbox.covers(MESSAGE_COST_LEAST) {
                    Err(Reject::NoRoom)
                } else {
                    Ok(())
                }
            }
            Body::Accept(accept) => require(
                self.outgoing
                    .is_offered(accept.message_id, accept.length_bytes),
            ),
            Body::Data(data) => {
                self.landings.check(data, length)?;
                if self.account.covers(length) {
                    Ok(())
                } else {
                    Err(Reject::NoRoom)
                }
            }
            Body::Receipt(receipt) => require(self.outgoing.awaits_receipt(receipt.message_id)),
            Body::Refusal(refusal) => require(self.outgoing.is_offered(refusal.message_id, 0)),
            Body::Acknowledgement
            | Body::Probe
            | Body::Stale(_)
            | Body::Greeting(_)
            | Body::Alive(_) => Ok(()),
        }
    }

    /// Room for a message of which nothing has come (srd-protocol 11.4, 14.4). What is next in order is always taken,
    /// so that memory full of messages waiting for earlier ones cannot keep those out.
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

    fn take<'d>(&mut self, shared: &mut Shared, packet: &Packet<'d>, now_ns: u64) -> Arrival<'d> {
        let remote = Remote(self.remote);
        match packet.body {
            Body::Eager(message) => return self.take_eager(shared, message, packet.payload),
            Body::Segment(segment) => {
                if self.order.is_new(segment.message.id) {
                    self.inbox.on_arrived(cost(&segment.message));
                    shared.held_bytes += segment.message.length_bytes;
                }
                self.order
                    .keep_segment(segment.message, segment.offset_bytes, packet.payload);
                self.hand_out(shared);
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
                    shared.events.push_back(Event::Landed { landing });
                }
                let (offset_bytes, payload) = (data.offset_bytes, packet.payload);
                return Arrival::Data {
                    remote,
                    landing,
                    offset_bytes,
                    payload,
                };
            }
            _ => self.take_answer(shared, &packet.body),
        }
        Arrival::Nothing
    }

    /// What the remote says of our messages.
    fn take_answer(&mut self, shared: &mut Shared, body: &Body) {
        let event = match body {
            Body::Accept(accept) => {
                let done =
                    self.outgoing
                        .on_accept(accept.message_id, accept.landing, accept.length_bytes);
                done.map(|token| Event::Sent { token })
            }
            Body::Receipt(receipt) => self
                .outgoing
                .on_receipt(receipt.message_id)
                .map(|token| Event::Sent { token }),
            Body::Refusal(refusal) => {
                self.outgoing
                    .on_refusal(refusal.message_id)
                    .map(|token| Event::SendFailed {
                        token,
                        why: Failure::Refused(refusal.reason),
                    })
            }
            _ => None,
        };
        shared.events.extend(event);
    }

    /// A message whose turn it is goes straight to the owner, unless events of earlier ones are still waiting.
    fn take_eager<'d>(
        &mut self,
        shared: &mut Shared,
        message: Message,
        payload: &'d [u8],
    ) -> Arrival<'d> {
        self.inbox.on_arrived(cost(&message));
        if message.id != self.order.expected() || shared.ordered_event_count > 0 {
            shared.held_bytes += message.length_bytes;
            self.order.keep_whole(message, payload);
            self.hand_out(shared);
            return Arrival::Nothing;
        }
        self.order.pass();
        self.on_handed(shared, cost(&message));
        self.hand_out(shared);
        Arrival::Message {
            remote: Remote(self.remote),
            life: self.identity.life,
            message,
            payload,
        }
    }

    fn on_handed(&mut self, shared: &Shared, cost: u64) {
        let window = shared.config.memory.receive_window_bytes;
        if self.inbox.on_handed(cost, window) {
            self.received.want_now();
        }
    }

    /// Hands out every message whose turn has come.
    fn hand_out(&mut self, shared: &mut Shared) {
        let (remote, life) = (Remote(self.remote), self.identity.life);
        while let Some(ready) = self.order.pop() {
            let (event, cost) = match ready {
                Ready::Whole(message, payload) => {
                    shared.held_bytes -= message.length_bytes;
                    (
                        Event::Message {
                            remote,
                            life,
                            message,
                            payload,
                        },
                        cost(&message),
                    )
                }
                Ready::Offer(message) => {
                    self.open_offer_count += 1;
                    let event = Event::Offer {
                        remote,
                        life,
                        message,
                    };
                    (event, MESSAGE_COST_LEAST)
                }
            };
            shared.events.push_back(event);
            shared.ordered_event_count += 1;
            self.on_handed(shared, cost);
        }
    }
}

fn require(holds: bool) -> Result<(), Reject> {
    if holds {
        Ok(())
    } else {
        Err(Reject::Violation)
    }
}

/// Whether packets of this kind may create a flow (srd-protocol 6.3): everything a remote may begin with.
pub(crate) fn may_begin(kind: Kind) -> bool {
    !matches!(kind, Kind::Stale | Kind::Greeting | Kind::Alive)
}
