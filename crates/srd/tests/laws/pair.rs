// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two machines or a few, a virtual clock, and links that delay, lose, double, reorder, damage and
//! swallow datagrams.
//!
//! Everything depends on the seed alone. The world checks by itself that no byte is handed out
//! twice and that the machines' invariants hold after every step.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;

use weft_srd::random::Random;
use weft_srd::{Arrival, Config, Ecn, Event, Instant, Nanos, Offer, Origin};
use weft_srd::{Remote, Send, Transmit};
use weft_wire::{Message, Path};

pub use crate::host::{Host, Landing};
use crate::links::{FIRST_PORT, config_of, datagrams_of, is_whole, link_ip, place_of};
pub use crate::links::{
    Got, HEARTBEAT_PORT, MS, Policy, Recorded, SECOND, US, Weather, address, config, pattern, seeds,
};
use crate::links::{routes, sealed};

type Flying = Reverse<(u64, u64, usize)>;

// structure: allow struct-fields because a test sets each by itself
pub struct World {
    pub now: u64,
    pub hosts: Vec<Host>,
    pub weather: Weather,
    pub random: Random,
    /// Answers whether a datagram from one host to another on this path vanishes.
    pub swallow: Box<dyn FnMut(usize, usize, Path, u64) -> bool>,
    /// Whether machines are told how long a datagram waited for them.
    pub wait_known: bool,
    /// What the first host takes to let go of what its machine gives out, and whether the machine
    /// is told.
    pub lag_ns: u64,
    pub lag_known: bool,
    /// Payloads of this length vanish until then.
    pub lose_length: Option<(usize, u64)>,
    /// Nobody may send more.
    pub datagram_limit_bytes: usize,
    /// What is longer vanishes on this path.
    pub carries: Box<dyn Fn(Path) -> usize>,
    /// What a path of the first host takes longer than others.
    pub queue_ns: Box<dyn FnMut(Path, u64, usize) -> Option<u64>>,
    /// What the network makes of the ECN field of a host's datagram on a path; `Unknown` swallows
    /// it.
    pub remark: Box<dyn FnMut(usize, Path, Ecn) -> Ecn>,
    /// Everything that was launched, by whom and for whom, if somebody listens.
    pub recorded: Option<Vec<Recorded>>,
    config: Config,
    queue: BinaryHeap<Flying>,
    datagrams: BTreeMap<u64, (Origin, Vec<u8>)>,
    next_datagram: u64,
    pub sent_per_host: Vec<u64>,
    /// Heartbeats that were asked for; nobody answers them.
    pub heartbeats: usize,
    /// From which of the ports, as a set.
    pub heartbeat_ports: u64,
}

impl World {
    pub fn new(host_count: usize, seed: u64) -> Self {
        Self::with(host_count, seed, config())
    }

    pub fn with(host_count: usize, seed: u64, config: Config) -> Self {
        println!("seed {seed}");
        Self {
            now: SECOND,
            hosts: (0..host_count)
                .map(|host| Host::new(config_of(host, config), seed * 1000 + host as u64 + 1))
                .collect(),
            weather: Weather::FAIR,
            random: Random::new(seed),
            swallow: Box::new(|_, _, _, _| false),
            wait_known: false,
            lag_ns: 0,
            lag_known: false,
            lose_length: None,
            datagram_limit_bytes: usize::from(config.datagram_bytes),
            carries: Box::new(|_| usize::MAX),
            queue_ns: Box::new(|_, _, _| Some(0)),
            remark: Box::new(|_, _, ecn| ecn),
            recorded: None,
            config,
            queue: BinaryHeap::new(),
            datagrams: BTreeMap::new(),
            next_datagram: 0,
            sent_per_host: vec![0; host_count],
            heartbeats: 0,
            heartbeat_ports: 0,
        }
    }

    /// Another process takes a host's place; what the old one had is gone.
    pub fn replace(&mut self, host: usize, incarnation: u64) {
        self.hosts[host] = Host::new(config_of(host, self.config), incarnation);
    }

