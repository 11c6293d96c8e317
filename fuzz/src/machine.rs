// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Targets: three SRD machines between posts, packets, time and an adversary.
//!
//! *Honest*: packets are lost, doubled, reordered, played back to anybody from anywhere; answers
//! wait or vanish for as long as it pleases while messages go on, and so do the receipts that
//! owners give; processes are replaced. Every message is delivered once at most, in order, and
//! completes or fails; one that wants a receipt completes after its receiver gave it. *Hostile*:
//! packets are changed and rightly tagged, as by a member of the job that has gone mad; then the
//! machines' own books must still be right.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weft_srd::{Arrival, Config, Event, Instant, Machine, Reason, Remote, Segment, Send, Transmit};

use crate::input::Input;
use crate::named::Named;

const HOSTS: usize = 3;
/// Datagrams that are kept for delivery and playback.
const KEPT: usize = 64;
/// Shorter ones carry no more than words about messages: acknowledgements, receipts, probes.
const ANSWER_BYTES: usize = 260;
const DECISIONS_MOST: usize = 4_000;

/// To which host, from where, and its bytes.
type Datagram = (usize, SocketAddr, Vec<u8>);

/// What becomes of short datagrams, which acknowledge, while others go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    Go,
    Wait,
    Vanish,
}

struct Host {
    machine: Machine,
    /// Which process lives here: goes into tags, so that messages are known by their sender's life.
    life: u64,
    posted: u64,
    /// The last tag heard from each life of each host.
    heard: Vec<(Remote, u64)>,
    open: usize,
    /// Sends of this life whose end is a receipt.
    want_receipts: BTreeSet<u64>,
    offers: Vec<Named>,
    /// Accepted offers, by the number of their landing.
    landings: BTreeMap<u64, Named>,
    /// Messages whose sender waits for a receipt that the owner has not given yet.
    owed: Vec<Named>,
}

struct World {
    now_ns: u64,
    hosts: Vec<Host>,
    flying: Vec<Datagram>,
    /// Answers (acknowledgements alone, receipts and what else is short) that wait for long.
    held: Vec<Datagram>,
    /// How such answers fare now.
    answers: Answers,
    /// Owners give receipts now.
    gives: bool,
    /// Messages for which a receipt was given, by tag.
    receipts: BTreeSet<u64>,
    landing_count: u64,
    lives: u64,
    config: Config,
    hostile: bool,
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1 + host as u8)), 1000)
}

impl Host {
    fn owe(&mut self, named: Named) {
        self.owed.extend(named.wants_receipt.then_some(named));
    }

    /// A send has ended.
    fn end(&mut self) {
        assert!(self.open > 0, "a send has ended twice");
        self.open -= 1;
    }
}

impl World {
    fn new(input: &mut Input<'_>, hostile: bool) -> Self {
        let mut config = Config {
            // Only fresh contact stands up to playback (srd-protocol 14.6).
            fresh_contact: !hostile || input.byte().is_multiple_of(2),
            long_packets: input.byte().is_multiple_of(2),
            ..Config::default()
        };
        for (index, port) in config.ports.iter_mut().enumerate() {
            *port = 1000 + index as u16;
        }
        config.memory.remote_limit = 8;
        let mut world = Self {
            now_ns: 1_000_000_000,
            hosts: Vec::new(),
            flying: Vec::new(),
            held: Vec::new(),
            answers: Answers::Go,
            gives: true,
            receipts: BTreeSet::new(),
            landing_count: 0,
            lives: 0,
            config,
            hostile,
        };
        for _ in 0..HOSTS {
            let host = world.birth();
            world.hosts.push(host);
        }
        world
    }

    fn birth(&mut self) -> Host {
        self.lives += 1;
        let incarnation = self.lives.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Host {
            machine: Machine::new(self.config, incarnation).expect("the settings are right"),
            life: self.lives,
            posted: 0,
            heard: Vec::new(),
            open: 0,
            want_receipts: BTreeSet::new(),
            offers: Vec::new(),
            landings: BTreeMap::new(),
            owed: Vec::new(),
        }
    }

