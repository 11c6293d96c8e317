// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Links with a rate, a delay, a finite queue and faults; and the packets in flight. Called by
//! simulator.
//!
//! A link is a first-in-first-out queue. So the time when a packet leaves is known when it enters,
//! and each hop needs one event.

use std::collections::HashMap;

use slab::Slab;
use weft_srd::Ecn;
use weft_srd::random::Random;
use weft_wire::Head;

use crate::hash::FiveTuple;
use crate::pieces::Part;
use crate::tcp::Segment;
use crate::topology::{Route, Topology};

/// Preamble, Ethernet header, checksum and gap (IEEE 802.3), and IP header with a UDP or TCP one.
pub const FRAME_BYTES: u64 = 38 + 28;
/// Light over 100 m of fibre and a switch's own delay (chosen: usual figures).
pub const HOP_NS: u64 = 600;
/// Card and software of the receiving host (chosen: the machine itself takes no simulated time).
pub const HOST_NS: u64 = 1_000;

/// What a packet is, to the host it is for.
#[expect(
    clippy::large_enum_variant,
    reason = "a box would cost an allocation per packet"
)]
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// Of the machine: the head as it would be on a wire, and how long the payload is.
    Srd {
        /// As the machine wrote it.
        head: Head,
        /// Of the payload.
        payload_bytes: u32,
        /// Which part of the packet this is.
        part: Part,
    },
    /// Of the baseline.
    Tcp(Segment),
}

impl Content {
    /// As it leaves.
    fn ecn(&self) -> Ecn {
        match self {
            Self::Srd { head, .. } if head.is_ect() => Ecn::Ect0,
            _ => Ecn::NotEct,
        }
    }
}

/// A packet on its way to the card.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// What switches will see.
    pub tuple: FiveTuple,
    /// Without frame.
    pub bytes: u64,
    /// Its meaning.
    pub content: Content,
}

/// A packet under way.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Host.
    pub source: u32,
    /// Host.
    pub target: u32,
    /// As the switches saw it.
    pub source_port: u16,
    wire_bytes: u32,
    route: Route,
    hop: u8,
    /// What its IP header says of congestion.
    pub ecn: Ecn,
    /// Its meaning.
    pub content: Content,
}

/// Where a packet is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// At the next switch at this time.
    Hop(u64),
    /// At its host at this time.
    Arrives(u64),
    /// Nowhere: the queue was full or the link broken.
    Dropped,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    /// When all that entered has left at the link's rate; with a burst it leaves that much earlier.
    busy_until_ns: u64,
    /// Swallows everything from then on; 0 for never.
    broken_from_ns: u64,
    healed_from_ns: u64,
    /// Of a million packets.
    loss_per_million: u32,
    /// Packets that it took.
    carried_count: u32,
    shape: Shape,
}

/// How a link passes packets on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Time of one byte, in 2^-20 nanoseconds.
    byte_time: u64,
    /// What does not fit waits no longer than this; it is dropped.
    queue_ns: u64,
    /// What would wait for longer is marked, if its sender takes part.
    marks_ns: u64,
    /// After a pause so much passes at once, as a token bucket lets it.
    burst_ns: u64,
}

impl Shape {
    /// Of a rate in Mbit/s, with so many bytes of queue and so many that pass at once.
    pub fn new(megabits: u64, queue_bytes: u64, burst_bytes: u64) -> Self {
        let byte_time = (8000 << 20) / megabits.max(1);
        Self {
            byte_time,
            queue_ns: (queue_bytes * byte_time) >> 20,
            burst_ns: (burst_bytes * byte_time) >> 20,
            marks_ns: u64::MAX,
        }
    }

    /// The same with a queue that marks what comes behind so many bytes.
    pub fn marking(self, bytes: u64) -> Self {
        let marks_ns = (bytes * self.byte_time) >> 20;
        Self { marks_ns, ..self }
    }

    fn time_ns(&self, bytes: u64) -> u64 {
        ((u128::from(bytes) * u128::from(self.byte_time) + (1 << 19)) >> 20) as u64
    }
}

/// Counts of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Packets that hosts sent.
    pub sent_count: u64,
    /// Packets dropped at full queues.
    pub full_count: u64,
    /// Packets that broken links swallowed.
    pub broken_count: u64,
    /// Packets that reached their host.
    pub arrived_count: u64,
}

/// The network.
#[derive(Debug)]
pub struct Fabric {
    topology: Topology,
    links: Vec<Link>,
    /// Under way, by name.
    packets: Slab<Packet>,
    shape: Shape,
    /// Card and software of a host.
    host_ns: u64,
    random: Random,
    tally: Tally,
    police: Option<Police>,
}

