// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an empty round of progress costs with 1 to 256 connected remotes of which one is active.
//! All endpoints live in this process. Called by scripts/scale.sh.

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
    println!(
        "{:>8} {:>22} {:>24}",
        "remotes", "empty round, best ns", "send and take, best ns"
    );
    for remotes in [1, 16, 64, 256] {
        let (empty_ns, message_ns) = cost_of_silent_remotes(remotes);
        println!("{remotes:>8} {empty_ns:>22.1} {message_ns:>24.1}");
    }
}
