// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Everything under way with one remote, in both directions; its timers, its end, and its rest (srd-protocol 1, 6.6, 13).
//!
//! Called by machine. Packets come in through receive.rs and go out through transmit.rs.

use std::collections::VecDeque;
use std::net::SocketAddr;

use weft_wire::hello::{ANSWERS_PROBES, DATAGRAM_BYTES_LEAST};
use weft_wire::{Hello, PORT_COUNT};

use crate::ack::Received;
use crate::config::{Config, MESSAGE_LIMIT};
use crate::credit::{Account, Allowance, Inbox, Pool};
use crate::departures::Departures;
use crate::events::{Event, Failure, Remote, Send, Statistics};
use crate::landing::Landings;
use crate::loss;
use crate::order::Order;
use crate::outgoing::{Form, OutgoingTable};
use crate::random::Random;
use crate::reach::Reach;
use crate::sender::Sender;
use crate::sent::Piece;
use crate::silence::Silence;
use crate::sizing::Sizing;
use crate::timers::{Jitter, NEVER};

/// Idleness after which buffers are given back (chosen).
const TRIM_AFTER_NS: u64 = 1_000_000_000;
/// The least time after which a flow that sends nothing is left out of the pool (srd-protocol 11.2).
const STALL_LEAST_NS: u64 = 1_000_000;

/// What all flows of a machine share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    /// Ours.
    pub(crate) incarnation: u64,
    pub(crate) statistics: Statistics,
    pub(crate) events: VecDeque<Event>,
    /// Of them, messages and offers: what later messages must not overtake.
    pub(crate) ordered_event_count: usize,
    pub(crate) pool: Pool,
    pub(crate) random: Random,
    pub(crate) jitter: Jitter,
    pub(crate) penalty: u8,
    pub(crate) departures: Departures,
    /// Payload bytes that wait for their turn, over all flows.
    pub(crate) held_bytes: u64,
    /// Remotes to which our host's routes are not known (srd-protocol 17.3).
    pub(crate) unrouted: Vec<u32>,
}

/// Who the remote is, as far as we know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) address: SocketAddr,
    /// See [`crate::Offer::life`].
    pub(crate) life: u32,
    /// What it calls us; 0 if not known.
    pub(crate) context: u32,
    /// 0 if not known.
    pub(crate) incarnation: u64,
    pub(crate) ports: [u16; PORT_COUNT],
    pub(crate) port_count: u8,
    /// The largest that we send, and of that what each side carries: this host towards it, and it (srd-protocol 3).
    pub(crate) datagram_bytes: u16,
    pub(crate) own_datagram_bytes: u16,
    pub(crate) its_datagram_bytes: u16,
    /// What this host says holds as far as the remote, so that no probe need show it (srd-protocol 16.1).
    pub(crate) is_proven: bool,
    /// It answers probes one by one.
    pub(crate) answers_probes: bool,
    /// A packet of it has named our incarnation (srd-protocol 6.2).
    pub(crate) knows_us: bool,
    /// What it asked us to repeat (srd-protocol 14.6); 0 for nothing.
    pub(crate) cookie: u64,
    /// It takes nothing before we know its incarnation: one packet at a time (srd-protocol 14.6).
    pub(crate) awaits_greeting: bool,
    pub(crate) reach: Reach,
}

impl Identity {
    pub(crate) fn new(address: SocketAddr, own_datagram_bytes: u16, config: &Config) -> Self {
        Self {
            address,
            life: 0,
            reach: Reach::new(config, address.port()),
            context: 0,
            incarnation: 0,
            ports: [0; PORT_COUNT],
            port_count: 0,
            // What is larger waits for the remote's word (srd-protocol 6.1).
            datagram_bytes: DATAGRAM_BYTES_LEAST,
            own_datagram_bytes,
            its_datagram_bytes: DATAGRAM_BYTES_LEAST,
            is_proven: true,
            answers_probes: false,
            knows_us: false,
            cookie: 0,
            awaits_greeting: false,
        }
    }

