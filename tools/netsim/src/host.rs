// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host: an SRD machine or ends of baseline flows, and their messages. Called by simulator.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weft_srd::{
    Arrival, Config, Event, Instant, Machine, Nanos, Offer, Origin, PostError, Send, Statistics,
};

use crate::fabric::{Content, Outgoing, Packet};
use crate::hash::FiveTuple;
use crate::pieces::{Cuts, Joins};
use crate::rival_host::RivalHost;
use crate::tcp::{HEADER_BYTES, Segment, Sink, Source};
use crate::workload::Transfer;

/// Ports of the machine on every host: 4000 to 4007.
const FIRST_PORT: u16 = 4000;
/// What has arrived of a message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    bytes: u64,
    /// Sum of the indices of all bytes: differs when one came twice and another one never.
    index_sum: u128,
    /// When all of it was there; 0 before.
    pub done_ns: u64,
}

impl Progress {
    fn add(&mut self, offset: u64, length: u64) {
        self.bytes += length;
        let (offset, length) = (u128::from(offset), u128::from(length));
        self.index_sum += offset * length + length * length.saturating_sub(1) / 2;
    }

    /// Every byte exactly once, or the machine is wrong.
    fn assert_whole(&self, bytes: u64) {
        let sum = u128::from(bytes) * u128::from(bytes.saturating_sub(1)) / 2;
        assert_eq!(
            (self.bytes, self.index_sum),
            (bytes, sum),
            "a message must arrive whole and once"
        );
    }
}

/// What hosts share during an event.
#[derive(Debug)]
pub struct Desk {
    /// The simulated time.
    pub now_ns: u64,
    /// How long the packet in hand had waited for its host.
    pub waited_ns: u64,
    /// All messages of the run.
    pub transfers: Vec<Transfer>,
    /// By message.
    pub progress: Vec<Progress>,
    /// Messages that became whole in this event.
    pub done: Vec<u32>,
    /// Messages that failed.
    pub failed_count: u64,
    /// A datagram in the making: heads are copied to its front, payloads are zeros that nobody
    /// reads.
    pub scratch: Vec<u8>,
    /// Receiving ends of the baseline, by message.
    pub sinks: Vec<Option<Sink>>,
    /// Payload bytes of a baseline packet.
    pub tcp_payload_bytes: u64,
}

impl Desk {
    /// Before anything has begun.
    pub fn new(transfers: Vec<Transfer>, tcp_payload_bytes: u64) -> Self {
        Self {
            now_ns: 0,
            waited_ns: 0,
            progress: vec![Progress::default(); transfers.len()],
            sinks: vec![None; transfers.len()],
            transfers,
            done: Vec::new(),
            failed_count: 0,
            scratch: vec![0; 64 << 10],
            tcp_payload_bytes,
        }
    }

    /// A message that came in one piece, of so many bytes.
    fn take_whole(&mut self, index: u32, bytes: u64) {
        self.progress[index as usize].add(0, bytes);
        self.finish(index);
    }

    fn finish(&mut self, index: u32) {
        let progress = &mut self.progress[index as usize];
        assert_eq!(progress.done_ns, 0, "message {index} was completed twice");
        progress.assert_whole(self.transfers[index as usize].bytes);
        progress.done_ns = self.now_ns;
        self.done.push(index);
    }
}

/// One host, of either kind.
#[derive(Debug)]
pub enum Host {
    /// With the machine.
    Srd(Box<SrdHost>),
    /// With the baseline.
    Tcp(TcpHost),
    /// With an end of a flow without end.
    Rival(Box<RivalHost>),
}

impl Host {
    /// Begins a message.
    pub fn start(&mut self, desk: &mut Desk, index: u32) {
        match self {
            Self::Srd(host) => host.start(desk, index),
            Self::Tcp(host) => host.start(desk, index),
            // It sends whatever the messages are.
            Self::Rival(_) => {}
        }
    }