    fn post(&mut self, from: usize, to: usize, length_bytes: u64) {
        let host = &mut self.hosts[from];
        let Some(remote) = host.machine.remote(address(to)) else {
            return;
        };
        let tag = host.life << 32 | host.posted;
        let send = Send {
            remote,
            tag: Some(tag),
            cq_data: None,
            length_bytes,
            wants_receipt: length_bytes.is_multiple_of(3),
            is_awaited: length_bytes.is_multiple_of(2),
            is_service: false,
            token: host.posted,
        };
        if host.machine.post_send(Instant(self.now_ns), &send).is_ok() {
            if send.wants_receipt {
                host.want_receipts.insert(send.token);
            }
            host.posted += 1;
            host.open += 1;
        }
    }

    fn launch(&mut self, from: usize, transmit: &Transmit) {
        let mut bytes = transmit.head.as_bytes().to_vec();
        bytes.resize(transmit.length_bytes(), 7);
        let to = (0..HOSTS).find(|host| address(*host).ip() == transmit.to.ip());
        let Some(to) = to else { return };
        let is_answer = bytes.len() < ANSWER_BYTES;
        let list = match self.answers {
            Answers::Vanish if is_answer => return,
            Answers::Wait if is_answer => &mut self.held,
            _ => &mut self.flying,
        };
        if list.len() == KEPT {
            list.remove(0);
        }
        list.push((to, address(from), bytes));
    }

    fn deliver(&mut self, to: usize, from: SocketAddr, bytes: &[u8]) {
        let host = &mut self.hosts[to];
        let arrival = host
            .machine
            .handle_datagram(Instant(self.now_ns), from, bytes);
        match arrival {
            Arrival::Message {
                remote,
                life,
                message,
                ..
            } => {
                self.hear(to, remote, message.tag);
                self.hosts[to].owe(Named::new(remote, life, &message));
            }
            Arrival::Begun {
                remote,
                life,
                segment,
                payload,
            } => {
                let named = Named::new(remote, life, &segment.message);
                self.begin(to, named, &segment, payload);
            }
            Arrival::Data { .. } | Arrival::Nothing => {}
        }
        self.drain(to);
    }

    /// Half of the messages have a landing from their first piece on, the others come whole.
    fn begin(&mut self, at: usize, named: Named, segment: &Segment, payload: &[u8]) {
        let remote = named.offer.remote;
        let landing = (segment.message.id % 2 == 1).then(|| {
            self.hear(at, remote, segment.message.tag);
            self.landing_count += 1;
            self.hosts[at].landings.insert(self.landing_count, named);
            self.landing_count
        });
        let now_ns = Instant(self.now_ns);
        let machine = &mut self.hosts[at].machine;
        machine.at(remote).begin(now_ns, segment, payload, landing);
    }

    fn hear(&mut self, at: usize, remote: Remote, tag: Option<u64>) {
        let (Some(tag), false) = (tag, self.hostile) else {
            return;
        };
        let heard = &mut self.hosts[at].heard;
        let life = |tag: u64| tag >> 32;
        let before = heard.iter_mut().find(|(_, last)| life(*last) == life(tag));
        match before {
            Some((known, last)) => {
                assert_eq!(*known, remote, "one life is one remote");
                assert!(tag > *last, "message {tag:x} after {last:x}");
                *last = tag;
            }
            None => heard.push((remote, tag)),
        }
    }