/// Drops what a flow, by its 5-tuple, sends beyond a rate and a burst, as some clouds do.
#[derive(Debug)]
struct Police {
    shape: Shape,
    /// When all that passed would have left at the rate.
    busy_until_ns: HashMap<FiveTuple, u64>,
}

impl Police {
    fn passes(&mut self, now_ns: u64, tuple: &FiveTuple, bytes: u64) -> bool {
        let busy_until_ns = self.busy_until_ns.entry(*tuple).or_insert(0);
        let ends_ns = (*busy_until_ns).max(now_ns) + self.shape.time_ns(bytes);
        let passes = ends_ns <= now_ns + self.shape.burst_ns;
        if passes {
            *busy_until_ns = ends_ns;
        }
        passes
    }
}

impl Fabric {
    /// Links of `rate` Gb/s with queues of `queue_bytes`.
    pub fn new(topology: Topology, rate: u64, queue_bytes: u64, seed: u64) -> Self {
        let shape = Shape::new(1000 * rate, queue_bytes, 0);
        let link = Link {
            busy_until_ns: 0,
            broken_from_ns: 0,
            healed_from_ns: u64::MAX,
            loss_per_million: 0,
            carried_count: 0,
            shape,
        };
        Self {
            links: vec![link; topology.link_count()],
            packets: Slab::new(),
            shape,
            host_ns: HOST_NS,
            random: Random::new(seed),
            tally: Tally::default(),
            police: None,
            topology,
        }
    }

    /// Hosts, leaves and spines.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Counts so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Packets that are neither dropped nor arrived.
    pub fn flying_count(&self) -> usize {
        self.packets.len()
    }

    /// Time of so many bytes on a link.
    pub fn time_ns(&self, bytes: u64) -> u64 {
        self.shape.time_ns(bytes)
    }

    /// All links of a spine swallow everything from this time on.
    pub fn break_spine(&mut self, spine: usize, at_ns: u64) {
        for link in self.topology.spine_links(spine) {
            self.links[link as usize].broken_from_ns = at_ns.max(1);
            self.links[link as usize].healed_from_ns = u64::MAX;
        }
    }

    /// From this time on they work again.
    pub fn heal_spine(&mut self, spine: usize, at_ns: u64) {
        for link in self.topology.spine_links(spine) {
            self.links[link as usize].healed_from_ns = at_ns;
        }
    }

    /// All links of a spine get this shape.
    pub fn shape_spine(&mut self, spine: usize, shape: Shape) {
        for link in self.topology.spine_links(spine) {
            self.links[link as usize].shape = shape;
        }
    }

    /// From now on each flow has this rate in Mbit/s and this burst; what is beyond is dropped.
    pub fn police_flows(&mut self, megabits: u64, burst_bytes: u64) {
        self.police = Some(Police {
            shape: Shape::new(megabits, 0, burst_bytes),
            busy_until_ns: HashMap::new(),
        });
    }

    /// What card and software of a host take for every packet.
    pub fn set_host_ns(&mut self, host_ns: u64) {
        self.host_ns = host_ns;
    }

    /// Packets that the links of a spine took.
    pub fn carried_count(&self, spine: usize) -> u64 {
        let links = self.topology.spine_links(spine).into_iter();
        links
            .map(|link| u64::from(self.links[link as usize].carried_count))
            .sum()
    }

    /// A link loses packets at random.
    pub fn set_loss(&mut self, link: u32, per_million: u32) {
        self.links[link as usize].loss_per_million = per_million;
    }

    /// How long the fullest queue of a spine's links takes to leave.
    pub fn queue_ns(&self, spine: usize, now_ns: u64) -> u64 {
        let links = self.topology.spine_links(spine).into_iter();
        let queues = links.map(|link| self.links[link as usize].busy_until_ns);
        queues.max().unwrap_or(0).saturating_sub(now_ns)
    }

    /// When the host's card has sent all it was given.
    pub fn card_free_ns(&self, host: usize) -> u64 {
        self.links[self.topology.host_up(host) as usize].busy_until_ns
    }

    /// A host hands a packet to its card. Answers its name and where it is next.
    pub fn send(
        &mut self,
        now_ns: u64,
        tuple: &FiveTuple,
        bytes: u64,
        content: Content,
    ) -> (u32, Step) {
        let packet = Packet {
            source: tuple.source,
            target: tuple.target,
            source_port: tuple.source_port,
            wire_bytes: (bytes + FRAME_BYTES) as u32,
            route: self.topology.route(tuple),
            hop: 0,
            ecn: content.ecn(),
            content,
        };
        self.tally.sent_count += 1;
        let name = self.packets.insert(packet) as u32;
        let police = self.police.as_mut();
        if police.is_some_and(|police| !police.passes(now_ns, tuple, bytes + FRAME_BYTES)) {
            self.tally.full_count += 1;
            self.packets.remove(name as usize);
            return (name, Step::Dropped);
        }
        (name, self.advance(now_ns, name))
    }

