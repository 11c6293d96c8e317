// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What many remotes cost: shared memory when all pairs of N endpoints are in contact, and the price of an empty
//! round of progress with 1 to 256 connected remotes of which one is active. All endpoints live in this process.
//!
//! Usage: crowd [N [FILE.svg]]; N is 192 if not given, and no pairs are made if it is 0. Draws the cost of progress to the file.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use weft_contract::*;
use weft_memory::{BytesView, UserBuffer};
use weft_shm::{Settings, Transport};

/// An owner that knows its remotes by the order in which they were added.
struct Counter {
    addresses: Vec<SocketAddr>,
    arrived: u64,
}

impl Owner for Counter {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.arrived += 1;
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        None
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {}
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {}
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        let known = self.addresses.iter().position(|other| *other == address);
        let index = known.unwrap_or_else(|| {
            self.addresses.push(address);
            self.addresses.len() - 1
        });
        RemoteId(index as u32)
    }
}

struct Endpoint {
    transport: Transport,
    owner: Counter,
}

fn open(count: usize) -> Vec<Endpoint> {
    let settings = Settings {
        address: Some(([127, 0, 0, 1], 0).into()),
        ..Settings::default()
    };
    let mut all: Vec<Endpoint> = (0..count)
        .map(|_| Endpoint {
            transport: Transport::open(settings.clone()).expect("transport"),
            owner: Counter {
                addresses: Vec::new(),
                arrived: 0,
            },
        })
        .collect();
    let addresses: Vec<SocketAddr> = all
        .iter()
        .map(|one| one.transport.local_address())
        .collect();
    for one in &mut all {
        one.owner.addresses = addresses.clone();
        for (index, address) in addresses.iter().enumerate() {
            one.transport.add_remote(RemoteId(index as u32), *address);
        }
    }
    all
}

fn send(from: &mut Endpoint, to: usize) {
    let op = SendOp {
        remote: RemoteId(to as u32),
        class: Class::Tagged,
        tag: 1,
        cq_data: None,
        level: CompletionLevel::Inject,
        token: SendToken(0),
        inject: true,
    };
    let payload = UserBuffer::empty();
    while from.transport.post_send(&op, &payload).is_err() {
        from.transport.progress(&mut from.owner);
    }
}

/// Shared memory in use on this machine, in KiB.
fn shared_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").expect("meminfo");
    let line = text
        .lines()
        .find(|line| line.starts_with("Shmem:"))
        .expect("Shmem");
    line.split_whitespace()
        .nth(1)
        .and_then(|number| number.parse().ok())
        .expect("a number")
}

fn memory_of_all_pairs(count: usize) {
    let before = shared_kib();
    let mut all = open(count);
    for from in &mut all {
        for to in 0..count {
            send(from, to);
        }
    }
    for one in &mut all {
        while one.owner.arrived < count as u64 {
            one.transport.progress(&mut one.owner);
        }
    }
    let used_mib = (shared_kib() - before) as f64 / 1024.0;
    println!(
        "{count} endpoints, all {} pairs in contact: {used_mib:.0} MiB of shared memory",
        count * count
    );
}

fn cost_of_silent_remotes(remotes: usize) -> (f64, f64) {
    let mut all = open(remotes + 1);
    for from in &mut all[1..] {
        send(from, 0);
    }
    let (receiver, senders) = all.split_at_mut(1);
    let receiver = &mut receiver[0];
    while receiver.owner.arrived < remotes as u64 {
        receiver.transport.progress(&mut receiver.owner);
    }
    // Only the first stays active while the others fall silent.
    let end = Instant::now() + Duration::from_millis(60);
    while Instant::now() < end {
        send(&mut senders[0], 0);
        receiver.transport.progress(&mut receiver.owner);
    }
    let (mut empty_ns, mut message_ns) = (f64::MAX, f64::MAX);
    for _ in 0..200 {
        let start = Instant::now();
        for _ in 0..200 {
            receiver.transport.progress(&mut receiver.owner);
        }
        empty_ns = empty_ns.min(start.elapsed().as_nanos() as f64 / 200.0);
        let start = Instant::now();
        for _ in 0..50 {
            send(&mut senders[0], 0);
            receiver.transport.progress(&mut receiver.owner);
        }
        message_ns = message_ns.min(start.elapsed().as_nanos() as f64 / 50.0);
    }
    (empty_ns, message_ns)
}

fn main() {
    let count = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(192);
    println!(
        "{:>8} {:>22} {:>24}",
        "remotes", "empty round, best ns", "send and take, best ns"
    );
    let costs = [1, 16, 64, 256].map(|remotes| {
        let (empty_ns, message_ns) = cost_of_silent_remotes(remotes);
        println!("{remotes:>8} {empty_ns:>22.1} {message_ns:>24.1}");
        (remotes, empty_ns, message_ns)
    });
    if let Some(file) = std::env::args().nth(2) {
        std::fs::write(&file, drawing(&costs)).expect("the drawing's folder is there");
    }
    if count > 0 {
        memory_of_all_pairs(count);
    }
}

/// Bars for each number of remotes: an empty round, and a message from the active one.
fn drawing(costs: &[(usize, f64, f64)]) -> String {
    const HEIGHT: f64 = 180.0;
    let most_ns = costs.iter().map(|cost| cost.2).fold(1.0, f64::max);
    let mut bars = String::new();
    for (place, (remotes, empty_ns, message_ns)) in costs.iter().enumerate() {
        let left = 60 + place * 120;
        for (offset, ns, colour) in [(0, *empty_ns, "#4477aa"), (40, *message_ns, "#ee8866")] {
            let (x, height) = (left + offset, ns / most_ns * HEIGHT);
            let (y, middle) = (230.0 - height, x + 18);
            bars += &format!(
                "<rect x='{x}' y='{y:.1}' width='36' height='{height:.1}' fill='{colour}'/>\n\
                 <text x='{middle}' y='{:.1}' text-anchor='middle'>{ns:.1}</text>\n",
                y - 4.0
            );
        }
        let middle = left + 38;
        bars += &format!("<text x='{middle}' y='248' text-anchor='middle'>{remotes}</text>\n");
    }
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='560' height='290' font-family='sans-serif' font-size='12'>\n\
         <rect width='560' height='290' fill='white'/>\n\
         <text x='20' y='20'>Cost of progress, ns (best of 200 rounds), by connected remotes of which one is active</text>\n\
         {bars}<text x='298' y='266' text-anchor='middle'>connected remotes</text>\n\
         <rect x='60' y='274' width='10' height='10' fill='#4477aa'/><text x='76' y='283'>empty round</text>\n\
         <rect x='180' y='274' width='10' height='10' fill='#ee8866'/><text x='196' y='283'>message of the active remote, sent and taken</text>\n\
         </svg>\n"
    )
}
