// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Targets: three SRD machines between posts, packets, time and an adversary.
//!
//! *Honest*: packets are lost, doubled, reordered, played back to anybody from anywhere; processes are replaced. Every
//! message is delivered once at most, in order, and completes or fails. *Hostile*: packets are changed and rightly tagged,
//! as by a member of the job that has gone mad; then the machines' own books must still be right.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weft_srd::{Arrival, Config, Event, Machine, Offer, Reason, Remote, Send, Transmit};

use crate::input::Input;

const HOSTS: usize = 3;
/// Datagrams that are kept for delivery and playback.
const KEPT: usize = 64;
const DECISIONS_MOST: usize = 4_000;

struct Host {
    machine: Machine,
    /// Which process lives here: goes into tags, so that messages are known by their sender's life.
    life: u64,
    posted: u64,
    /// The last tag heard from each life of each host.
    heard: Vec<(Remote, u64)>,
    open: usize,
    offers: Vec<Offer>,
}

struct World {
    now_ns: u64,
    hosts: Vec<Host>,
    flying: Vec<(usize, SocketAddr, Vec<u8>)>,
    lives: u64,
    config: Config,
    hostile: bool,
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1 + host as u8)), 1000)
}

impl World {
    fn new(input: &mut Input<'_>, hostile: bool) -> Self {
        let mut config = Config {
            // Only fresh contact stands up to playback (srd-protocol 14.6).
            fresh_contact: !hostile || input.byte() % 2 == 0,
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
            offers: Vec::new(),
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
            wants_receipt: length_bytes % 3 == 0,
            is_service: false,
            token: host.posted,
        };
        if host.machine.post_send(self.now_ns, &send).is_ok() {
            host.posted += 1;
            host.open += 1;
        }
    }

    fn launch(&mut self, from: usize, transmit: &Transmit) {
        let mut bytes = transmit.head.as_bytes().to_vec();
        bytes.resize(transmit.length_bytes(), 7);
        let to = (0..HOSTS).find(|host| address(*host).ip() == transmit.to.ip());
        if let Some(to) = to {
            if self.flying.len() == KEPT {
                self.flying.remove(0);
            }
            self.flying.push((to, address(from), bytes));
        }
    }

    fn deliver(&mut self, to: usize, from: SocketAddr, bytes: &[u8]) {
        let host = &mut self.hosts[to];
        let arrival = host.machine.handle_datagram(self.now_ns, from, bytes);
        if let Arrival::Message {
            remote,
            life,
            message,
            ..
        } = arrival
        {
            let tag = message.tag;
            let wants = message.wants_receipt;
            self.hear(to, remote, tag);
            if wants {
                let message_id = message.id;
                let named = Offer {
                    remote,
                    life,
                    message_id,
                };
                let _ = self.hosts[to].machine.receipt(self.now_ns, named);
            }
        }
        self.drain(to);
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
            let now_ns = self.now_ns;
            match event {
                Event::Message {
                    remote,
                    life,
                    message,
                    ..
                } => {
                    self.hear(at, remote, message.tag);
                    if message.wants_receipt {
                        let message_id = message.id;
                        let named = Offer {
                            remote,
                            life,
                            message_id,
                        };
                        let _ = self.hosts[at].machine.receipt(now_ns, named);
                    }
                }
                Event::Offer {
                    remote,
                    life,
                    message,
                } => {
                    self.hear(at, remote, message.tag);
                    let message_id = message.id;
                    self.hosts[at].offers.push(Offer {
                        remote,
                        life,
                        message_id,
                    });
                }
                Event::Sent { .. } | Event::SendFailed { .. } => {
                    let host = &mut self.hosts[at];
                    assert!(host.open > 0, "a send has ended twice");
                    host.open -= 1;
                }
                Event::RemoteLost { remote, .. } => {
                    self.hosts[at].offers.retain(|offer| offer.remote != remote);
                }
                Event::Landed { .. } | Event::LandingFailed { .. } => {}
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
                .is_some_and(|due_ns| due_ns <= now_ns)
            {
                machine.handle_timeout(now_ns);
            }
            self.drain(at);
            for _ in 0..KEPT {
                let Some(transmit) = self.hosts[at].machine.poll_transmit(now_ns) else {
                    break;
                };
                self.launch(at, &transmit);
            }
            self.hosts[at].machine.check_invariants();
        }
    }

    fn answer_offer(&mut self, at: usize, input: &mut Input<'_>) {
        let Some(offer) = self.hosts[at].offers.pop() else {
            return;
        };
        let length = [0, 1, 1 << 20][input.below(3)];
        let refuses = input.byte() % 4 == 0;
        let machine = &mut self.hosts[at].machine;
        let answered = if refuses {
            machine.refuse(self.now_ns, offer, Reason::NoMemory)
        } else {
            machine.accept(self.now_ns, offer, 1, length)
        };
        if answered == Err(weft_srd::PostError::Busy) {
            self.hosts[at].offers.push(offer);
        }
    }

    /// Delivers a datagram: the oldest, or any; gone afterwards or kept; to whom it is for or to anybody.
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
            12 if input.byte() % 8 == 0 => {
                let remote = Remote(input.below(4) as u32);
                let now_ns = self.now_ns;
                let machine = &mut self.hosts[at].machine;
                match input.below(5) {
                    0 => machine.set_unread(now_ns, remote, input.number() >> 40),
                    1 => machine.watch(now_ns, remote, input.byte() % 2 == 0),
                    2 => machine.handle_refused(now_ns, remote),
                    3 => machine.set_penalty(input.byte()),
                    _ => self.now_ns += 1_000_000_000 << input.below(6),
                }
            }
            13 if input.byte() % 16 == 0 => self.hosts[at] = self.birth(),
            14 if input.byte() % 32 == 0 => {
                let now_ns = self.now_ns;
                self.hosts[at].machine.farewell(now_ns);
            }
            _ => {
                let due = self
                    .hosts
                    .iter()
                    .filter_map(|host| host.machine.poll_timeout())
                    .min();
                self.now_ns = self
                    .now_ns
                    .max(due.unwrap_or(0).min(self.now_ns + 1_000_000_000));
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
                while let Some(offer) = world.hosts[at].offers.pop() {
                    let _ = world.hosts[at]
                        .machine
                        .refuse(world.now_ns, offer, Reason::NoMemory);
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
