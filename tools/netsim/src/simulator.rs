// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of all hosts and links in the order of time. Called by scenario; calls host and
//! fabric.
//!
//! A heap of 16-byte entries: a time, an order among equal times, and a code that names a packet or
//! a host.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use weft_srd::Statistics;
use weft_srd::random::Random;

use crate::fabric::{Fabric, Step, Tally};
use crate::host::{Desk, Host};
use crate::workload::Transfer;

/// Kinds of events, in the top bits of a code.
const HOP: u32 = 0;
const ARRIVAL: u32 = 1 << 30;
const TIMER: u32 = 2 << 30;
const CARD: u32 = 3 << 30;
const INDEX: u32 = (1 << 30) - 1;

/// A host gives its card this many bytes at a time (chosen: a few packets, so that delay is not
/// hidden in the host).
const CARD_BYTES: u64 = 16 << 10;

/// After the last greeting its answers take so long at most (chosen: far above the delay of
/// acknowledgements).
const ANSWERS_NS: u64 = 1_000_000;

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// When the last message was whole, or the run was given up.
    pub end_ns: u64,
    /// Of the network.
    pub tally: Tally,
    /// Packets sent again.
    pub retransmitted_count: u64,
    /// Events that were handled.
    pub event_count: u64,
    /// Messages that never became whole.
    pub unfinished_count: u64,
}

impl Outcome {
    /// The same without what had been before; the end is left as it is.
    pub fn since(&self, before: &Self) -> Self {
        let (tally, earlier) = (self.tally, before.tally);
        Self {
            end_ns: self.end_ns,
            tally: Tally {
                sent_count: tally.sent_count - earlier.sent_count,
                full_count: tally.full_count - earlier.full_count,
                broken_count: tally.broken_count - earlier.broken_count,
                arrived_count: tally.arrived_count - earlier.arrived_count,
            },
            retransmitted_count: self.retransmitted_count - before.retransmitted_count,
            event_count: self.event_count - before.event_count,
            unfinished_count: self.unfinished_count,
        }
    }
}

/// A network with hosts, and time.
#[derive(Debug)]
pub struct Simulator {
    fabric: Fabric,
    hosts: Vec<Host>,
    desk: Desk,
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    order: u32,
    /// By host: the timer event that holds.
    armed_ns: Vec<u64>,
    /// By host: whether the card will ask for more.
    card_asks: Vec<bool>,
    card_ns: u64,
    open_count: usize,
    check: bool,
    event_count: u64,
    absence: Option<Absence>,
    /// By packet: when it came to a host that was away.
    arrived_ns: HashMap<u32, u64>,
}

/// Hosts whose processor does something else now and then: what arrives meanwhile waits, and so do
/// timers.
#[derive(Clone, Debug)]
pub struct Absence {
    /// When, and for how long.
    pub random: Random,
    /// The longest time between two of a host.
    pub every_ns: u64,
    /// The longest.
    pub most_ns: u64,
    /// By host: when it is back, and when it goes the next time.
    away: Vec<(u64, u64)>,
}

impl Absence {
    /// Of so many hosts, up to `most_ns` long, at random moments up to `every_ns` apart.
    pub fn new(host_count: usize, every_ns: u64, most_ns: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let away = (0..host_count)
            .map(|_| (0, random.below(every_ns)))
            .collect();
        Self {
            random,
            every_ns,
            most_ns,
            away,
        }
    }

    /// When the host is back, if it is away at this time.
    fn back_ns(&mut self, host: usize, now_ns: u64) -> Option<u64> {
        let (mut back_ns, mut next_ns) = self.away[host];
        while next_ns <= now_ns {
            back_ns = next_ns + self.random.below(self.most_ns);
            next_ns = back_ns + 1 + self.random.below(self.every_ns);
        }
        self.away[host] = (back_ns, next_ns);
        (now_ns < back_ns).then_some(back_ns)
    }
}