    /// The time by a host's clock.
    pub fn time_at(&self, host: usize) -> u64 {
        self.hosts[host].clock.at(self.now)
    }

    pub fn remote(&mut self, at: usize, of: usize) -> Remote {
        self.hosts[at].machine.remote(address(of)).unwrap()
    }

    pub fn post(&mut self, from: usize, to: usize, token: u64, length: usize) {
        assert!(
            self.try_post(from, to, token, length, false),
            "no room for a message"
        );
    }

    pub fn try_post(
        &mut self,
        from: usize,
        to: usize,
        token: u64,
        length: usize,
        wants_receipt: bool,
    ) -> bool {
        let remote = self.remote(from, to);
        let send = Send {
            remote,
            tag: Some(token),
            cq_data: None,
            length_bytes: length as u64,
            wants_receipt,
            is_awaited: false,
            is_service: false,
            token,
        };
        let now = self.time_at(from);
        let host = &mut self.hosts[from];
        if host.machine.post_send(Instant(now), &send).is_err() {
            return false;
        }
        host.payloads.insert(token, pattern(token, length));
        true
    }

    fn launch(&mut self, from: usize, transmit: &Transmit) {
        let payload = self.hosts[from].payload_of(transmit);
        let mut bytes = sealed(&transmit.head, &payload);
        let (count, each) = datagrams_of(transmit, self.datagram_limit_bytes);
        if transmit.to.port() == HEARTBEAT_PORT {
            self.heartbeats += 1;
            self.heartbeat_ports |= 1 << transmit.path.source_port_index();
            return;
        }
        self.sent_per_host[from] += 1;
        let (to, link) = place_of(transmit.to.ip());
        let index = transmit.path.source_port_index();
        if to >= self.hosts.len() || link != self.config.addresses.number(index) {
            return;
        }
        let source = SocketAddr::new(link_ip(from, link), FIRST_PORT + u16::from(index));
        if let Some(recorded) = &mut self.recorded {
            recorded.push(Recorded {
                to,
                from: source,
                bytes: bytes.clone(),
                datagram_bytes: each,
            });
        }
        let loss_percent = self.weather.loss_percent;
        let unlucky = (0..count).any(|_| self.random.below(100) < loss_percent);
        let now = self.now;
        let chosen = self
            .lose_length
            .is_some_and(|(length, until)| payload.len() == length && now < until);
        let lost = unlucky || chosen || each > (self.carries)(transmit.path);
        if lost || (self.swallow)(from, to, transmit.path, self.now) {
            return;
        }
        if self.random.below(100) < self.weather.damage_percent {
            let at = self.random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.random.below(8);
        }
        let ecn = [Ecn::NotEct, Ecn::Ect0][usize::from(transmit.head.is_ect())];
        let ecn = (self.remark)(from, transmit.path, ecn);
        let lag_ns = match from {
            0 => (self.queue_ns)(transmit.path, now, bytes.len()).map(|ns| ns + self.lag_ns),
            _ => Some(0),
        };
        let (Some(lag_ns), false) = (lag_ns, ecn == Ecn::Unknown) else {
            return;
        };
        let copies = 1 + u64::from(self.random.below(100) < self.weather.double_percent);
        for _ in 0..copies {
            let jitter = self.random.below(self.weather.jitter_ns + 1);
            let at = self.now + lag_ns + self.weather.delay_ns + jitter;
            self.queue.push(Reverse((at, self.next_datagram, to)));
            let origin = Origin {
                ecn,
                ..Origin::from(source)
            };
            self.datagrams
                .insert(self.next_datagram, (origin, bytes.clone()));
            self.next_datagram += 1;
        }
    }

