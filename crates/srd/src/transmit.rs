// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chooses which packet of a flow leaves next, and writes its head (srd-protocol 7, 8.5, 10.1, 11
//! to 13, 16). Called by flows, for a flow whose turn it is.

use weft_wire::hello::{ANSWERS_PROBES, ASKS_IN_TIME};
use weft_wire::time::Instant;
use weft_wire::{Accept, Acknowledgement, Body, Header, Hello, Packet, Path, Stale};

use crate::asking;
use crate::events::{Payload, Transmit};
use crate::flow::Flow;
use crate::lengthening::lengthen;
use crate::sent::Piece;
use crate::shared::Shared;

/// The fields of a header that depend on how its packet leaves.
#[derive(Clone, Copy, Debug)]
struct Marks {
    path: Path,
    sequence: u64,
    acknowledge_now: bool,
    is_retransmission: bool,
    /// See [`Header::further_count`].
    further_count: u8,
}

impl Marks {
    /// For a packet that is not acknowledged.
    fn unreliable(path: Path) -> Self {
        Self {
            path,
            sequence: 0,
            acknowledge_now: false,
            is_retransmission: false,
            further_count: 0,
        }
    }
}

/// The turn of one flow: the time, and the place to which its next packet is written.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) flow: &'a mut Flow,
    pub(crate) shared: &'a mut Shared,
    pub(crate) now_ns: Instant,
    pub(crate) place: &'a mut Transmit,
}