    /// Takes a packet.
    pub fn on_packet(&mut self, desk: &mut Desk, packet: &Packet) {
        match self {
            Self::Srd(host) => host.on_packet(desk, packet),
            Self::Tcp(host) => host.on_packet(desk, packet),
            Self::Rival(host) => host.on_packet(desk.now_ns, packet),
        }
    }

    /// The next packet to send, if one may leave.
    pub fn poll(&mut self, desk: &mut Desk) -> Option<Outgoing> {
        match self {
            Self::Srd(host) => host.poll(desk),
            Self::Tcp(host) => host.poll(desk),
            Self::Rival(host) => host.poll(desk.now_ns),
        }
    }

    /// When to call [`Host::on_timeout`].
    pub fn deadline_ns(&self) -> u64 {
        match self {
            Self::Srd(host) => host.machine.poll_timeout().unwrap_or(Instant::NEVER).0,
            Self::Tcp(host) => host
                .sources
                .iter()
                .map(|pair| pair.1.deadline_ns())
                .min()
                .unwrap_or(u64::MAX),
            Self::Rival(host) => host.deadline_ns(),
        }
    }

    /// Time has come.
    pub fn on_timeout(&mut self, desk: &mut Desk) {
        match self {
            Self::Srd(host) => {
                host.machine.handle_timeout(Instant(desk.now_ns));
                host.drain(desk);
            }
            Self::Tcp(host) => {
                for (_, source) in &mut host.sources {
                    source.on_timeout(desk.now_ns);
                }
            }
            Self::Rival(host) => host.on_timeout(desk.now_ns),
        }
    }

    /// Asserts what must hold at all times.
    pub fn check(&self) {
        if let Self::Srd(host) = self {
            host.machine.inspect().check_invariants();
        }
    }

    /// What the machine counted; nothing for the baseline.
    pub fn statistics(&self) -> Statistics {
        match self {
            Self::Srd(host) => host.machine.inspect().statistics(),
            Self::Tcp(_) | Self::Rival(_) => Statistics::default(),
        }
    }

    /// Packets sent again so far.
    pub fn retransmitted_count(&self) -> u64 {
        match self {
            Self::Srd(host) => host.machine.inspect().statistics().retransmitted_count,
            Self::Tcp(host) => host.retransmitted_count,
            Self::Rival(_) => 0,
        }
    }

    /// Payload that has arrived here, of messages that have begun to; nothing for the baseline,
    /// which is not asked.
    pub fn taken_bytes(&self) -> u64 {
        match self {
            Self::Srd(host) => host.taken_bytes,
            Self::Tcp(_) => 0,
            Self::Rival(host) => host.taken_bytes(),
        }
    }
}

/// A host with the machine.
#[derive(Debug)]
pub struct SrdHost {
    host: u32,
    machine: Machine,
    /// Messages for which the machine had no room yet.
    waiting: VecDeque<u32>,
    /// Payload that has arrived.
    taken_bytes: u64,
    cuts: Cuts,
    joins: Joins,
    /// Parts of a packet that has begun to leave.
    leaving: VecDeque<Outgoing>,
}

fn ip(host: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + host))
}

fn host_of(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => address.to_bits() - 0x0a00_0000,
        IpAddr::V6(_) => unreachable!("simulated hosts have IPv4 addresses"),
    }
}

impl SrdHost {
    /// A host whose machine has these settings; the ports are the host's own.
    pub fn new(host: u32, mut config: Config, seed: u64) -> Self {
        config.long_packets = true;
        for (index, port) in config.ports.iter_mut().enumerate() {
            *port = FIRST_PORT + index as u16;
        }
        let incarnation = seed
            .wrapping_mul(0x1_0000_0001)
            .wrapping_add(u64::from(host) + 1);
        let machine = Machine::new(config, incarnation).expect("options were checked");
        Self {
            host,
            machine,
            waiting: VecDeque::new(),
            taken_bytes: 0,
            cuts: Cuts::default(),
            joins: Joins::default(),
            leaving: VecDeque::new(),
        }
    }