    /// Answers whether our host is to be asked for routes (srd-protocol 17.3).
    pub(crate) fn learn(&mut self, hello: &Hello, incarnation: u64, config: &Config) -> bool {
        self.context = hello.context;
        self.incarnation = incarnation;
        self.ports = hello.ports;
        self.port_count = hello.port_count;
        self.its_datagram_bytes = hello.datagram_bytes;
        self.answers_probes = hello.features & ANSWERS_PROBES != 0;
        self.reach.learn(hello, config)
    }
}

/// What is kept of a flow when nothing is under way (srd-protocol 6.6).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    pub(crate) identity: Identity,
    next_sequence: u64,
    sent_bytes: u64,
    cumulative: u64,
    received_bytes: u64,
    next_message_id: u64,
    expected_id: u64,
    handed: u64,
    granted_bytes: u64,
    allowance: Allowance,
    newest_ns: u64,
}

impl Rest {
    /// For a new life of the same remote.
    pub(crate) fn anew(before: &Identity, config: &Config) -> Self {
        let mut rest = Self::new(before.address, before.own_datagram_bytes, config);
        rest.identity.is_proven = before.is_proven;
        rest.identity.life = before.life.wrapping_add(1);
        rest
    }

    pub(crate) fn new(address: SocketAddr, own_datagram_bytes: u16, config: &Config) -> Self {
        Self {
            identity: Identity::new(address, own_datagram_bytes, config),
            next_sequence: 0,
            sent_bytes: 0,
            cumulative: 0,
            received_bytes: 0,
            next_message_id: 0,
            expected_id: 0,
            handed: 0,
            granted_bytes: 0,
            allowance: Allowance::new(),
            newest_ns: 0,
        }
    }
}

/// One flow.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) remote: u32,
    pub(crate) identity: Identity,
    pub(crate) sender: Sender,
    pub(crate) received: Received,
    pub(crate) outgoing: OutgoingTable,
    pub(crate) next_message_id: u64,
    pub(crate) allowance: Allowance,
    pub(crate) order: Order,
    pub(crate) inbox: Inbox,
    pub(crate) landings: Landings,
    pub(crate) account: Account,
    /// Accepts, receipts and refusals that have not left yet.
    pub(crate) controls: VecDeque<Piece>,
    /// Offers that the owner has and has not decided.
    pub(crate) open_offer_count: u32,
    pub(crate) silence: Silence,
    /// Waits in the machine's queue for grants.
    pub(crate) awaits_grant: bool,
}

/// What a timer made of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Lives,
    Dead,
    Folds,
}

impl Flow {
    /// Unfolds a rest (srd-protocol 6.1, 6.6).
    pub(crate) fn new(remote: u32, rest: &Rest, shared: &mut Shared, now_ns: u64) -> Self {
        let config = &shared.config;
        let mut sender = Sender::new(
            config,
            rest.next_sequence,
            rest.sent_bytes,
            &mut shared.random,
        );
        let mut identity = rest.identity;
        identity.awaits_greeting = config.fresh_contact && identity.incarnation == 0;
        sender.sizing = Sizing::resume(&identity, now_ns);
        let mut flow = Self {
            remote,
            identity,
            sender,
            received: Received::new(rest.cumulative, rest.received_bytes, rest.newest_ns),
            outgoing: OutgoingTable::default(),
            next_message_id: rest.next_message_id,
            allowance: rest.allowance,
            order: Order::new(rest.expected_id),
            inbox: Inbox::new(
                rest.handed,
                rest.handed + config.memory.receive_window_bytes,
            ),
            landings: Landings::default(),
            account: Account::new(rest.granted_bytes),
            controls: VecDeque::new(),
            open_offer_count: 0,
            silence: Silence::new(now_ns, rest.newest_ns),
            awaits_grant: false,
        };
        if identity.port_count > 0 {
            flow.open_paths(shared);
        }
        flow
    }

    /// Folds an idle flow.
    pub(crate) fn fold(&self) -> Rest {
        Rest {
            identity: self.identity,
            next_sequence: self.sender.ring.next(),
            sent_bytes: self.sender.sent_bytes,
            cumulative: self.received.cumulative(),
            received_bytes: self.received.received_bytes(),
            next_message_id: self.next_message_id,
            expected_id: self.order.expected(),
            handed: self.inbox.handed(),
            granted_bytes: self.account.limit(),
            allowance: self.allowance,
            newest_ns: self.silence.newest_ns,
        }
    }