impl Turn<'_> {
    /// Writes the next packet, if one can leave now. Fast path.
    pub(crate) fn poll(&mut self) -> bool {
        if let Some(sequence) = self.flow.sender.urgent.take() {
            self.send_again(sequence);
            return true;
        }
        let acknowledges = self.flow.receiver.received.timer.due_ns() <= self.now_ns;
        if acknowledges && !self.next_is_small() {
            self.send_acknowledgement();
            return true;
        }
        if self.flow.mtu_search.due_ns() <= self.now_ns && self.send_size_probe() {
            return true;
        }
        if self.flow.sender.ring.has_lost() {
            let packet_bytes = u64::from(self.flow.identity.size.in_use_bytes());
            if self.flow.sender.may_send(packet_bytes, self.now_ns) {
                let Some(sequence) = self.flow.sender.ring.first_lost() else {
                    return false;
                };
                self.send_again(sequence);
                return true;
            }
        } else if let Some(piece) = self.next_piece(self.now_ns) {
            self.send_piece(piece);
            return true;
        }
        if asking::asks_alone(self.flow, self.shared) {
            return self.ask_behind();
        }
        self.ask_or_acknowledge()
    }

    /// A probe asks for the acknowledgement of what has left, on the path of the newest packet, so
    /// that it does not overtake that packet.
    #[cold]
    fn ask_behind(&mut self) -> bool {
        let sender = &mut self.flow.sender;
        let newest = sender.ring.next().wrapping_sub(1);
        sender.tried.on_asked(newest);
        let path = sender.ring.get(newest).map(|sent| sent.path);
        let path = path.unwrap_or_else(|| sender.paths.pick(self.now_ns, None));
        self.send_probe(path);
        true
    }

    /// Whether the next packet can carry a due acknowledgement.
    fn next_is_small(&self) -> bool {
        let ring = &self.flow.sender.ring;
        !ring.has_lost() && ring.has_room() && self.flow.queue.next_is_small(&self.flow.identity)
    }

    /// The next new piece, if window, pacing and the remote's limits let it leave at this time.
    fn next_piece(&self, now_ns: Instant) -> Option<Piece> {
        let Flow {
            sender,
            queue,
            identity,
            ..
        } = &*self.flow;
        let alone = identity.awaits_greeting && !sender.ring.is_empty();
        if alone || !sender.ring.has_room() {
            return None;
        }
        if let Some(piece) = queue.next_answer() {
            return Some(piece);
        }
        if sender.pacing.due_ns() > now_ns {
            return None;
        }
        let piece = queue.next_piece(identity)?;
        let bytes = u64::from(self.packet_bytes(&piece));
        sender.window_is_open(bytes).then_some(piece)
    }

    /// The most bytes that a packet with this piece has.
    fn packet_bytes(&self, piece: &Piece) -> u16 {
        // Only the length and not the payload itself, which costs more: each packet asks twice.
        let payload_bytes = match *piece {
            Piece::Segment { length, .. } | Piece::Data { length, .. } => length.into(),
            Piece::Eager { slot } => {
                let outgoing = self.flow.queue.messages.get(slot);
                outgoing.map_or(0, |outgoing| outgoing.message.length_bytes)
            }
            _ => 0,
        };
        let identity = &self.flow.identity;
        let most_bytes = identity.full_packet_bytes(payload_bytes);
        most_bytes.min(identity.size.in_use_bytes().into()) as u16
    }

    fn send_piece(&mut self, piece: Piece) {
        let now_ns = self.now_ns;
        self.flow.idleness.touch(now_ns);
        let packet_bytes = self.packet_bytes(&piece);
        let bulk = matches!(piece, Piece::Segment { .. } | Piece::Data { .. });
        if bulk {
            self.flow.sender.before_bulk(piece.is_beginning());
        }
        // If two processes send single messages in turn, one of them answers on the path of the
        // other's message: then both use one pair of ports (srd-protocol 10.1).
        let follows = self.shared.incarnation < self.flow.identity.incarnation;
        let answer = follows.then(|| self.flow.receiver.received.answer_path());
        let path = self.flow.sender.batch_path(packet_bytes, answer, now_ns);
        let long = lengthen(self.flow, piece, packet_bytes, &self.shared.config);
        let piece = long.piece;
        self.flow.queue.on_piece(&piece, long.count);
        let next_bytes = match bulk {
            true => self.next_bytes(long.count),
            false => Some(packet_bytes),
        };
        let sender = &self.flow.sender;
        let bytes = u32::from(long.count) * u32::from(packet_bytes);
        let ends = next_bytes.is_some_and(|next| sender.batch_ends_after(bytes, next));
        let last = bulk && (ends || next_bytes.is_none());
        let hurries = asking::hurries(self.flow, &piece, packet_bytes, now_ns);
        let marks = Marks {
            path,
            sequence: sender.ring.next(),
            acknowledge_now: hurries
                || last && (ends || asking::wants_answer(self.flow, &piece, bytes, now_ns)),
            is_retransmission: false,
            further_count: long.count - 1,
        };
        let is_hurried = marks.acknowledge_now && asking::is_hurried(self.flow, &piece);
        if ends {
            self.flow.queue.messages.rotate_streams();
        }
        if last {
            self.flow.sender.end_batch();
        }
        self.write_piece(&piece, marks);
        self.flow.receiver.received.timer.hold.on_message(now_ns);
        let sender = &mut self.flow.sender;
        let sequence = if long.count == 1 {
            let bytes = self.place.length_bytes() as u16;
            sender.on_fresh(piece, bytes, path, now_ns)
        } else {
            let head_bytes = self.place.head.as_bytes().len() as u16;
            sender.on_long(&long, head_bytes, path, now_ns)
        };
        if marks.acknowledge_now {
            let sender = &mut self.flow.sender;
            sender.tried.on_asked(sequence);
            if let Some(sent) = sender.ring.get_mut(sequence).filter(|_| is_hurried) {
                sent.hurried = true;
            }
        } else if asking::ends_awaited(&self.flow.queue, &piece) {
            self.flow.sender.tried.owes = true;
        }
        if self.place.head.is_ect() {
            self.flow.sender.marks.on_sent(sequence);
        }
        self.shared.batch_has_ended = last;
        self.flow.silence.await_answer(now_ns);
    }

    /// The packet size of another piece that could leave right after the one that is being written,
    /// which stands for `count` sequences. Pacing is left out of account.
    fn next_bytes(&self, count: u8) -> Option<u16> {
        let each_bytes = u32::from(self.flow.identity.size.in_use_bytes());
        if asking::is_full_behind(self.flow, u32::from(count) * each_bytes) {
            return None;
        }
        let paced_ns = self.now_ns.max(self.flow.sender.pacing.due_ns());
        let piece = self.next_piece(paced_ns)?;
        Some(self.packet_bytes(&piece))
    }

    /// Sends a packet again (srd-protocol 8.5).
    fn send_again(&mut self, sequence: u64) {
        let now_ns = self.now_ns;
        let sender = &mut self.flow.sender;
        let Some(sent) = sender.ring.get(sequence).copied() else {
            return self.send_acknowledgement();
        };
        let attempt = sender.round_trip.backoff();
        let path = sender
            .paths
            .pick_again(now_ns, sent.path, sent.sent_ns, attempt);
        let marks = Marks {
            path,
            sequence,
            acknowledge_now: true,
            is_retransmission: true,
            further_count: 0,
        };
        self.write_piece(&sent.piece, marks);
        let bytes = self.place.length_bytes() as u16;
        self.flow.sender.on_again(sequence, bytes, path, now_ns);
        self.flow.silence.tried_count += 1;
        self.shared.statistics.retransmitted_count += 1;
        self.flow.silence.await_answer(now_ns);
    }

    /// Sends a probe for the size of datagrams, if one is due (srd-protocol 16.2). Nothing long
    /// goes to a remote that has not yet proved that it is there (srd-protocol 14.3).
    #[cold]
    fn send_size_probe(&mut self) -> bool {
        let flow = &mut *self.flow;
        if !flow.identity.knows_us {
            return false;
        }
        let (size, heard_ns) = (&flow.identity.size, flow.silence.heard_ns);
        let Some(bytes) = flow.mtu_search.next(size, self.now_ns, heard_ns) else {
            return false;
        };
        let path = flow.sender.paths.pick_at_random(&mut self.shared.random);
        let srtt_ns = flow.sender.round_trip.srtt_ns();
        flow.mtu_search.on_sent(path, self.now_ns, srtt_ns);
        self.send_probe(path);
        self.pad(bytes);
        true
    }

    /// If nothing else leaves: sends a heartbeat request or a probe that is due (srd-protocol 10.3,
    /// 13.2, 13.6), else an acknowledgement that found no packet to go with.
    fn ask_or_acknowledge(&mut self) -> bool {
        let now_ns = self.now_ns;
        if self.flow.heartbeat_ns(&self.shared.config) <= now_ns {
            self.ask_for_heartbeat();
            return true;
        }
        if self.flow.ask_ns(self.shared) <= now_ns {
            self.flow.silence.on_asked(now_ns);
            let path = self.flow.sender.paths.pick(now_ns, None);
            self.send_probe(path);
            return true;
        }
        if self.flow.is_busy() {
            let srtt_ns = self.flow.sender.round_trip.srtt_ns();
            let health = &mut self.flow.sender.paths.health;
            if let Some(path) = health.take_probe(now_ns, srtt_ns) {
                self.send_probe(path);
                if let Some(bytes) = self.flow.identity.size.path_probe_bytes() {
                    self.pad(bytes);
                }
                return true;
            }
        }
        if self.flow.receiver.received.timer.due_ns() <= now_ns {
            self.send_acknowledgement();
            return true;
        }
        false
    }

    /// Asks for a heartbeat, from another port each time, since a path may be dead (srd-protocol
    /// 13.6).
    #[cold]
    fn ask_for_heartbeat(&mut self) {
        self.flow.silence.on_heartbeat(self.now_ns);
        let attempt = self.flow.silence.tried_count as u8;
        let path = self.flow.identity.reach.first_path(attempt);
        self.send_probe(path);
        self.place.to = self.flow.identity.heartbeat_target();
    }

    fn send_probe(&mut self, path: Path) {
        let marks = Marks {
            acknowledge_now: true,
            ..Marks::unreliable(path)
        };
        self.write(&Body::Probe, marks);
    }

    fn pad(&mut self, bytes: u16) {
        let padding = usize::from(bytes).saturating_sub(self.place.length_bytes());
        self.place.padding_bytes = padding as u16;
    }

    /// srd-protocol 7.4.
    fn send_acknowledgement(&mut self) {
        let path = self.flow.receiver.received.ack_only_path();
        let paths = &mut self.flow.sender.paths;
        // Our own routes may not lead to the address over which a packet came: then the answer goes
        // to an address to which they lead (srd-protocol 17.4).
        let path = if paths.may_use(path) {
            path
        } else {
            paths.pick(self.now_ns, None)
        };
        self.flow.receiver.received.timer.want_now();
        self.write(&Body::Acknowledgement, Marks::unreliable(path));
    }

    /// Writes the flow's last packet. It acknowledges all that was taken, since no later packet can
    /// (srd-protocol 13.4).
    pub(crate) fn say_farewell(&mut self, path: Path) {
        let farewell = Stale {
            incarnation: self.shared.incarnation,
            echo_sent_ns: Instant::START,
            home: self.shared.config.home(),
        };
        self.flow.receiver.received.timer.want_now();
        self.write(&Body::Stale(farewell), Marks::unreliable(path));
    }

    fn write_piece(&mut self, piece: &Piece, marks: Marks) {
        let payload = self.flow.queue.messages.payload(piece);
        // The body stays where it was made: moved, it would be copied.
        if let Some(body) = &self.flow.queue.messages.body(piece) {
            self.write_with(body, marks, payload);
        } else if let Piece::Accept {
            message_id,
            landing,
        } = *piece
        {
            let landings = &self.flow.receiver.landings;
            let accept = Accept {
                message_id,
                landing,
                length_bytes: landings.wanted_bytes(landing, message_id),
            };
            self.write(&Body::Accept(accept), marks);
        }
    }

    fn write(&mut self, body: &Body, marks: Marks) {
        self.write_with(body, marks, None);
    }

    fn write_with(&mut self, body: &Body, marks: Marks, payload: Option<Payload>) {
        let acknowledgement = self.section_for(body, payload);
        let hello = (!self.flow.identity.knows_us).then(|| self.hello());
        let identity = &self.flow.identity;
        // Not before the remote has named us: a network that drops marked packets must not prevent
        // first contact. Nor packets that are sent again (RFC 3168, 6.1.5).
        let may_be_marked = identity.knows_us && !marks.is_retransmission;
        let ect =
            self.shared.config.ecn && may_be_marked && self.flow.sender.marks.are_used(marks.path);
        let header = Header {
            path: marks.path,
            acknowledge_now: marks.acknowledge_now,
            retransmission: marks.is_retransmission,
            sealed: false,
            ect,
            context: identity.context,
            source: self.shared.incarnation,
            target: identity.incarnation,
            sent_ns: self.now_ns,
            sequence: marks.sequence,
            further_count: marks.further_count,
        };
        self.place.to = identity.target(marks.path);
        self.place.path = marks.path;
        self.place.payload = payload;
        self.place.padding_bytes = 0;
        self.place.cut_bytes = match marks.further_count {
            0 => 0,
            _ => identity.size.in_use_bytes(),
        };
        self.place.head.clear();
        let (hello, acknowledgement) = (hello.as_ref(), acknowledgement.as_ref());
        Packet::write_parts(&header, hello, acknowledgement, body, &mut self.place.head);
        self.shared.statistics.sent_count += 1;
        self.shared.batch_has_ended = false;
    }

    /// The acknowledgement that goes with a packet, if one is wanted and there is room.
    fn section_for(&mut self, body: &Body, payload: Option<Payload>) -> Option<Acknowledgement> {
        let Flow {
            identity, receiver, ..
        } = &mut *self.flow;
        let payload_bytes = match payload {
            // Filled to the brim, but for the last one of an accepted message.
            _ if matches!(body, Body::Data(_)) => return None,
            Some(payload) => payload.length_bytes.into(),
            None => 0,
        };
        let fits = match body {
            // The last one has room, and a long packet has.
            Body::Segment(_) => {
                let section_bytes = receiver.received.section_bytes();
                payload_bytes + section_bytes <= identity.segment_room_bytes()
                    || payload_bytes > identity.size.in_use_bytes().into()
            }
            _ => identity.full_packet_bytes(payload_bytes) <= identity.size.in_use_bytes().into(),
        };
        if !fits {
            return None;
        }
        receiver.section(self.now_ns, self.shared.penalty)
    }

    /// The hello in which we describe ourselves, until the remote has named us.
    #[cold]
    fn hello(&self) -> Hello {
        let config = &self.shared.config;
        Hello {
            context: self.flow.remote + 1,
            features: ANSWERS_PROBES | ASKS_IN_TIME,
            datagram_bytes: self.flow.identity.size.own_bytes(),
            ports: config.ports,
            port_count: config.port_count,
            addresses: config.addresses,
            receive_limit: self.flow.receiver.inbox.limit(),
            cookie: self.flow.identity.cookie,
            address: config.address,
            heartbeat_port: config.heartbeat_port,
        }
    }
}
