// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Everything under way with one remote, in both directions (srd-protocol 1, 6, 7, 12): the parts
//! of a flow, what a packet of the remote changes in them, and what is kept of them when nothing is
//! under way.
//!
//! Owned by flows. transmit.rs decides what leaves; timeouts.rs has what happens at deadlines.

use weft_wire::marks::Ecn;
use weft_wire::time::{Instant, Nanos};
use weft_wire::{Acknowledgement, Body, Packet};

use crate::ack::{self, Standing};
use crate::config::{Config, Memory};
use crate::credit::Allowance;
use crate::events::{Arrival, Event, Failure, Remote, Send};
use crate::identity::Identity;
use crate::idleness::Idleness;
use crate::loss::{self, Heard};
use crate::mtu::MtuSearch;
use crate::receiver::{Receiver, ReceiverRest, Reject};
use crate::send_queue::SendQueue;
use crate::sender::Sender;
use crate::shared::Shared;
use crate::silence::Silence;

/// A message that fills at most this many windows is not offered first (chosen: the second window
/// leaves when the acknowledgements of the first one come, which is about when an accept would
/// come).
const UNASKED_WINDOWS: u64 = 2;

/// What is kept of a flow when nothing is under way (srd-protocol 6.6).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    pub(crate) identity: Identity,
    next_sequence: u64,
    sent_bytes: u64,
    next_message_id: u64,
    allowance: Allowance,
    receiver: ReceiverRest,
    newest_ns: Instant,
}

impl Rest {
    /// Of a remote with which nothing was ever under way.
    pub(crate) fn new(identity: Identity) -> Self {
        Self {
            identity,
            next_sequence: 0,
            sent_bytes: 0,
            next_message_id: 0,
            allowance: Allowance::new(),
            receiver: ReceiverRest::default(),
            newest_ns: Instant::START,
        }
    }
}

/// When a packet was read, and how long it had waited in our own host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now_ns: Instant,
    pub(crate) waited_ns: Nanos,
    pub(crate) datagram_bytes: usize,
    pub(crate) ecn: Ecn,
}

/// One flow.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) remote: u32,
    pub(crate) identity: Identity,
    /// What is in flight, when more may leave, and on which path.
    pub(crate) sender: Sender,
    /// Messages and answers that have to be sent.
    pub(crate) queue: SendQueue,
    pub(crate) receiver: Receiver,
    pub(crate) silence: Silence,
    pub(crate) idleness: Idleness,
    pub(crate) mtu_search: MtuSearch,
}

impl Flow {
    /// Makes a flow from what was kept of an earlier one (srd-protocol 6.1, 6.6).
    pub(crate) fn new(remote: u32, rest: &Rest, shared: &mut Shared, now_ns: Instant) -> Self {
        let config = &shared.config;
        let (next, sent_bytes) = (rest.next_sequence, rest.sent_bytes);
        let sender = Sender::new(config, next, sent_bytes, &mut shared.random);
        let mut identity = rest.identity;
        identity.awaits_greeting = config.fresh_contact && identity.incarnation == 0;
        let receiver = Receiver::new(
            &rest.receiver,
            Remote(remote),
            identity.life,
            rest.newest_ns,
            config,
        );
        let mut flow = Self {
            remote,
            identity,
            sender,
            queue: SendQueue::new(rest.next_message_id, rest.allowance),
            receiver,
            silence: Silence::new(now_ns, rest.newest_ns),
            idleness: Idleness::new(now_ns),
            mtu_search: MtuSearch::resume(&identity.size, now_ns),
        };
        if identity.has_hello() {
            flow.open_paths(shared);
            flow.receiver.received.timer.is_asked_in_time = identity.asks_in_time;
        }
        flow
    }

    /// What must be kept of an idle flow.
    pub(crate) fn fold(&self) -> Rest {
        Rest {
            identity: self.identity,
            next_sequence: self.sender.ring.next(),
            sent_bytes: self.sender.sent_bytes,
            next_message_id: self.queue.next_message_id(),
            allowance: self.queue.allowance,
            receiver: self.receiver.rest(),
            newest_ns: self.silence.newest_ns,
        }
    }

    /// Takes a message to send; returns false if there is no room.
    pub(crate) fn post(&mut self, send: &Send, config: &Config, now_ns: Instant) -> bool {
        let segments_bytes = match send.length_bytes <= config.memory.medium_limit_bytes {
            true => send.length_bytes,
            false => segments_bytes(self, config),
        };
        let taken = self.queue.post(send, &self.identity, segments_bytes);
        if taken {
            self.idleness.touch(now_ns);
        }
        taken
    }

