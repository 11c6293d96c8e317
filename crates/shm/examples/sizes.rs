// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One way through the transport alone, by size: no MPI, no libfabric. Two threads, one message at
//! a time there and back; prints the median of all trips for each size and the best twentieth,
//! which stays what it is while others use the machine, beside one memcpy of that size.
//!
//! Usage: sizes [ROUNDS [SIZE ...]]; pin with taskset if wanted.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Instant;

use weft_contract::*;
use weft_memory::{BytesView, BytesViewMut, UserBuffer};
use weft_shm::{Settings, Transport};

const LARGEST: usize = 4 << 20;

/// An owner with a receive always posted.
struct Always {
    buffer: UserBuffer,
    arrived: u64,
    sent: u64,
}

impl Owner for Always {
    fn on_message(&mut self, _: &Envelope, payload: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.buffer.fill(0, payload);
        self.arrived += 1;
        true
    }
    fn on_offer(&mut self, envelope: &Envelope, _: OfferId) -> Option<Landing> {
        let buffer = self.buffer.part(0, envelope.length_bytes as usize);
        Some(Landing {
            token: LandingToken(0),
            buffer,
        })
    }
    fn on_landed(&mut self, _: LandingToken, outcome: Result<(), TransferError>) {
        outcome.expect("landed");
        self.arrived += 1;
    }
    fn on_sent(&mut self, _: SendToken, outcome: Result<(), TransferError>) {
        outcome.expect("sent");
        self.sent += 1;
    }
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {}
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}

fn send(transport: &mut Transport, owner: &mut Always, out: &UserBuffer) {
    let op = SendOp {
        remote: RemoteId(0),
        class: Class::Tagged,
        tag: 7,
        cq_data: Some(1),
        level: CompletionLevel::Transmit,
        token: SendToken(0),
        inject: false,
    };
    loop {
        match transport.post_send(&op, out) {
            Ok(Posted::Complete) => return owner.sent += 1,
            Ok(Posted::Pending) => return,
            Err(PostError::Busy) => {
                transport.progress(owner);
            }
            Err(PostError::Failed(why)) => panic!("{why}"),
        }
    }
}

fn exchange(
    transport: &mut Transport,
    out: &UserBuffer,
    into: &UserBuffer,
    trips: u64,
    first: bool,
) -> Vec<f64> {
    let mut ways = Vec::with_capacity(trips as usize);
    let mut owner = Always {
        buffer: into.clone(),
        arrived: 0,
        sent: 0,
    };
    for trip in 1..=trips {
        let start = Instant::now();
        if first {
            send(transport, &mut owner, out);
        }
        while owner.arrived < trip {
            transport.progress(&mut owner);
        }
        if !first {
            send(transport, &mut owner, out);
        }
        ways.push(start.elapsed().as_nanos() as f64 / 2.0);
    }
    while owner.sent < trips {
        transport.progress(&mut owner);
    }
    ways
}

fn one_memcpy_ns(size: usize) -> f64 {
    let (source, mut target) = (on_a_page(size.max(1)), vec![0u8; size]);
    let repeat = (1 << 24) / size.max(64);
    let start = Instant::now();
    for _ in 0..repeat {
        source.drain(0, &mut BytesViewMut::from_slice(&mut target));
        std::hint::black_box(&target);
    }
    start.elapsed().as_nanos() as f64 / repeat as f64
}

/// Memory that begins with a page and has been written, as the buffers of MPI benchmarks do and
/// have.
fn on_a_page(length: usize) -> UserBuffer {
    let whole = UserBuffer::leaked(&[length + 4096]);
    let skip = whole.address().next_multiple_of(4096) - whole.address();
    let part = whole.part(skip, length);
    part.fill(0, BytesView::from_slice(&vec![1; length]));
    part
}

/// The best twentieth, and the median.
fn quantiles(mut values: Vec<f64>) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    [values[values.len() / 20], values[values.len() / 2]]
}

fn open() -> Transport {
    let single_copy = match std::env::var("SINGLE_COPY").as_deref() {
        Ok("never") => weft_shm::SingleCopy::Never,
        Ok("always") => weft_shm::SingleCopy::Always,
        _ => weft_shm::SingleCopy::Auto,
    };
    let address = Some(([127, 0, 0, 1], 0).into());
    Transport::open(Settings {
        address,
        single_copy,
        ..Settings::default()
    })
    .expect("transport")
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse::<usize>().ok());
    let rounds = arguments.next().unwrap_or(11);
    let mut sizes: Vec<usize> = arguments.collect();
    if sizes.is_empty() {
        sizes = (3..=22).map(|power| 1 << power).collect();
    }
    let (mut a, mut b) = (open(), open());
    let (address_a, address_b) = (a.local_address(), b.local_address());
    a.add_remote(RemoteId(0), address_b);
    b.add_remote(RemoteId(0), address_a);
    let (go, wait) = mpsc::channel::<(usize, u64)>();
    let second = std::thread::spawn(move || {
        let into = on_a_page(LARGEST);
        let out = on_a_page(LARGEST);
        for (size, trips) in wait {
            exchange(&mut b, &out.part(0, size), &into, trips, false);
        }
    });
    let (out, into) = (on_a_page(LARGEST), on_a_page(LARGEST));
    println!(
        "{:>9} {:>12} {:>12} {:>12} {:>8}",
        "bytes", "best 20th ns", "one way ns", "memcpy ns", "ratio"
    );
    for size in sizes {
        let trips = (20_000_000 / (size as u64 + 3000)).clamp(20, 5000);
        let (mut ways, mut copies) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            go.send((size, trips)).expect("second side");
            ways.extend(exchange(&mut a, &out.part(0, size), &into, trips, true));
            copies.push(one_memcpy_ns(size));
        }
        let ([best, way], [_, copy]) = (quantiles(ways), quantiles(copies));
        println!(
            "{size:>9} {best:>12.0} {way:>12.0} {copy:>12.0} {:>8.2}",
            way / copy
        );
    }
    drop(go);
    second.join().expect("second side");
}