    fn drain(&mut self, at: usize) {
        while let Some(event) = self.hosts[at].machine.poll_event() {
            match event {
                Event::Message {
                    remote,
                    life,
                    message,
                    ..
                } => {
                    self.hear(at, remote, message.tag);
                    self.hosts[at].owe(Named::new(remote, life, &message));
                }
                Event::Offer {
                    remote,
                    life,
                    message,
                } => {
                    self.hear(at, remote, message.tag);
                    let named = Named::new(remote, life, &message);
                    self.hosts[at].offers.push(named);
                }
                Event::Sent { token } => {
                    let host = &mut self.hosts[at];
                    let waits = host.want_receipts.contains(&token) && !self.hostile;
                    let given = self.receipts.contains(&(host.life << 32 | token));
                    assert!(
                        given || !waits,
                        "send {token} is complete without a receipt"
                    );
                    host.end();
                }
                Event::SendFailed { .. } => self.hosts[at].end(),
                Event::RemoteLost { remote, .. } => {
                    let of_others = |named: &Named| named.offer.remote != remote;
                    self.hosts[at].offers.retain(of_others);
                }
                Event::Landed { landing } => {
                    let named = self.hosts[at].landings.remove(&landing);
                    self.hosts[at].owe(named.expect("a landing ends once"));
                }
                Event::LandingFailed { landing, .. } => {
                    let named = self.hosts[at].landings.remove(&landing);
                    assert!(named.is_some(), "a landing ends once");
                }
            }
        }
    }

    fn settle(&mut self) {
        for at in 0..HOSTS {
            self.drain(at);
            let now_ns = self.now_ns;
            let machine = &mut self.hosts[at].machine;
            if machine
                .poll_timeout()
                .is_some_and(|due_ns| due_ns <= Instant(now_ns))
            {
                machine.handle_timeout(Instant(now_ns));
            }
            self.drain(at);
            for _ in 0..KEPT {
                let Some(transmit) = self.hosts[at].machine.poll_transmit(Instant(now_ns)) else {
                    break;
                };
                self.launch(at, &transmit);
            }
            self.hosts[at].machine.inspect().check_invariants();
        }
    }

    fn answer_offer(&mut self, at: usize, input: &mut Input<'_>) {
        let Some(named) = self.hosts[at].offers.pop() else {
            return;
        };
        let length = [0, 1, 1 << 20][input.below(3)];
        let refuses = input.byte().is_multiple_of(4);
        self.landing_count += 1;
        let landing = self.landing_count;
        let host = &mut self.hosts[at];
        let answered = if refuses {
            host.machine
                .refuse(Instant(self.now_ns), named.offer, Reason::NoMemory)
        } else {
            host.landings.insert(landing, named);
            host.machine
                .accept(Instant(self.now_ns), named.offer, landing, length)
        };
        if answered.is_err() {
            host.landings.remove(&landing);
        }
        if answered == Err(weft_srd::PostError::Busy) {
            host.offers.push(named);
        }
    }

    /// Gives receipts for some messages, in any order, at any time after they came: also to who is
    /// gone by then, or has been replaced.
    fn give_receipts(&mut self, at: usize, input: &mut Input<'_>) {
        for _ in 0..input.below(4) {
            let host = &mut self.hosts[at];
            if host.owed.is_empty() || !self.gives {
                return;
            }
            let owed = host.owed.swap_remove(input.below(host.owed.len()));
            // Before it is given: the other one may hear of it at once.
            self.receipts.insert(owed.tag);
            let given = host.machine.receipt(Instant(self.now_ns), owed.offer);
            if given == Err(weft_srd::PostError::Busy) {
                host.owed.push(owed);
            }
        }
    }

    /// Answers that waited come now, in any order, some of them; or wait, or vanish from now on.
    fn change_answers(&mut self, input: &mut Input<'_>) {
        self.answers = match input.below(4) {
            0 => Answers::Wait,
            1 => Answers::Vanish,
            _ => Answers::Go,
        };
        self.gives = input.byte().is_multiple_of(2);
        for _ in 0..input.below(2 * KEPT) {
            if self.held.is_empty() {
                return;
            }
            let (to, from, bytes) = self.held.swap_remove(input.below(self.held.len()));
            self.deliver(to, from, &bytes);
        }
    }

