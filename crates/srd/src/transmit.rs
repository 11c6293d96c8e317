// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which packet of a flow leaves next, and its head (srd-protocol 7, 8.5, 10.1, 11, 12). Called by machine.

use weft_wire::header::HEADER_BYTES;
use weft_wire::hello::ANSWERS_PROBES;
use weft_wire::message::MESSAGE_BYTES;
use weft_wire::{
    Accept, Body, Data, Header, Hello, Packet, Path, Receipt, Refusal, Segment, Stale, data,
};

use crate::ack::Limits;
use crate::events::{Payload, Transmit};
use crate::flow::{Flow, Shared};
use crate::outgoing::Form;
use crate::sent::Piece;
use crate::timers::NEVER;

/// Room for an acknowledgement section with a full bitmap.
const SECTION_ROOM: usize = 64 + 128;

/// Pieces of long messages are cut to a multiple of this, where that is less than a 64th of them,
/// so that each begins on the same byte of a cache line as the message: it is read twice and copied
/// twice on its way. Measured: docs/lab/2026-11-22-streams-over-one-link.md.
const EVEN_BYTES: u64 = 64;

/// The longest even piece for so much room.
fn even_bytes(room_bytes: u64) -> u64 {
    if room_bytes < EVEN_BYTES * EVEN_BYTES {
        return room_bytes;
    }
    room_bytes - room_bytes % EVEN_BYTES
}

/// How a packet is to leave.
#[derive(Clone, Copy, Debug)]
struct Departure {
    path: Path,
    sequence: u64,
    acknowledge_now: bool,
    again: bool,
    now_ns: u64,
}

impl Departure {
    /// Of a packet that is not acknowledged.
    fn unreliable(path: Path, now_ns: u64) -> Self {
        Self {
            path,
            sequence: 0,
            acknowledge_now: false,
            again: false,
            now_ns,
        }
    }
}

impl Flow {
    /// The longest message that is sure to fit one packet, with the first packet's hello.
    pub(crate) fn eager_limit_bytes(&self) -> u64 {
        u64::from(self.identity.datagram_bytes)
            - (HEADER_BYTES + self.hello_bytes() + MESSAGE_BYTES) as u64
    }

    fn hello_bytes(&self) -> usize {
        usize::from(self.identity.reach.hello_bytes)
    }

    fn room_bytes(&self, body_bytes: usize) -> u64 {
        let hello = if self.identity.knows_us {
            0
        } else {
            self.hello_bytes()
        };
        u64::from(self.identity.datagram_bytes) - (HEADER_BYTES + hello + body_bytes) as u64
    }

    /// Writes the next packet to `place`, if one can leave now. Fast path.
    pub(crate) fn poll(&mut self, shared: &mut Shared, now_ns: u64, place: &mut Transmit) -> bool {
        if let Some(sequence) = self.sender.urgent.take() {
            self.send_again(shared, sequence, now_ns, place);
            return true;
        }
        if self.received.due_ns() <= now_ns && !self.next_is_small() {
            self.send_acknowledgement(shared, now_ns, place);
            return true;
        }
        if let Some(bytes) = self.size_to_try(now_ns) {
            self.send_size_probe(shared, bytes, now_ns, place);
            return true;
        }
        if self.sender.ring.has_lost() {
            let packet_bytes = u64::from(self.identity.datagram_bytes);
            if self.sender.may_send(packet_bytes, now_ns) {
                let Some(sequence) = self.sender.ring.first_lost() else {
                    return false;
                };
                self.send_again(shared, sequence, now_ns, place);
                return true;
            }
        } else if let Some(piece) = self.next_piece(now_ns) {
            self.send_piece(shared, piece, now_ns, place);
            return true;
        }
        self.poll_questions(shared, now_ns, place)
    }

    /// Whether the next packet can carry a due acknowledgement.
    fn next_is_small(&self) -> bool {
        if self.sender.ring.has_lost() || !self.sender.ring.has_room() {
            return false;
        }
        if !self.controls.is_empty() {
            return true;
        }
        let first = self
            .outgoing
            .fresh
            .front()
            .and_then(|slot| self.outgoing.get(*slot));
        first.is_some_and(|outgoing| {
            outgoing.form == Form::Eager
                && outgoing.message.length_bytes + SECTION_ROOM as u64
                    <= self.room_bytes(MESSAGE_BYTES)
        })
    }