    /// Hands a datagram to a host's machine as if it came from the network.
    pub fn deliver(&mut self, to: usize, origin: Origin, bytes: &[u8]) {
        if !is_whole(bytes) {
            return;
        }
        let now = self.time_at(to);
        let host = &mut self.hosts[to];
        match host.machine.handle_datagram(Instant(now), origin, bytes) {
            Arrival::Nothing => {}
            Arrival::Message {
                remote,
                life,
                message,
                payload,
            } => {
                host.direct_count += 1;
                host.got.push(Got {
                    from: remote,
                    life,
                    message,
                    payload: payload.to_vec(),
                });
            }
            Arrival::Begun {
                remote,
                life,
                segment,
                payload,
            } => {
                let got = Got {
                    from: remote,
                    life,
                    message: segment.message,
                    payload: vec![0; segment.message.length_bytes as usize],
                };
                let now = Instant(self.time_at(to));
                self.hosts[to].on_begun(now, got, &segment, payload);
            }
            Arrival::Data {
                landing,
                offset_bytes,
                payload,
                ..
            } => {
                let landing = host
                    .landings
                    .get_mut(&landing)
                    .expect("data for an open landing");
                let got = &mut host.got[landing.slot];
                for (index, byte) in payload.iter().enumerate() {
                    let at = offset_bytes as usize + index;
                    assert!(!landing.seen[at], "byte {at} came twice");
                    landing.seen[at] = true;
                    got.payload[at] = *byte;
                }
            }
        }
    }

    fn settle(&mut self, at: usize) {
        if self.hosts[at].away_until > self.now {
            return;
        }
        let now = self.time_at(at);
        while let Some(event) = self.hosts[at].machine.poll_event() {
            self.on_event(at, event);
        }
        while let Some((remote, targets)) = self.hosts[at].machine.next_unrouted() {
            let paths = routes(&self.config.addresses, &targets);
            let machine = &mut self.hosts[at].machine;
            machine.at(remote).set_routes(Instant(now), paths, u16::MAX);
        }
        loop {
            let machine = &mut self.hosts[at].machine;
            let is_at_rest = machine.is_at_rest(Instant(now));
            let Some(transmit) = machine.poll_transmit(Instant(now)) else {
                break;
            };
            assert!(!is_at_rest, "something leaves a machine at rest");
            self.launch(at, &transmit);
        }
        if self.lag_known && at == 0 {
            let machine = &mut self.hosts[at].machine;
            machine.handle_sent(Instant(now), Instant(now + self.lag_ns));
        }
        self.hosts[at].machine.inspect().check_invariants();
    }

    fn on_event(&mut self, at: usize, event: Event) {
        let host = &mut self.hosts[at];
        match event {
            Event::Message {
                remote,
                life,
                message,
                payload,
            } => {
                host.got.push(Got {
                    from: remote,
                    life,
                    message,
                    payload,
                });
            }
            Event::Offer {
                remote,
                life,
                message,
            } => {
                let message_id = message.id;
                let offer = Offer {
                    remote,
                    life,
                    message_id,
                };
                self.on_offer(at, offer, message);
            }
            Event::Landed { landing } => {
                let landing = host.landings.remove(&landing).expect("an open landing");
                assert!(landing.seen.iter().all(|seen| *seen), "landed with holes");
            }
            Event::LandingFailed { landing, .. } => {
                host.landings.remove(&landing).expect("an open landing");
                host.landings_failed += 1;
            }
            Event::Sent { token } => host.sent.push(token),
            Event::SendFailed { token, why } => host.failed.push((token, why)),
            Event::RemoteLost { remote, why } => host.lost.push((remote, why)),
        }
    }

    fn on_offer(&mut self, at: usize, offer: Offer, message: Message) {
        match self.hosts[at].policy {
            Policy::Accept => self.accept(at, offer, message, message.length_bytes),
            Policy::Truncate(most) => {
                self.accept(at, offer, message, message.length_bytes.min(most))
            }
            Policy::Keep => self.hosts[at].offers.push((offer, message)),
            Policy::Refuse => {
                let reason = weft_wire::Reason::NoMemory;
                let now = self.time_at(at);
                let machine = &mut self.hosts[at].machine;
                machine.refuse(Instant(now), offer, reason).unwrap();
            }
        }
    }