impl Simulator {
    /// Puts hosts on a network. `check` asserts every invariant at every event.
    pub fn new(fabric: Fabric, hosts: Vec<Host>, desk: Desk, check: bool) -> Self {
        Self {
            armed_ns: vec![u64::MAX; hosts.len()],
            card_asks: vec![false; hosts.len()],
            card_ns: fabric.time_ns(CARD_BYTES),
            open_count: desk.transfers.len(),
            heap: BinaryHeap::new(),
            order: 0,
            event_count: 0,
            absence: None,
            arrived_ns: HashMap::new(),
            fabric,
            hosts,
            desk,
            check,
        }
    }

    /// By message: when it was whole, 0 for never.
    pub fn done_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.desk.progress.iter().map(|progress| progress.done_ns)
    }

    /// Of a host, what its machine counted.
    pub fn statistics(&self, host: usize) -> Statistics {
        self.hosts[host].statistics()
    }

    /// The network, for counts and faults.
    pub fn fabric(&mut self) -> &mut Fabric {
        &mut self.fabric
    }

    /// From now on hosts are away now and then.
    pub fn set_absence(&mut self, absence: Absence) {
        self.absence = Some(absence);
    }

    fn push(&mut self, at_ns: u64, code: u32) {
        self.order = self.order.wrapping_add(1);
        self.heap.push(Reverse((at_ns, self.order, code)));
    }

    /// Runs until every message is whole, but not beyond `limit_ns`.
    pub fn run(&mut self, limit_ns: u64) -> Outcome {
        self.begin();
        self.go_on(limit_ns)
    }

    /// Carries other messages first, by which hosts get to know each other; those of the run begin
    /// after them, when all is quiet. Answers what that came to.
    pub fn meet(&mut self, greetings: Vec<Transfer>, limit_ns: u64) -> Outcome {
        let desk = Desk::new(greetings, self.desk.tcp_payload_bytes);
        let mut desk = std::mem::replace(&mut self.desk, desk);
        self.open_count = self.desk.transfers.len();
        let outcome = self.run(limit_ns);
        assert_eq!(outcome.unfinished_count, 0, "hosts cannot hear each other");
        self.keep_going();
        let end_ns = outcome.end_ns + ANSWERS_NS;
        let outcome = self.go_on(end_ns);
        desk.now_ns = end_ns;
        self.open_count = desk.transfers.len();
        self.desk = desk;
        Outcome { end_ns, ..outcome }
    }

    /// Starts what starts at once.
    pub fn begin(&mut self) {
        for index in 0..self.desk.transfers.len() as u32 {
            if self.desk.transfers[index as usize].at_once {
                self.start(index);
            }
        }
    }

    /// From now on a run ends only with its time, whatever messages are whole.
    pub fn keep_going(&mut self) {
        self.open_count = usize::MAX;
    }

    /// Starts what one host starts at once.
    pub fn begin_host(&mut self, host: usize) {
        for index in 0..self.desk.transfers.len() as u32 {
            let transfer = &self.desk.transfers[index as usize];
            if transfer.at_once && transfer.source as usize == host {
                self.start(index);
            }
        }
        self.settle(host);
    }

    /// Payload that has arrived at a host.
    pub fn taken_bytes(&self, host: usize) -> u64 {
        self.hosts[host].taken_bytes()
    }

    /// Runs on until every message is whole, but not beyond `limit_ns`.
    pub fn go_on(&mut self, limit_ns: u64) -> Outcome {
        while self.open_count > 0 {
            let Some(Reverse((at_ns, _, code))) = self.heap.peek().copied() else {
                break;
            };
            if at_ns > limit_ns {
                break;
            }
            self.heap.pop();
            debug_assert!(at_ns >= self.desk.now_ns, "time went backwards");
            self.desk.now_ns = at_ns;
            self.event_count += 1;
            self.handle(code);
        }
        Outcome {
            end_ns: self.desk.now_ns,
            tally: self.fabric.tally(),
            retransmitted_count: self.hosts.iter().map(Host::retransmitted_count).sum(),
            event_count: self.event_count,
            unfinished_count: self.open_count as u64,
        }
    }

    fn handle(&mut self, code: u32) {
        let index = code & INDEX;
        let host = index as usize;
        if self.waits(code) {
            return;
        }
        match code & !INDEX {
            HOP => {
                let step = self.fabric.advance(self.desk.now_ns, index);
                self.follow(index, step);
                return;
            }
            ARRIVAL => {
                let packet = self.fabric.take(index);
                let host = packet.target as usize;
                self.desk.waited_ns = self
                    .arrived_ns
                    .remove(&index)
                    .map_or(0, |at_ns| self.desk.now_ns - at_ns);
                self.hosts[host].on_packet(&mut self.desk, &packet);
                self.settle(host);
                return;
            }
            TIMER => {
                if self.armed_ns[host] != self.desk.now_ns {
                    return;
                }
                self.armed_ns[host] = u64::MAX;
                self.hosts[host].on_timeout(&mut self.desk);
            }
            _ => self.card_asks[host] = false,
        }
        self.settle(host);
    }

    /// Whether an event waits for its host to come back. What arrived first is then handled first,
    /// timers last, as by a driver that looks into its sockets before it asks for the time.
    fn waits(&mut self, code: u32) -> bool {
        let Some(absence) = &mut self.absence else {
            return false;
        };
        let (kind, index) = (code & !INDEX, code & INDEX);
        let host = match kind {
            HOP => return false,
            ARRIVAL => self.fabric.target(index) as usize,
            _ => index as usize,
        };
        let now_ns = self.desk.now_ns;
        let Some(back_ns) = absence.back_ns(host, now_ns) else {
            return false;
        };
        match kind {
            ARRIVAL => {
                self.arrived_ns.entry(index).or_insert(now_ns);
                self.push(back_ns, code);
            }
            TIMER => {
                if self.armed_ns[host] == now_ns {
                    self.armed_ns[host] = back_ns + 1;
                    self.push(back_ns + 1, code);
                }
            }
            _ => self.push(back_ns + 1, code),
        }
        true
    }

    fn follow(&mut self, name: u32, step: Step) {
        match step {
            Step::Hop(at_ns) => self.push(at_ns, HOP | name),
            Step::Arrives(at_ns) => self.push(at_ns, ARRIVAL | name),
            Step::Dropped => {}
        }
    }

    fn start(&mut self, index: u32) {
        let host = self.desk.transfers[index as usize].source as usize;
        self.hosts[host].start(&mut self.desk, index);
        self.settle(host);
    }

    /// After anything happened to a host: its packets to the card, its timer, what others waited
    /// for.
    fn settle(&mut self, host: usize) {
        self.fill_card(host);
        let deadline_ns = self.hosts[host].deadline_ns().max(self.desk.now_ns);
        if deadline_ns < self.armed_ns[host] {
            self.armed_ns[host] = deadline_ns;
            self.push(deadline_ns, TIMER | host as u32);
        }
        if self.check {
            self.assert_invariants(host);
        }
        while let Some(index) = self.desk.done.pop() {
            self.open_count -= 1;
            if let Some(then) = self.desk.transfers[index as usize].then {
                self.start(then);
            }
        }
    }

    fn fill_card(&mut self, host: usize) {
        let now_ns = self.desk.now_ns;
        let absence = self.absence.as_mut();
        if let Some(back_ns) = absence.and_then(|absence| absence.back_ns(host, now_ns)) {
            if !std::mem::replace(&mut self.card_asks[host], true) {
                self.push(back_ns + 1, CARD | host as u32);
            }
            return;
        }
        while !self.card_asks[host] {
            let free_ns = self.fabric.card_free_ns(host);
            if free_ns > self.desk.now_ns + self.card_ns {
                self.card_asks[host] = true;
                self.push(free_ns - self.card_ns / 4, CARD | host as u32);
                return;
            }
            let Some(outgoing) = self.hosts[host].poll(&mut self.desk) else {
                return;
            };
            let (name, step) = self.fabric.send(
                self.desk.now_ns,
                &outgoing.tuple,
                outgoing.bytes,
                outgoing.content,
            );
            self.follow(name, step);
        }
    }

    /// Nothing vanishes: every packet that was sent has arrived, was dropped, or is under way.
    fn assert_invariants(&self, host: usize) {
        self.hosts[host].check();
        let tally = self.fabric.tally();
        let ended = tally.arrived_count + tally.full_count + tally.broken_count;
        assert_eq!(
            tally.sent_count,
            ended + self.fabric.flying_count() as u64,
            "packets"
        );
    }
}