    /// Takes a packet that contact has found to be of this flow. Fast path.
    // Inlined: a packet that is not long is read from memory once (measured: 45 instructions).
    #[inline(always)]
    pub(crate) fn on_packet<'d>(
        &mut self,
        shared: &mut Shared,
        packet: &Packet<'d>,
        moment: Moment,
    ) -> Arrival<'d> {
        let now_ns = moment.now_ns;
        let arrived_ns = now_ns.saturating_sub(moment.waited_ns);
        self.meet(shared, packet, now_ns);
        let is_news = self.silence.is_news(packet.header.sent_ns);
        if is_news {
            self.silence.on_heard(now_ns);
        }
        self.take_section(shared, packet, &moment, is_news);
        let header = &packet.header;
        let reliable = packet.body.kind().is_reliable();
        let received = &mut self.receiver.received;
        let is_first = received.is_first(header, reliable, is_news);
        match packet.body {
            Body::Probe if is_first => {
                received.on_probe(header, arrived_ns);
                return Arrival::Nothing;
            }
            _ if !reliable => return Arrival::Nothing,
            _ => {}
        }
        if is_first {
            received.marks.on_packet(header, moment.ecn);
        }
        match received.standing(header.sequence) {
            Standing::Duplicate => {
                shared.statistics.duplicate_count += 1;
                if is_first {
                    self.idleness.touch(now_ns);
                    received.on_heard(header, true, arrived_ns);
                    received.want_for_duplicate(&shared.config.timing, now_ns);
                }
                return Arrival::Nothing;
            }
            Standing::Beyond => {
                shared.statistics.dropped_count += 1;
                return Arrival::Nothing;
            }
            Standing::Fresh => {}
        }
        let answers = self.queue.expects(&packet.body);
        let checked = self.receiver.check(shared, packet);
        match checked.and(answers.then_some(()).ok_or(Reject::Violation)) {
            Ok(()) => {}
            Err(Reject::Violation) => {
                shared.statistics.violation_count += 1;
                return Arrival::Nothing;
            }
            Err(Reject::NoRoom) => {
                shared.statistics.dropped_count += 1;
                return Arrival::Nothing;
            }
        }
        self.idleness.touch(now_ns);
        let received = &mut self.receiver.received;
        received.on_heard(header, true, arrived_ns);
        received.insert_all(header, moment.datagram_bytes as u64);
        ack::want_for(received, packet, moment.ecn, &shared.config.timing, now_ns);
        if let Some(event) = self.queue.on_answer(&packet.body) {
            shared.events.push(event);
        }
        self.receiver.take(shared, packet, now_ns)
    }

    /// Learns from a packet's header and hello who the remote is, and whether it knows us
    /// (srd-protocol 6.2).
    fn meet(&mut self, shared: &mut Shared, packet: &Packet<'_>, now_ns: Instant) {
        let header = &packet.header;
        let fresh = shared.config.fresh_contact;
        // A greeted stranger names us before it has our hello (srd-protocol 14.6).
        let has_hello = !fresh || header.context != 0;
        self.identity.reach.on_heard(header.path);
        if !self.identity.knows_us && has_hello && header.target == shared.incarnation {
            // It knows all our addresses (srd-protocol 17.2).
            self.identity.knows_us = true;
            if self.identity.reach.has_several && self.identity.has_hello() {
                self.open_paths(shared);
            }
        }
        let Some(hello) = &packet.hello else { return };
        if self.identity.has_hello() {
            return;
        }
        let source = packet.header.source;
        if self.identity.learn(hello, source, &shared.config) {
            shared.unrouted.push(self.remote);
        }
        // The side that was contacted first gets no greeting: its packets name the remote as their
        // target, so they are taken.
        self.identity.awaits_greeting = false;
        self.receiver.received.timer.is_asked_in_time = self.identity.asks_in_time;
        self.size_datagrams(now_ns);
        self.open_paths(shared);
        self.queue.allowance.learn(hello.receive_limit, 0);
    }

    /// Call this when something new is known of how large datagrams may be (srd-protocol 16.1).
    pub(crate) fn size_datagrams(&mut self, now_ns: Instant) {
        self.mtu_search = MtuSearch::restart(&mut self.identity.size, now_ns);
        let bytes = self.identity.size.in_use_bytes();
        self.sender.window.set_packet_bytes(bytes);
    }

    /// Call this when more is known of the two hosts' addresses: opens the paths that may be used
    /// (srd-protocol 6.2, 17).
    pub(crate) fn open_paths(&mut self, shared: &mut Shared) {
        let open = self.identity.reach.open(self.identity.knows_us);
        let count = shared.config.path_count;
        self.sender.paths.open(open, count, &mut shared.random);
    }

    /// Takes a packet's acknowledgement. `is_news`: the packet cannot have been replayed.
    pub(crate) fn take_section(
        &mut self,
        shared: &mut Shared,
        packet: &Packet<'_>,
        moment: &Moment,
        is_news: bool,
    ) {
        if let Some(section) = &packet.acknowledgement
            && !self.on_section(shared, section, moment, is_news)
        {
            shared.statistics.violation_count += 1;
        }
        if self.sender.in_flight_bytes == 0 {
            self.silence.unanswered_ns = Instant::NEVER;
        } else if is_news {
            self.silence.unanswered_ns = moment.now_ns;
        }
    }

    /// Takes an acknowledgement section; returns false if no correct remote can have sent it.
    fn on_section(
        &mut self,
        shared: &mut Shared,
        section: &Acknowledgement,
        moment: &Moment,
        is_news: bool,
    ) -> bool {
        let now_ns = moment.now_ns;
        let size = &mut self.identity.size;
        if self.mtu_search.on_echo(size, section, now_ns) {
            self.sender.window.set_packet_bytes(size.in_use_bytes());
        }
        let (messages, events) = (&mut self.queue.messages, &mut shared.events);
        let heard = Heard {
            section,
            now_ns,
            waited_ns: moment.waited_ns,
            send_delay_ns: shared.send_delays.delay_ns(section.echo_sent_ns),
            is_news,
        };
        let statistics = &mut shared.statistics;
        let result = loss::on_section(&mut self.sender, &heard, statistics, |piece| {
            if let Some(token) = messages.on_acknowledged(&piece) {
                events.push(Event::Sent { token });
            }
        });
        if result.is_err() {
            return false;
        }
        if self.queue.on_limits(section) {
            self.silence.asked_count = 0;
        }
        true
    }

    /// The remote answered with a greeting, since it did not know us: it dropped what we had sent,
    /// so all of that is sent again (srd-protocol 14.6).
    pub(crate) fn on_greeting(
        &mut self,
        shared: &mut Shared,
        incarnation: u64,
        cookie: u64,
        now_ns: Instant,
    ) {
        self.identity.incarnation = incarnation;
        self.identity.cookie = cookie;
        self.identity.awaits_greeting = false;
        self.silence.on_heard(now_ns);
        loss::resend_all(&mut self.sender, now_ns);
        if self.sender.ring.is_empty() {
            // Only a probe was sent before. Send one again, so that the remote learns of us.
            self.silence.asked_ns = Instant::START;
        }
        shared.statistics.greeted_count += 1;
    }

    /// Fails everything under way (srd-protocol 6.4, 13.1).
    pub(crate) fn fail(&mut self, shared: &mut Shared, why: Failure) {
        let landings = self.receiver.close(shared);
        for token in self.queue.messages.drain() {
            shared.events.push(Event::SendFailed { token, why });
        }
        for landing in landings {
            shared.events.push(Event::LandingFailed { landing, why });
        }
        let remote = Remote(self.remote);
        shared.events.push(Event::RemoteLost { remote, why });
    }

    /// Memory of this flow in bytes, without payloads.
    pub(crate) fn footprint_bytes(&self) -> usize {
        size_of::<Self>()
            + self.sender.ring.footprint_bytes()
            + self.sender.paths.health.footprint_bytes()
            + self.sender.window.footprint_bytes()
            + self.sender.marks.footprint_bytes()
            + self.queue.footprint_bytes()
            + self.receiver.footprint_bytes()
    }
}