    /// The next new piece that everything allows to leave.
    fn next_piece(&self, now_ns: u64) -> Option<Piece> {
        let alone = self.identity.awaits_greeting && !self.sender.ring.is_empty();
        if alone || !self.sender.ring.has_room() {
            return None;
        }
        if let Some(piece) = self.controls.front() {
            return Some(*piece);
        }
        if self.sender.pacing.due_ns() > now_ns {
            return None;
        }
        let piece = self.next_fresh().or_else(|| self.next_data())?;
        let bytes = u64::from(self.packet_bytes(&piece));
        self.sender.window_is_open(bytes).then_some(piece)
    }

    /// At most so many bytes leave for a piece.
    fn packet_bytes(&self, piece: &Piece) -> u16 {
        let payload_bytes = match *piece {
            Piece::Segment { length, .. } | Piece::Data { length, .. } => u64::from(length),
            Piece::Eager { slot } => {
                let outgoing = self.outgoing.get(slot);
                outgoing.map_or(0, |outgoing| outgoing.message.length_bytes)
            }
            _ => 0,
        };
        let most = (HEADER_BYTES + self.hello_bytes() + MESSAGE_BYTES + SECTION_ROOM) as u64;
        (payload_bytes + most).min(u64::from(self.identity.datagram_bytes)) as u16
    }

    fn next_fresh(&self) -> Option<Piece> {
        let slot = *self.outgoing.fresh.front()?;
        let outgoing = self.outgoing.get(slot)?;
        if !outgoing.is_announced() && outgoing.cost() > self.allowance.receive_left() {
            return None;
        }
        Some(match outgoing.form {
            Form::Eager => Piece::Eager { slot },
            Form::Segments => {
                let length = outgoing
                    .left_bytes()
                    .min(self.room_bytes(MESSAGE_BYTES + 8)) as u16;
                Piece::Segment {
                    slot,
                    length,
                    offset: outgoing.next_bytes,
                }
            }
            Form::Offered | Form::Accepted { .. } => Piece::Offer { slot },
        })
    }

    fn next_data(&self) -> Option<Piece> {
        let slot = *self.outgoing.streams.front()?;
        let outgoing = self.outgoing.get(slot)?;
        let length = outgoing
            .left_bytes()
            .min(even_bytes(self.room_bytes(data::DATA_BYTES)))
            .min(self.allowance.credit_left()) as u16;
        (length > 0).then_some(Piece::Data {
            slot,
            length,
            offset: outgoing.next_bytes,
        })
    }

    fn send_piece(&mut self, shared: &mut Shared, piece: Piece, now_ns: u64, place: &mut Transmit) {
        self.touch(now_ns);
        match piece {
            Piece::Accept { .. } | Piece::Receipt { .. } | Piece::Refusal { .. } => {
                self.controls.pop_front();
            }
            Piece::Data { length, .. } => self.allowance.credit_used += u64::from(length),
            Piece::Eager { slot } | Piece::Segment { slot, .. } | Piece::Offer { slot } => {
                if let Some(outgoing) = self.outgoing.get(slot) {
                    let cost = if outgoing.is_announced() {
                        0
                    } else {
                        outgoing.cost()
                    };
                    self.allowance.receive_used += cost;
                }
            }
        }
        let packet_bytes = self.packet_bytes(&piece);
        self.outgoing.on_piece(&piece);
        // Of two that talk one by one, one follows the other: then both use one pair of ports (srd-protocol 10.1).
        let follows = shared.incarnation < self.identity.incarnation;
        let answer = follows.then(|| self.received.answer_path());
        let path = self.sender.batch_path(packet_bytes, answer, now_ns);
        let bulk = matches!(piece, Piece::Segment { .. } | Piece::Data { .. });
        let ends = self.sender.batch_ends_after(packet_bytes);
        let last = bulk && (ends || !self.more_follows(now_ns));
        // srd-protocol 7.5: bulk asks for an answer at the end of a batch, or when nothing follows.
        if ends {
            self.outgoing.rotate_streams();
        }
        let departure = Departure {
            path,
            sequence: self.sender.ring.next(),
            acknowledge_now: last,
            again: false,
            now_ns,
        };
        if last {
            self.sender.end_batch();
        }
        self.write_piece(shared, &piece, departure, place);
        let bytes = place.length_bytes() as u16;
        self.sender.on_fresh(piece, bytes, path, now_ns);
        shared.departures.batch_has_ended = last;
        self.wait_for_answer(now_ns);
    }