    /// Takes a message to send. There must be room.
    pub(crate) fn post(&mut self, send: &Send, config: &Config) {
        let message = weft_wire::Message {
            id: self.next_message_id,
            tag: send.tag.or(send.is_service.then_some(0)),
            cq_data: send.cq_data,
            length_bytes: send.length_bytes,
            wants_receipt: send.wants_receipt,
            is_service: send.is_service,
        };
        self.next_message_id += 1;
        let form = if send.length_bytes <= self.eager_limit_bytes() {
            Form::Eager
        } else if send.length_bytes <= config.memory.medium_limit_bytes {
            Form::Segments
        } else {
            Form::Offered
        };
        self.outgoing.insert(send.token, message, form);
    }

    /// Whether messages, offers or landings are open: then the remote must live.
    pub(crate) fn is_busy(&self) -> bool {
        !self.outgoing.is_empty()
            || !self.sender.ring.is_empty()
            || !self.landings.is_empty()
            || !self.controls.is_empty()
            || self.open_offer_count > 0
            || self.silence.watched
    }

    /// Whether the remote still lacks something that it need not ask for: messages, answers.
    pub(crate) fn owes(&self) -> bool {
        !self.sender.ring.is_empty() || !self.outgoing.fresh.is_empty() || !self.controls.is_empty()
    }

    fn is_idle(&self) -> bool {
        !self.is_busy() && self.received.is_idle() && self.order.is_empty()
    }

    /// Bytes want to leave, and the remote has not allowed them (srd-protocol 11.2).
    fn is_starved(&self) -> bool {
        self.sender.in_flight_bytes == 0
            && !self.sender.ring.has_lost()
            && (!self.outgoing.fresh.is_empty() || !self.outgoing.streams.is_empty())
    }

    /// When to ask whether anybody is there (srd-protocol 11.2, 13.2).
    pub(crate) fn ask_ns(&self, shared: &Shared) -> u64 {
        if !self.is_busy() {
            return NEVER;
        }
        if self.is_starved() {
            return self.starved_ask_ns(shared);
        }
        self.quiet_ask_ns(shared)
    }

    /// The same where nothing waits to leave.
    #[inline]
    pub(crate) fn quiet_ask_ns(&self, shared: &Shared) -> u64 {
        self.silence.last_word_ns() + shared.config.timing.dead_after_ns / 5
    }

    fn starved_ask_ns(&self, shared: &Shared) -> u64 {
        let timing = &shared.config.timing;
        let rto_ns = self.sender.round_trip.rto_ns(timing, shared.jitter.ns());
        let wait_ns = (rto_ns << self.silence.asked_count.min(6)).min(timing.rto_ceiling_ns);
        self.silence.last_word_ns() + wait_ns
    }

    #[inline]
    fn stalled_ns(&self) -> u64 {
        if self.account.outstanding_bytes() == 0 {
            return NEVER;
        }
        let patience_ns = (8 * self.sender.round_trip.srtt_ns()).max(STALL_LEAST_NS);
        self.account.stalled_ns(patience_ns).unwrap_or(NEVER)
    }

    fn idle_ns(&self, config: &Config) -> u64 {
        let wait_ns = if self.silence.trimmed {
            config.timing.idle_after_ns
        } else {
            TRIM_AFTER_NS
        };
        self.silence
            .active_ns
            .saturating_add(wait_ns.min(config.timing.idle_after_ns))
    }

    /// When to call [`Flow::on_timeout`] or to ask for packets again; what could leave now does not count.
    #[inline]
    pub(crate) fn deadline_ns(&self, shared: &Shared, now_ns: u64) -> u64 {
        let mut first = self.judged_ns(&shared.config, shared.jitter.ns());
        let (probe_ns, ask_ns) = if self.is_busy() {
            (self.sender.paths.next_probe_ns(), self.ask_ns(shared))
        } else {
            (NEVER, NEVER)
        };
        let leaving = [
            self.received.due_ns(),
            self.heartbeat_ns(&shared.config),
            ask_ns,
            probe_ns,
            self.sender.pacing.due_ns(),
            self.sender.sizing.due_ns(),
        ];
        for at_ns in leaving {
            if at_ns > now_ns {
                first = first.min(at_ns);
            }
        }
        first.max(now_ns + 1)
    }

