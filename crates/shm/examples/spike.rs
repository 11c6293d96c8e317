// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the two traits cost: one 8-byte message there and back, once through `Peer` and `Owner` and once by hand
//! on the ring, in interleaved rounds. Prints medians and the ratio (docs/adr/0001-owner-and-peer.md).
//!
//! Usage: spike [ROUNDS]; pin with taskset if wanted.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Instant;

use weft_contract::*;
use weft_memory::{BytesView, Mapping, UserBuffer};
use weft_ring::{Consumer, Head, Producer, layout};
use weft_shm::{Settings, Transport};

const TRIPS: u32 = 20_000;

/// An owner with one receive posted at a time.
struct OneReceive {
    buffer: UserBuffer,
    arrived: u64,
    address: SocketAddr,
}

impl Owner for OneReceive {
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        _ack: Option<AckToken>,
    ) -> bool {
        if envelope.tag == 7 {
            self.buffer.fill(0, payload);
            self.arrived += 1;
        }
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        None
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {}
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {}
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        assert_eq!(address, self.address);
        RemoteId(0)
    }
}

fn open() -> Transport {
    let settings = Settings {
        address: Some(([127, 0, 0, 1], 0).into()),
        ..Settings::default()
    };
    Transport::open(settings).expect("transport")
}

/// One side of the exchange through the traits; the first side is timed.
fn by_traits(transport: &mut Transport, address: SocketAddr, first: bool) -> f64 {
    let (out, into) = buffers();
    let mut owner = OneReceive {
        buffer: into,
        arrived: 0,
        address,
    };
    let op = SendOp {
        remote: RemoteId(0),
        class: Class::Tagged,
        tag: 7,
        cq_data: Some(1),
        level: CompletionLevel::Inject,
        token: SendToken(0),
        inject: true,
    };
    let start = Instant::now();
    for trip in 1..=u64::from(TRIPS) {
        if first {
            while transport.post_send(&op, &out).is_err() {}
        }
        while owner.arrived < trip {
            transport.progress(&mut owner);
        }
        if !first {
            while transport.post_send(&op, &out).is_err() {}
        }
    }
    start.elapsed().as_nanos() as f64 / f64::from(2 * TRIPS)
}

/// The same on the ring itself.
fn by_hand(out: &mut Producer, into: &mut Consumer, first: bool) -> f64 {
    let (source, target) = buffers();
    let head = Head {
        kind: 1,
        flags: 3,
        length_bytes: 8,
    };
    let start = Instant::now();
    for _ in 0..TRIPS {
        if first {
            while out.push_inline(head, 7, 1, &source).is_err() {}
        }
        loop {
            if let Some(arrival) = into.peek() {
                if arrival.word(0) == 7 {
                    target.fill(0, arrival.inline_payload().expect("fits"));
                }
                break;
            }
        }
        into.advance(0);
        into.settle();
        if !first {
            while out.push_inline(head, 7, 1, &source).is_err() {}
        }
    }
    start.elapsed().as_nanos() as f64 / f64::from(2 * TRIPS)
}

/// What is sent, and where it lands.
fn buffers() -> (UserBuffer, UserBuffer) {
    (UserBuffer::leaked(&[8]), UserBuffer::leaked(&[8]))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let rounds: usize = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(31);
    let (mut a, mut b) = (open(), open());
    let (address_a, address_b) = (a.local_address(), b.local_address());
    a.add_remote(RemoteId(0), address_b);
    b.add_remote(RemoteId(0), address_a);
    let file = weft_os::region_file::create_memfd("weft-spike", layout::REGION_BYTES as u64)
        .expect("memfd");
    let region =
        Mapping::shared(std::os::fd::AsFd::as_fd(&file), layout::REGION_BYTES).expect("mapping");
    let ends = |slot| {
        let producer = Producer::attach(&region, slot).expect("slot");
        (producer, Consumer::attach(&region, slot).expect("slot"))
    };
    let ((mut out_a, mut into_b), (mut out_b, mut into_a)) = (ends(0), ends(1));
    let (go, wait) = mpsc::channel::<bool>();
    let second = std::thread::spawn(move || {
        for traits in wait {
            if traits {
                by_traits(&mut b, address_a, false);
            } else {
                by_hand(&mut out_b, &mut into_b, false);
            }
        }
    });
    let (mut with_traits, mut with_hand) = (Vec::new(), Vec::new());
    for round in 0..2 * rounds {
        let traits = round % 2 == 0;
        go.send(traits).expect("second side");
        if traits {
            with_traits.push(by_traits(&mut a, address_b, true));
        } else {
            with_hand.push(by_hand(&mut out_a, &mut into_a, true));
        }
    }
    drop(go);
    second.join().expect("second side");
    let ratios = with_traits
        .iter()
        .zip(&with_hand)
        .map(|(traits, hand)| traits / hand)
        .collect();
    println!(
        "one way through the traits: {:.1} ns, by hand: {:.1} ns",
        median(with_traits),
        median(with_hand)
    );
    println!(
        "median of the paired ratios over {rounds} rounds: {:.2}",
        median(ratios)
    );
}