    pub fn accept(&mut self, at: usize, offer: Offer, message: Message, length: u64) {
        let now = self.time_at(at);
        let host = &mut self.hosts[at];
        let landing = host.next_landing;
        host.next_landing += 1;
        let slot = host.got.len();
        host.got.push(Got {
            from: offer.remote,
            life: offer.life,
            message,
            payload: vec![0; length as usize],
        });
        host.landings.insert(
            landing,
            Landing {
                slot,
                seen: vec![false; length as usize],
            },
        );
        host.machine
            .accept(Instant(now), offer, landing, length)
            .unwrap();
    }

    /// Runs until the time, or until nothing is left to do.
    pub fn run_until(&mut self, end: u64) {
        loop {
            for host in 0..self.hosts.len() {
                self.settle(host);
            }
            let Some(next) = self.next_time().filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            self.step();
        }
        self.now = self.now.max(end);
    }

    pub fn run_for(&mut self, span: u64) {
        self.run_until(self.now + span);
    }

    /// Runs until no machine has anything under way; fails if that takes longer than `limit`.
    /// Answers how long it took.
    pub fn run_until_quiet(&mut self, limit: u64) -> u64 {
        let start = self.now;
        loop {
            for host in 0..self.hosts.len() {
                self.settle(host);
            }
            let is_busy = |host: &Host| host.machine.inspect().is_busy();
            if !self.hosts.iter().any(is_busy) {
                return self.now - start;
            }
            let next = self.next_time().expect("busy machines have a timer");
            assert!(next <= start + limit, "still busy after {} us", limit / US);
            self.now = self.now.max(next);
            self.step();
        }
    }

    fn next_time(&self) -> Option<u64> {
        let timers = self.hosts.iter().filter_map(|host| {
            let at = host.clock.reaches(host.machine.poll_timeout()?.0)?;
            Some(at.max(host.away_until))
        });
        // A datagram for a host that is away waits for it, and others must not wait behind it.
        let flying = self
            .queue
            .iter()
            .map(|entry| entry.0.0.max(self.hosts[entry.0.2].away_until))
            .min();
        timers.chain(flying).min()
    }

    fn step(&mut self) {
        let mut due = Vec::new();
        let mut waiting = Vec::new();
        while self.queue.peek().is_some_and(|entry| entry.0.0 <= self.now) {
            let Some(Reverse(entry)) = self.queue.pop() else {
                break;
            };
            let away = self.hosts[entry.2].away_until > self.now;
            if away {
                waiting.push(Reverse(entry))
            } else {
                due.push(entry)
            }
        }
        self.queue.extend(waiting);
        for (arrived, name, to) in due {
            let (mut origin, bytes) = self.datagrams.remove(&name).unwrap();
            if self.wait_known {
                origin.waited_ns = Nanos(self.now - arrived);
            }
            self.deliver(to, origin, &bytes);
            // The owner drains events before the next datagram.
            while let Some(event) = self.hosts[to].machine.poll_event() {
                self.on_event(to, event);
            }
        }
        for host in 0..self.hosts.len() {
            let now = self.time_at(host);
            let host = &mut self.hosts[host];
            let is_due = host
                .machine
                .poll_timeout()
                .is_some_and(|at| at <= Instant(now));
            if host.away_until <= self.now && is_due {
                // What drivers do, who read their sockets between the two.
                if host.machine.handle_moved_timeouts(Instant(now)) {
                    host.machine.handle_timeout(Instant(now));
                }
            }
        }
    }

    /// Asserts that a host got these messages (token and length) of one sender, in this order.
    pub fn assert_got(&self, at: usize, from: Remote, expected: &[(u64, usize)]) {
        let got: Vec<&Got> = self.hosts[at]
            .got
            .iter()
            .filter(|got| got.from == from)
            .collect();
        let tokens: Vec<u64> = got.iter().map(|got| got.message.tag.unwrap()).collect();
        let wanted: Vec<u64> = expected.iter().map(|pair| pair.0).collect();
        assert_eq!(tokens, wanted, "messages in order");
        for (got, (token, length)) in got.iter().zip(expected) {
            assert!(
                got.payload == pattern(*token, *length),
                "payload of message {token}"
            );
        }
    }
}
