// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two flows that share one slow link: how much of it each gets.
//!
//! tests/testbed/coexist.py makes the same network of namespaces. Hosts 0 and 1 send to hosts 2 and
//! 3 over one link with one queue. Called by tests; calls simulator.

use weft_srd::random::Random;
use weft_srd::{Config, Statistics};

use crate::fabric::{Fabric, Shape};
use crate::host::{Desk, Host, SrdHost};
use crate::rival::Control;
use crate::rival_host::RivalHost;
use crate::simulator::Simulator;
use crate::topology::Topology;
use crate::workload::{Transfer, Workload};

const MS: u64 = 1_000_000;
/// Of a message of the stream.
const MESSAGE_BYTES: u64 = 1 << 20;
/// Messages under way.
const WINDOW: usize = 16;
/// Between a host and its leaf, in Gb/s.
const HOST_GIGABITS: u64 = 40;
/// Frames of 1500 bytes.
const DATAGRAM_BYTES: u16 = 1500 - 28;
/// What a flow may send at once where flows are limited (chosen: two datagrams as joined by hosts).
const FLOW_BURST_BYTES: u64 = 128 << 10;
/// Moments at which the queue is looked at.
const SAMPLES: u64 = 1000;
const TCP_PAYLOAD_BYTES: u64 = 1448;

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sender {
    /// The machine.
    Weft,
    /// TCP.
    Tcp(Control),
    /// Nobody.
    Nobody,
}

/// A link and who shares it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bottleneck {
    /// Repeats it exactly.
    pub seed: u64,
    /// Of the link, in Mbit/s.
    pub megabits: u64,
    /// What the link holds back before it drops.
    pub buffer_bytes: u64,
    /// It marks what comes behind so much; `u64::MAX` for never.
    pub mark_bytes: u64,
    /// What each flow may send, in Mbit/s; 0 for all it likes.
    pub flow_megabits: u64,
    /// What the receiving host adds to the way, in each direction.
    pub one_way_ns: u64,
    /// From host 0 to host 2, and from host 1 to host 3.
    pub senders: [Sender; 2],
    /// The first one is alone for so long; then, after as long again, is counted.
    pub settle_ns: u64,
    /// What is counted.
    pub counted_ns: u64,
}

impl Default for Bottleneck {
    fn default() -> Self {
        Self {
            seed: 1,
            megabits: 400,
            buffer_bytes: 1_000_000,
            mark_bytes: u64::MAX,
            flow_megabits: 0,
            one_way_ns: 20_000,
            senders: [Sender::Weft, Sender::Tcp(Control::Cubic)],
            settle_ns: 500 * MS,
            counted_ns: 4_000 * MS,
        }
    }
}

/// What was seen.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// Payload of each in a second, over the link's rate.
    pub of_link: [f64; 2],
    /// The mean queue of the link.
    pub queue_us: f64,
    /// What the machine of host 0 counted, if it is one.
    pub sender: Statistics,
}

impl Shares {
    /// Of what was carried, the part of the first.
    pub fn part(&self) -> f64 {
        self.of_link[0] / (self.of_link[0] + self.of_link[1])
    }
}

impl Bottleneck {
    fn fabric(&self) -> Fabric {
        let topology = Topology::racks(2, 1, &mut Random::new(self.seed));
        let mut fabric = Fabric::new(topology, HOST_GIGABITS, 16 << 20, self.seed);
        fabric.set_host_ns(self.one_way_ns);
        let shape = Shape::new(self.megabits, self.buffer_bytes, 0);
        let marks = self.mark_bytes < u64::MAX;
        let marking = || shape.marking(self.mark_bytes);
        fabric.shape_spine(0, if marks { marking() } else { shape });
        if self.flow_megabits > 0 {
            fabric.police_flows(self.flow_megabits, FLOW_BURST_BYTES);
        }
        fabric
    }

    /// A stream for each sender that is a machine.
    fn transfers(&self) -> Vec<Transfer> {
        let seconds = 1 + (2 * self.settle_ns + self.counted_ns) / (1000 * MS);
        let count = (seconds * self.megabits * 125_000 / MESSAGE_BYTES) as usize + WINDOW;
        let mut transfers = Vec::new();
        for (source, sender) in (0..).zip(self.senders) {
            if sender != Sender::Weft {
                continue;
            }
            let first = transfers.len() as u32;
            let stream = Workload::stream(count, MESSAGE_BYTES, WINDOW).transfers;
            transfers.extend(stream.into_iter().map(|transfer| Transfer {
                source,
                target: source + 2,
                then: transfer.then.map(|then| then + first),
                ..transfer
            }));
        }
        transfers
    }

    fn host(&self, host: u32) -> Host {
        let remote = (host + 2) % 4;
        match self.senders[host as usize % 2] {
            Sender::Tcp(control) if host < 2 => {
                let end = RivalHost::source(host, remote, control, TCP_PAYLOAD_BYTES);
                Host::Rival(Box::new(end))
            }
            Sender::Tcp(_) => {
                let end = RivalHost::sink(host, remote, TCP_PAYLOAD_BYTES);
                Host::Rival(Box::new(end))
            }
            Sender::Weft | Sender::Nobody => {
                let config = Config {
                    datagram_bytes: DATAGRAM_BYTES,
                    ecn: true,
                    ..Config::default()
                };
                Host::Srd(Box::new(SrdHost::new(host, config, self.seed)))
            }
        }
    }

    /// Runs it.
    pub fn run(&self) -> Shares {
        let desk = Desk::new(self.transfers(), TCP_PAYLOAD_BYTES);
        let hosts = (0..4).map(|host| self.host(host)).collect();
        let mut simulator = Simulator::new(self.fabric(), hosts, desk, false);
        simulator.keep_going();
        simulator.begin_host(0);
        simulator.go_on(self.settle_ns);
        simulator.begin_host(1);
        simulator.go_on(2 * self.settle_ns);
        let before = [2, 3].map(|host| simulator.taken_bytes(host));
        let mut queue_ns = 0;
        for sample in 1..=SAMPLES {
            let now_ns = 2 * self.settle_ns + self.counted_ns * sample / SAMPLES;
            simulator.go_on(now_ns);
            queue_ns += simulator.fabric().queue_ns(0, now_ns) / SAMPLES;
        }
        let after = [2, 3].map(|host| simulator.taken_bytes(host));
        let most = (self.megabits * self.counted_ns / 8000) as f64;
        Shares {
            of_link: [0, 1].map(|index| (after[index] - before[index]) as f64 / most),
            queue_us: queue_ns as f64 / 1e3,
            sender: simulator.statistics(0),
        }
    }
}