    /// Whether another piece could leave right behind the one that is being written, pace aside.
    fn more_follows(&self, now_ns: u64) -> bool {
        let two = 2 * u64::from(self.identity.datagram_bytes);
        self.sender.window_is_open(two)
            && self
                .next_piece(now_ns.max(self.sender.pacing.due_ns()))
                .is_some()
    }

    fn wait_for_answer(&mut self, now_ns: u64) {
        self.silence.unanswered_ns = self.silence.unanswered_ns.min(now_ns);
    }

    /// srd-protocol 8.5.
    fn send_again(
        &mut self,
        shared: &mut Shared,
        sequence: u64,
        now_ns: u64,
        place: &mut Transmit,
    ) {
        let Some(sent) = self.sender.ring.get(sequence).copied() else {
            return self.send_acknowledgement(shared, now_ns, place);
        };
        let attempt = self.sender.round_trip.backoff();
        let path = self
            .sender
            .paths
            .pick_again(now_ns, sent.path, sent.sent_ns, attempt);
        let departure = Departure {
            path,
            sequence,
            acknowledge_now: true,
            again: true,
            now_ns,
        };
        self.write_piece(shared, &sent.piece, departure, place);
        let bytes = place.length_bytes() as u16;
        self.sender.on_again(sequence, bytes, path, now_ns);
        self.silence.tried_count += 1;
        shared.statistics.retransmitted_count += 1;
        self.wait_for_answer(now_ns);
    }

    pub(crate) fn send_probe(
        &mut self,
        shared: &mut Shared,
        path: Path,
        now_ns: u64,
        place: &mut Transmit,
    ) {
        let departure = Departure {
            acknowledge_now: true,
            ..Departure::unreliable(path, now_ns)
        };
        self.write(shared, &Body::Probe, departure, place);
    }

    /// srd-protocol 7.4.
    pub(crate) fn send_acknowledgement(
        &mut self,
        shared: &mut Shared,
        now_ns: u64,
        place: &mut Transmit,
    ) {
        let path = self.received.lone_path();
        // What came over an address that our own routes do not lead to is answered where they lead (srd-protocol 17.4).
        let path = if self.sender.paths.may_use(path) {
            path
        } else {
            self.sender.paths.pick(now_ns, None)
        };
        let departure = Departure::unreliable(path, now_ns);
        self.received.want_now();
        self.write(shared, &Body::Acknowledgement, departure, place);
    }

    /// The flow's last packet: all that was taken is acknowledged with it, since nothing can be later (srd-protocol 13.4).
    pub(crate) fn write_farewell(
        &mut self,
        shared: &mut Shared,
        path: Path,
        now_ns: u64,
    ) -> Transmit {
        let departure = Departure::unreliable(path, now_ns);
        let stale = Stale {
            incarnation: shared.incarnation,
            echo_sent_ns: 0,
            home: shared.config.home(),
        };
        self.received.want_now();
        let mut farewell = Transmit::blank();
        self.write(shared, &Body::Stale(stale), departure, &mut farewell);
        farewell
    }