    /// Delivers a datagram: the oldest, or any; gone afterwards or kept; to whom it is for or to
    /// anybody.
    fn fly(&mut self, input: &mut Input<'_>) {
        if self.flying.is_empty() {
            return;
        }
        let how = input.byte();
        let at = if how & 1 == 0 {
            0
        } else {
            input.below(self.flying.len())
        };
        let (to, from, bytes) = if how & 2 == 0 {
            self.flying.remove(at)
        } else {
            self.flying[at].clone()
        };
        let strange = how & 0x1c == 0x1c;
        let to = if strange { input.below(HOSTS) } else { to };
        let from = if how & 0x3c == 0x3c {
            address(input.below(6))
        } else {
            from
        };
        self.deliver(to, from, &bytes);
        if self.hostile && how & 0x40 != 0 {
            let mut changed = bytes;
            input.mutate(&mut changed);
            self.deliver(to, from, &changed);
        }
    }

    fn decide(&mut self, input: &mut Input<'_>) {
        let at = input.below(HOSTS);
        match input.byte() % 16 {
            0 | 1 => {
                let lengths = [0, 1, 100, 1_100, 5_000, 65_536, 70_000, 1 << 20];
                let length = lengths[input.below(8)];
                self.post(at, (at + 1 + input.below(HOSTS - 1)) % HOSTS, length);
            }
            2..=9 => self.fly(input),
            10 => self.now_ns += 1_000 << input.below(12),
            11 => self.answer_offer(at, input),
            14 => self.give_receipts(at, input),
            15 if input.byte().is_multiple_of(4) => self.change_answers(input),
            12 if input.byte().is_multiple_of(8) => {
                let remote = Remote(input.below(4) as u32);
                let now_ns = self.now_ns;
                let machine = &mut self.hosts[at].machine;
                match input.below(5) {
                    0 => machine
                        .at(remote)
                        .set_unread(Instant(now_ns), input.number() >> 40),
                    1 => machine
                        .at(remote)
                        .watch(Instant(now_ns), input.byte().is_multiple_of(2)),
                    2 => machine.at(remote).handle_refused(Instant(now_ns)),
                    3 => machine.set_penalty(input.byte()),
                    _ => self.now_ns += 1_000_000_000 << input.below(6),
                }
            }
            13 => match input.byte() % 32 {
                0..=2 => self.hosts[at] = self.birth(),
                3 => self.hosts[at].machine.farewell(Instant(self.now_ns)),
                _ => self.give_receipts(at, input),
            },
            _ => {
                let due = self
                    .hosts
                    .iter()
                    .filter_map(|host| host.machine.poll_timeout())
                    .min();
                let due_ns = due.unwrap_or(Instant::START).0;
                self.now_ns = self.now_ns.max(due_ns.min(self.now_ns + 1_000_000_000));
            }
        }
        self.settle();
    }
}

fn run(bytes: &[u8], hostile: bool) {
    let mut input = Input::new(bytes);
    let mut world = World::new(&mut input, hostile);
    for _ in 0..DECISIONS_MOST {
        if input.is_over() {
            break;
        }
        world.decide(&mut input);
    }
    // Left alone without a network, everything ends: nothing hangs.
    if !hostile {
        for _ in 0..400 {
            world.now_ns += 100_000_000;
            world.settle();
            for at in 0..HOSTS {
                while let Some(named) = world.hosts[at].offers.pop() {
                    let machine = &mut world.hosts[at].machine;
                    let _ = machine.refuse(Instant(world.now_ns), named.offer, Reason::NoMemory);
                }
            }
        }
        for host in &world.hosts {
            assert_eq!(host.open, 0, "sends that neither complete nor fail");
        }
    }
}

/// See the module.
pub fn run_honest(bytes: &[u8]) {
    run(bytes, false);
}

/// See the module.
pub fn run_hostile(bytes: &[u8]) {
    run(bytes, true);
}