    fn start(&mut self, desk: &mut Desk, index: u32) {
        self.waiting.push_back(index);
        self.post_waiting(desk);
    }

    fn post_waiting(&mut self, desk: &Desk) {
        while let Some(index) = self.waiting.front().copied() {
            let transfer = &desk.transfers[index as usize];
            let remote = self
                .machine
                .remote(SocketAddr::new(ip(transfer.target), FIRST_PORT));
            let Some(remote) = remote else { return };
            let send = Send {
                remote,
                tag: Some(u64::from(index)),
                cq_data: None,
                length_bytes: transfer.bytes,
                wants_receipt: false,
                is_awaited: true,
                is_service: false,
                token: u64::from(index),
            };
            match self.machine.post_send(Instant(desk.now_ns), &send) {
                Err(PostError::Busy) => return,
                Ok(()) | Err(_) => self.waiting.pop_front(),
            };
        }
    }

    fn on_packet(&mut self, desk: &mut Desk, packet: &Packet) {
        let Content::Srd {
            head,
            payload_bytes,
            part,
        } = &packet.content
        else {
            return;
        };
        let Some(ecn) = self.joins.take(packet.source, *part, packet.ecn) else {
            return;
        };
        let head = head.as_bytes();
        let mut scratch = std::mem::take(&mut desk.scratch);
        scratch[..head.len()].copy_from_slice(head);
        let datagram = &scratch[..head.len() + *payload_bytes as usize];
        let from = SocketAddr::new(ip(packet.source), packet.source_port);
        let origin = Origin {
            from,
            waited_ns: Nanos(desk.waited_ns),
            ecn,
        };
        let now_ns = Instant(desk.now_ns);
        match self.machine.handle_datagram(now_ns, origin, datagram) {
            Arrival::Nothing => {}
            Arrival::Message {
                message, payload, ..
            } => {
                self.taken_bytes += payload.len() as u64;
                desk.take_whole(message.tag.unwrap_or(0) as u32, payload.len() as u64);
            }
            Arrival::Begun {
                remote,
                segment,
                payload,
                ..
            } => {
                let landing = segment.message.tag.unwrap_or(0);
                self.taken_bytes += payload.len() as u64;
                let mut flow = self.machine.at(remote);
                flow.begin(now_ns, &segment, payload, Some(landing));
                desk.progress[landing as usize].add(segment.offset_bytes, payload.len() as u64);
            }
            Arrival::Data {
                landing,
                offset_bytes,
                payload,
                ..
            } => {
                self.taken_bytes += payload.len() as u64;
                desk.progress[landing as usize].add(offset_bytes, payload.len() as u64);
            }
        }
        desk.scratch = scratch;
        self.drain(desk);
    }

    fn drain(&mut self, desk: &mut Desk) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Message {
                    message, payload, ..
                } => {
                    self.taken_bytes += payload.len() as u64;
                    desk.take_whole(message.tag.unwrap_or(0) as u32, payload.len() as u64);
                }
                Event::Offer {
                    remote,
                    life,
                    message,
                } => {
                    let offer = Offer {
                        remote,
                        life,
                        message_id: message.id,
                    };
                    let landing = message.tag.unwrap_or(0);
                    let accepted = self.machine.accept(
                        Instant(desk.now_ns),
                        offer,
                        landing,
                        message.length_bytes,
                    );
                    assert_eq!(accepted, Ok(()), "64 messages of a remote have 64 landings");
                }
                Event::Landed { landing } => desk.finish(landing as u32),
                Event::Sent { .. } => self.post_waiting(desk),
                Event::SendFailed { .. } => desk.failed_count += 1,
                Event::LandingFailed { .. } | Event::RemoteLost { .. } => {}
            }
        }
    }

    fn poll(&mut self, desk: &mut Desk) -> Option<Outgoing> {
        if let Some(next) = self.leaving.pop_front() {
            return Some(next);
        }
        let transmit = self.machine.poll_transmit(Instant(desk.now_ns))?;
        let tuple = FiveTuple {
            source: self.host,
            target: host_of(transmit.to.ip()),
            source_port: FIRST_PORT + u16::from(transmit.path.source_port_index()),
            target_port: transmit.to.port(),
            protocol: 17,
        };
        let payload_bytes = transmit.payload.map_or(0, |payload| payload.length_bytes);
        for (part, bytes) in self.cuts.cut(&transmit) {
            let content = Content::Srd {
                head: transmit.head,
                payload_bytes,
                part,
            };
            self.leaving.push_back(Outgoing {
                tuple,
                bytes,
                content,
            });
        }
        self.leaving.pop_front()
    }
}