    /// When [`Flow::on_timeout`] has something to judge: silence, losses, death, idleness. Whatever else a deadline is for wants to
    /// leave.
    #[inline]
    pub(crate) fn judged_ns(&self, config: &Config, jitter_ns: u64) -> u64 {
        let clocks = &self.sender.clocks;
        clocks
            .loss_ns
            .min(self.sender.silence_ns(config, jitter_ns))
            .min(self.stalled_ns())
            .min(self.silence.judged_ns(config.timing.dead_after_ns))
            .min(self.idle_ns(config))
    }

    /// Something may be due, and was to be looked at so long ago.
    pub(crate) fn on_timeout(&mut self, shared: &mut Shared, now_ns: u64, late_ns: u64) -> Outcome {
        let dead_after_ns = shared.config.timing.dead_after_ns;
        self.silence.excuse(now_ns, late_ns, dead_after_ns);
        let can_ask = self.identity.reach.heartbeat_port != 0;
        if now_ns >= self.silence.dead_ns(dead_after_ns)
            || self.silence.judge_refusals(now_ns, dead_after_ns, can_ask)
        {
            return Outcome::Dead;
        }
        if now_ns >= self.sender.clocks.loss_ns {
            loss::find_lost(&mut self.sender, now_ns, &mut shared.statistics);
        }
        let jitter_ns = shared.jitter.ns();
        if now_ns >= self.sender.silence_ns(&shared.config, jitter_ns) {
            let (config, counts) = (&shared.config, &mut shared.statistics);
            loss::on_silence(&mut self.sender, config, jitter_ns, now_ns, counts);
        }
        if now_ns >= self.stalled_ns() {
            self.account.write_off(&mut shared.pool);
        }
        if now_ns >= self.idle_ns(&shared.config) {
            return self.on_idle(shared, now_ns);
        }
        Outcome::Lives
    }

    fn on_idle(&mut self, shared: &Shared, now_ns: u64) -> Outcome {
        let quiet_ns = now_ns - self.silence.active_ns;
        if !self.is_idle() {
            self.silence.active_ns = now_ns;
            return Outcome::Lives;
        }
        if quiet_ns >= shared.config.timing.idle_after_ns {
            return Outcome::Folds;
        }
        self.silence.trimmed = true;
        self.sender.ring.trim();
        self.outgoing.trim();
        self.order.trim();
        self.received.trim(self.silence.newest_ns);
        self.landings = Landings::default();
        self.controls = VecDeque::new();
        Outcome::Lives
    }

    /// Something is done for the owner or by the remote.
    pub(crate) fn touch(&mut self, now_ns: u64) {
        self.silence.active_ns = now_ns;
        self.silence.trimmed = false;
    }

    /// Fails everything under way (srd-protocol 6.4, 13.1).
    pub(crate) fn fail(&mut self, shared: &mut Shared, why: Failure) {
        shared.held_bytes -= self.order.held_bytes();
        self.account.close(&mut shared.pool);
        let sends = self.outgoing.drain().into_iter();
        shared
            .events
            .extend(sends.map(|token| Event::SendFailed { token, why }));
        let landings = self.landings.drain().into_iter();
        shared
            .events
            .extend(landings.map(|landing| Event::LandingFailed { landing, why }));
        let remote = Remote(self.remote);
        shared.events.push_back(Event::RemoteLost { remote, why });
    }

    /// Queues an answer to the remote's message; false when the owner has answered more than there can be.
    pub(crate) fn control(&mut self, piece: Piece) -> bool {
        // Offers and unreceipted messages are limited to 64 each, so an owner that answers once never meets this.
        if self.controls.len() >= 4 * MESSAGE_LIMIT {
            return false;
        }
        self.controls.push_back(piece);
        true
    }

    /// Memory of this flow in bytes, without payloads.
    pub(crate) fn footprint_bytes(&self) -> usize {
        size_of::<Self>()
            + self.sender.ring.footprint_bytes()
            + self.sender.paths.footprint_bytes()
            + self.outgoing.footprint_bytes()
            + self.order.footprint_bytes()
            + self.received.footprint_bytes()
            + self.landings.footprint_bytes()
            + self.controls.capacity() * size_of::<Piece>()
    }
}