/// The length up to which a message that is posted now goes in segments (srd-protocol 12.1).
fn segments_bytes(flow: &Flow, config: &Config) -> u64 {
    let Memory {
        medium_limit_bytes,
        unasked_limit_bytes,
        ..
    } = config.memory;
    let (sender, queue) = (&flow.sender, &flow.queue);
    let is_alone = queue.messages.is_empty() && sender.flies_no_message();
    let is_known = flow.identity.knows_us && sender.round_trip.srtt_ns() > Nanos::ZERO;
    if !is_alone || !is_known || !sender.ring.recent_losses.are_none() {
        return medium_limit_bytes;
    }
    let carried_bytes = UNASKED_WINDOWS * sender.window.cwnd_bytes();
    let taken_bytes = carried_bytes.min(queue.allowance.receive_left());
    taken_bytes.min(unasked_limit_bytes).max(medium_limit_bytes)
}

/// Takes a long packet. If a part of it has arrived before, this takes what can be taken in a row
/// (srd-protocol 19.2).
#[inline(never)]
pub(crate) fn on_long_packet<'d>(
    flow: &mut Flow,
    shared: &mut Shared,
    packet: &Packet<'d>,
    mut moment: Moment,
) -> Arrival<'d> {
    let received = &mut flow.receiver.received;
    let mut part = *packet;
    if let Some(wanted) = received.wanted_of_long(&packet.header) {
        part = packet.part(wanted.from, wanted.count);
        moment.datagram_bytes -= packet.payload.len() - part.payload.len();
        received.want_for_duplicate(&shared.config.timing, moment.now_ns);
    }
    flow.on_packet(shared, &part, moment)
}
