// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the machine itself costs per packet, without sockets: `cargo run --release -p weft-srd
//! --example cost`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

use weft_srd::{Arrival, Config, Event, Machine, Offer, Send};

const ROUNDS: u64 = 200_000;
const BULK_BYTES: u64 = 256 << 20;

struct Ends {
    machines: [Machine; 2],
    now_ns: u64,
    datagram: Vec<u8>,
    packet_count: u64,
    data_bytes: u64,
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host as u8)), 1)
}

impl Ends {
    fn new() -> Self {
        let machine = |host| Machine::new(Config::default(), host).expect("defaults can be");
        Self {
            machines: [machine(1), machine(2)],
            now_ns: 1_000_000_000,
            datagram: vec![0; 2048],
            packet_count: 0,
            data_bytes: 0,
        }
    }

    fn post(&mut self, from: usize, length_bytes: u64) {
        let remote = self.machines[from]
            .remote(address(1 - from))
            .expect("room for a remote");
        let send = Send {
            remote,
            tag: Some(1),
            cq_data: None,
            length_bytes,
            wants_receipt: false,
            is_awaited: false,
            is_service: false,
            token: 1,
        };
        self.machines[from]
            .post_send(weft_srd::Instant(self.now_ns), &send)
            .expect("room for a message");
    }

    /// Moves what can be moved from one end to the other; answers whether a message arrived.
    fn carry(&mut self, from: usize) -> bool {
        let mut arrived = false;
        while let Some(transmit) = self.machines[from].poll_transmit(weft_srd::Instant(self.now_ns))
        {
            self.packet_count += 1;
            let head = transmit.head.as_bytes();
            self.datagram[..head.len()].copy_from_slice(head);
            let datagram = &self.datagram[..transmit.length_bytes()];
            let other = &mut self.machines[1 - from];
            match other.handle_datagram(
                weft_srd::Instant(self.now_ns + 5_000),
                address(from),
                datagram,
            ) {
                Arrival::Nothing => {}
                Arrival::Message { .. } => arrived = true,
                Arrival::Begun {
                    remote,
                    segment,
                    payload,
                    ..
                } => {
                    let now_ns = weft_srd::Instant(self.now_ns + 5_000);
                    self.data_bytes += payload.len() as u64;
                    other.at(remote).begin(now_ns, &segment, payload, Some(0));
                }
                Arrival::Data { payload, .. } => self.data_bytes += payload.len() as u64,
            }
            while let Some(event) = other.poll_event() {
                if let Event::Offer {
                    remote,
                    life,
                    message,
                } = event
                {
                    let offer = Offer {
                        remote,
                        life,
                        message_id: message.id,
                    };
                    let _ = other.accept(
                        weft_srd::Instant(self.now_ns),
                        offer,
                        1,
                        message.length_bytes,
                    );
                }
            }
        }
        arrived
    }

    fn pass(&mut self, span_ns: u64) {
        self.now_ns += span_ns;
        for machine in &mut self.machines {
            machine.handle_timeout(weft_srd::Instant(self.now_ns));
            while machine.poll_event().is_some() {}
        }
    }
}

fn main() {
    let mut ends = Ends::new();
    let start = Instant::now();
    for round in 0..ROUNDS {
        let from = (round % 2) as usize;
        ends.post(from, 8);
        assert!(ends.carry(from), "a small message arrives with its packet");
        ends.pass(6_000);
    }
    let each = start.elapsed().as_nanos() as u64 / ROUNDS;
    println!(
        "ping-pong of 8 bytes: {each} ns per message, sent and received, {} packets",
        ends.packet_count
    );

    let mut ends = Ends::new();
    ends.post(0, BULK_BYTES);
    let start = Instant::now();
    while ends.data_bytes < BULK_BYTES {
        ends.carry(0);
        ends.pass(6_000);
        ends.carry(1);
        ends.pass(6_000);
    }
    let spent = start.elapsed().as_nanos() as u64;
    let packets = ends.packet_count;
    let gigabits = BULK_BYTES * 8 / spent.max(1);
    println!(
        "bulk: {} ns per packet, sent and received, {packets} packets; {gigabits} Gb/s at 1400 \
         bytes",
        spent / packets
    );
}