/// A host with ends of the baseline.
#[derive(Debug)]
pub struct TcpHost {
    host: u32,
    sources: Vec<(u32, Source)>,
    turn: usize,
    answers: VecDeque<(u32, Segment)>,
    retransmitted_count: u64,
}

impl TcpHost {
    /// A host with nothing to do.
    pub fn new(host: u32) -> Self {
        Self {
            host,
            sources: Vec::new(),
            turn: 0,
            answers: VecDeque::new(),
            retransmitted_count: 0,
        }
    }

    fn start(&mut self, desk: &mut Desk, index: u32) {
        let bytes = desk.transfers[index as usize].bytes;
        let packets = bytes.div_ceil(desk.tcp_payload_bytes).max(1) as u32;
        desk.sinks[index as usize] = Some(Sink::new(packets));
        self.sources.push((index, Source::new(index, packets)));
    }

    fn on_packet(&mut self, desk: &mut Desk, packet: &Packet) {
        let Content::Tcp(segment) = packet.content else {
            return;
        };
        if segment.acknowledges {
            let at = self.sources.iter().position(|pair| pair.0 == segment.flow);
            if let Some(at) = at {
                self.sources[at].1.on_acknowledged(&segment, desk.now_ns);
                if self.sources[at].1.is_done() {
                    self.sources.swap_remove(at);
                }
            }
            return;
        }
        let Some(sink) = desk.sinks[segment.flow as usize].as_mut() else {
            return;
        };
        let before = sink.is_done();
        self.answers
            .push_back((packet.source, sink.on_packet(&segment)));
        if sink.is_done() && !before {
            let bytes = desk.transfers[segment.flow as usize].bytes;
            desk.take_whole(segment.flow, bytes);
        }
    }

    fn poll(&mut self, desk: &mut Desk) -> Option<Outgoing> {
        if let Some((target, segment)) = self.answers.pop_front() {
            return Some(self.outgoing(target, segment, HEADER_BYTES));
        }
        for _ in 0..self.sources.len() {
            self.turn = (self.turn + 1) % self.sources.len();
            let (index, source) = &mut self.sources[self.turn];
            if let Some((segment, again)) = source.poll(desk.now_ns) {
                let target = desk.transfers[*index as usize].target;
                self.retransmitted_count += u64::from(again);
                return Some(self.outgoing(target, segment, HEADER_BYTES + desk.tcp_payload_bytes));
            }
        }
        None
    }

    /// One connection per message: a client's port of its own, and the server's.
    fn outgoing(&self, target: u32, segment: Segment, bytes: u64) -> Outgoing {
        let client = 32_768 + (segment.flow % 28_000) as u16;
        let (source_port, target_port) = if segment.acknowledges {
            (5000, client)
        } else {
            (client, 5000)
        };
        let tuple = FiveTuple {
            source: self.host,
            target,
            source_port,
            target_port,
            protocol: 6,
        };
        Outgoing {
            tuple,
            bytes,
            content: Content::Tcp(segment),
        }
    }
}