    /// A packet is at the entry of its next link.
    pub fn advance(&mut self, now_ns: u64, name: u32) -> Step {
        let packet = &mut self.packets[name as usize];
        let first = packet.hop == 0;
        let link = &mut self.links[packet.route.links[usize::from(packet.hop)] as usize];
        packet.hop += 1;
        let broken = link.broken_from_ns != 0
            && (link.broken_from_ns..link.healed_from_ns).contains(&now_ns);
        let unlucky = link.loss_per_million > 0
            && self.random.below(1_000_000) < u64::from(link.loss_per_million);
        if broken || unlucky {
            self.tally.broken_count += 1;
            self.packets.remove(name as usize);
            return Step::Dropped;
        }
        let shape = &link.shape;
        let wait_ns = link.busy_until_ns.saturating_sub(now_ns);
        // A card takes what its host gives it; the host looks after the card's queue.
        if wait_ns > shape.queue_ns + shape.burst_ns && !first {
            self.tally.full_count += 1;
            self.packets.remove(name as usize);
            return Step::Dropped;
        }
        if wait_ns > shape.marks_ns && packet.ecn == Ecn::Ect0 {
            packet.ecn = Ecn::Ce;
        }
        link.carried_count += 1;
        link.busy_until_ns = now_ns + wait_ns + shape.time_ns(packet.wire_bytes.into());
        let leaves_ns = link
            .busy_until_ns
            .saturating_sub(shape.burst_ns)
            .max(now_ns);
        if packet.hop == packet.route.count {
            Step::Arrives(leaves_ns + HOP_NS + self.host_ns)
        } else {
            Step::Hop(leaves_ns + HOP_NS)
        }
    }

    /// The host that a packet is for.
    pub fn target(&self, name: u32) -> u32 {
        self.packets[name as usize].target
    }

    /// Takes a packet that has arrived.
    pub fn take(&mut self, name: u32) -> Packet {
        self.tally.arrived_count += 1;
        self.packets.remove(name as usize)
    }

    /// Time between the first bit out of one host and the last bit of a packet of this size in
    /// another.
    pub fn crossing_ns(&self, source: usize, target: usize, packet_bytes: u64) -> u64 {
        let hops = if self.topology.same_leaf(source, target) {
            2
        } else {
            4
        };
        hops * (HOP_NS + self.time_ns(packet_bytes)) + self.host_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fabric() -> Fabric {
        Fabric::new(Topology::new(16, &mut Random::new(1)), 100, 64 << 10, 1)
    }

    fn segment() -> Content {
        Content::Tcp(Segment::default())
    }

    fn datagrams(source: u32, target: u32) -> FiveTuple {
        FiveTuple {
            source,
            target,
            source_port: 1,
            target_port: 2,
            protocol: 17,
        }
    }

    #[test]
    fn a_single_packet_takes_the_crossing_time() {
        let mut fabric = fabric();
        let tuple = datagrams(0, 15);
        let (name, mut step) = fabric.send(0, &tuple, 1434, segment());
        loop {
            match step {
                Step::Hop(at_ns) => step = fabric.advance(at_ns, name),
                Step::Arrives(at_ns) => {
                    assert_eq!(at_ns, fabric.crossing_ns(0, 15, 1500));
                    break;
                }
                Step::Dropped => panic!("dropped"),
            }
        }
    }

    #[test]
    fn a_full_queue_drops_and_a_broken_spine_swallows() {
        let mut fabric = fabric();
        let mut dropped = 0;
        for source in [1, 2, 3] {
            for _ in 0..40 {
                let tuple = datagrams(source, 0);
                let (name, _) = fabric.send(0, &tuple, 1434, segment());
                dropped += u64::from(fabric.advance(1000, name) == Step::Dropped);
            }
        }
        // 64 KiB of queue take 43 packets of 1500 bytes, and one is being sent.
        assert_eq!(dropped, 120 - 44);
        assert_eq!(fabric.tally().full_count, dropped);
        for spine in 0..fabric.topology().spine_count() {
            fabric.break_spine(spine, 5);
        }
        let tuple = datagrams(0, 15);
        let (name, _) = fabric.send(10, &tuple, 100, segment());
        assert_eq!(fabric.advance(20, name), Step::Dropped);
        assert_eq!(fabric.tally().broken_count, 1);
    }
}