    fn body(&self, piece: &Piece) -> Body {
        let message = |slot: u8| {
            // A piece holds its slot until it is acknowledged (outgoing.rs).
            self.outgoing
                .get(slot)
                .expect("a piece's message is there")
                .message
        };
        match *piece {
            Piece::Eager { slot } => Body::Eager(message(slot)),
            Piece::Segment { slot, offset, .. } => Body::Segment(Segment {
                message: message(slot),
                offset_bytes: offset,
            }),
            Piece::Offer { slot } => Body::Offer(message(slot)),
            Piece::Data { slot, offset, .. } => {
                let landing = match self.outgoing.get(slot).map(|outgoing| outgoing.form) {
                    Some(Form::Accepted { landing }) => landing,
                    _ => 0,
                };
                Body::Data(Data {
                    landing,
                    offset_bytes: offset,
                })
            }
            Piece::Accept {
                message_id,
                landing,
            } => {
                let length_bytes = self.landings.wanted_bytes(landing, message_id);
                Body::Accept(Accept {
                    message_id,
                    landing,
                    length_bytes,
                })
            }
            Piece::Receipt { message_id } => Body::Receipt(Receipt { message_id }),
            Piece::Refusal { message_id, reason } => Body::Refusal(Refusal { message_id, reason }),
        }
    }

    fn payload(&self, piece: &Piece) -> Option<Payload> {
        let (slot, offset_bytes, length) = match *piece {
            Piece::Eager { slot } => (
                slot,
                0,
                self.outgoing.get(slot)?.message.length_bytes as u32,
            ),
            Piece::Segment {
                slot,
                length,
                offset,
            }
            | Piece::Data {
                slot,
                length,
                offset,
            } => (slot, offset, u32::from(length)),
            _ => return None,
        };
        let token = self.outgoing.get(slot)?.token;
        (length > 0).then_some(Payload {
            token,
            offset_bytes,
            length_bytes: length,
        })
    }

    fn payload_room(&self, body: &Body) -> usize {
        match body {
            Body::Eager(message) => message.length_bytes as usize,
            // Bulk packets are filled to the brim when they first leave.
            Body::Segment(_) | Body::Data(_) => usize::from(self.identity.datagram_bytes),
            _ => 0,
        }
    }

    fn write_piece(
        &mut self,
        shared: &mut Shared,
        piece: &Piece,
        departure: Departure,
        place: &mut Transmit,
    ) {
        self.write(shared, &self.body(piece), departure, place);
        place.payload = self.payload(piece);
    }

    fn write(
        &mut self,
        shared: &mut Shared,
        body: &Body,
        departure: Departure,
        place: &mut Transmit,
    ) {
        let identity = &self.identity;
        let hello = (!identity.knows_us).then(|| Hello {
            context: self.remote + 1,
            features: ANSWERS_PROBES,
            datagram_bytes: identity.own_datagram_bytes,
            ports: shared.config.ports,
            port_count: shared.config.port_count,
            addresses: shared.config.addresses,
            receive_limit: self.inbox.limit(),
            cookie: identity.cookie,
            address: shared.config.address,
            heartbeat_port: shared.config.heartbeat_port,
        });
        let fixed = HEADER_BYTES + self.hello_bytes() + MESSAGE_BYTES + SECTION_ROOM;
        let fits = fixed + self.payload_room(body) <= usize::from(identity.datagram_bytes);
        let section;
        let acknowledgement = if fits && self.received.due_ns() != NEVER {
            let limits = Limits {
                penalty: shared.penalty,
                receive_limit: self.inbox.tell(),
                credit_limit: self.account.limit(),
            };
            section = self.received.take(departure.now_ns, &limits);
            Some(&section)
        } else {
            None
        };
        let header = Header {
            path: departure.path,
            acknowledge_now: departure.acknowledge_now,
            retransmission: departure.again,
            sealed: false,
            context: identity.context,
            source: shared.incarnation,
            target: identity.incarnation,
            sent_ns: departure.now_ns,
            sequence: departure.sequence,
        };
        place.to = identity.target(departure.path);
        place.path = departure.path;
        place.payload = None;
        place.padding_bytes = 0;
        place.head.clear();
        let sections = (hello.as_ref(), acknowledgement);
        Packet::write_parts(&header, sections, body, &mut place.head);
        shared.statistics.sent_count += 1;
        shared.departures.batch_has_ended = false;
    }
}
