// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Latency and bandwidth of the srd route between two processes, below the endpoint: for measuring
//! the driver itself.
//!
//!   exchange listen ADDRESS latency|bandwidth BYTES SECONDS
//!   exchange join OWN_ADDRESS ADDRESS latency|bandwidth BYTES SECONDS
//!
//! Both sides are given the same mode, length and time. The joining side prints the figures, the
//! listening side the longest time without payload. Run with `cargo run --release -p weft-udp
//! --example exchange -- ...`.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use weft_contract::{
    AckToken, Class, CompletionLevel, Envelope, Landing, LandingToken, OfferId, Owner, Peer,
    PostError, Posted, RemoteId, SendOp, SendToken, TransferError,
};
use weft_memory::{BytesView, UserBuffer};
use weft_udp::{Settings, Transport};

/// Messages under way in the bandwidth test, as OSU's.
const WINDOW: u64 = 64;

/// An owner that takes every message into one buffer and counts.
struct Counter {
    buffer: UserBuffer,
    received_count: u64,
    sent_count: u64,
    lost: bool,
    payload: Gap,
}

/// The longest time between two arrivals.
struct Gap {
    last: Option<Instant>,
    longest: Duration,
}

impl Gap {
    fn mark(&mut self) {
        let now = Instant::now();
        if let Some(last) = self.last {
            self.longest = self.longest.max(now - last);
        }
        self.last = Some(now);
    }
}

impl Owner for Counter {
    fn on_message(&mut self, _: &Envelope, payload: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.buffer.fill(0, payload);
        self.received_count += 1;
        true
    }

    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        Some(Landing {
            token: LandingToken(0),
            buffer: self.buffer.clone(),
        })
    }

    fn on_landed(&mut self, _: LandingToken, outcome: Result<(), TransferError>) {
        if outcome.is_err() {
            return;
        }
        self.payload.mark();
        self.received_count += 1;
    }

    fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {
        self.sent_count += 1;
    }

    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {
        self.lost = true;
    }

    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}

struct Side {
    transport: Transport,
    owner: Counter,
    buffer: UserBuffer,
}

impl Side {
    fn open(own: SocketAddr, length_bytes: usize) -> Self {
        let settings = Settings {
            address: Some(own),
            report: |what| eprintln!("{what}"),
            ..Settings::default()
        };
        let transport = Transport::open(&settings).unwrap_or_else(|error| {
            eprintln!("exchange: {error}");
            std::process::exit(1);
        });
        let room = UserBuffer::leaked(&[length_bytes.max(1)]);
        Self {
            transport,
            owner: Counter {
                buffer: room,
                received_count: 0,
                sent_count: 0,
                lost: false,
                payload: Gap {
                    last: None,
                    longest: Duration::ZERO,
                },
            },
            buffer: UserBuffer::leaked(&[length_bytes]),
        }
    }

    fn progress(&mut self) {
        self.transport.progress(&mut self.owner);
    }

    /// Sends one message; answers whether it is complete already.
    fn send(&mut self, buffer: &UserBuffer, level: CompletionLevel) {
        let op = SendOp {
            remote: RemoteId(0),
            class: Class::Tagged,
            tag: 1,
            cq_data: None,
            level,
            token: SendToken(0),
            inject: level == CompletionLevel::Inject,
        };
        loop {
            match self.transport.post_send(&op, buffer) {
                Ok(Posted::Complete) => return self.owner.sent_count += 1,
                Ok(Posted::Pending) => return,
                Err(PostError::Busy) => self.progress(),
                Err(PostError::Failed(why)) => {
                    eprintln!("exchange: {why}");
                    std::process::exit(1);
                }
            }
        }
    }

    fn send_message(&mut self) {
        let buffer = self.buffer.clone();
        let small = buffer.length_bytes() <= 8192;
        let level = if small {
            CompletionLevel::Inject
        } else {
            CompletionLevel::Transmit
        };
        self.send(&buffer, level);
    }

    fn wait_received(&mut self, count: u64) -> bool {
        let mut told = Instant::now();
        while self.owner.received_count < count && !self.owner.lost {
            self.progress();
            if told.elapsed() > Duration::from_secs(1) {
                told = Instant::now();
                let condition = self.transport.condition(RemoteId(0));
                eprintln!("waiting: {:?} {condition:?}", self.transport.statistics());
            }
        }
        !self.owner.lost
    }
}

fn answer_latency(side: &mut Side) {
    let mut count = 1;
    while side.wait_received(count) {
        side.send_message();
        count += 1;
    }
}

fn answer_bandwidth(side: &mut Side) {
    let mut windows = 0;
    let nothing = UserBuffer::empty();
    while side.wait_received((windows + 1) * WINDOW) {
        windows += 1;
        side.send(&nothing, CompletionLevel::Inject);
    }
    eprintln!(
        "longest time without a message: {:?}",
        side.owner.payload.longest
    );
}

fn ask_latency(side: &mut Side, time: Duration) {
    let mut halves_ns = Vec::new();
    let warm = Instant::now();
    let mut count = 0;
    let mut start = None;
    loop {
        if start.is_none() && warm.elapsed() > Duration::from_millis(100) {
            start = Some(Instant::now());
        }
        if start.is_some_and(|start| start.elapsed() > time) {
            break;
        }
        let sent = Instant::now();
        side.send_message();
        count += 1;
        if !side.wait_received(count) {
            break;
        }
        if start.is_some() {
            halves_ns.push(sent.elapsed().as_nanos() as f64 / 2000.0);
        }
    }
    halves_ns.sort_by(f64::total_cmp);
    let mean = halves_ns.iter().sum::<f64>() / halves_ns.len() as f64;
    let at = |part: f64| halves_ns[((halves_ns.len() - 1) as f64 * part) as usize];
    println!(
        "{} round trips; half of one in us: mean {mean:.2} p50 {:.2} p99 {:.2} p99.9 {:.2} \
         max {:.1}",
        halves_ns.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

fn ask_bandwidth(side: &mut Side, time: Duration) {
    let length_bytes = side.buffer.length_bytes() as f64;
    let mut windows = 0;
    let mut start = Instant::now();
    loop {
        (0..WINDOW).for_each(|_| side.send_message());
        windows += 1;
        if !side.wait_received(windows) {
            break;
        }
        if windows == 1 {
            start = Instant::now();
        } else if start.elapsed() > time {
            break;
        }
    }
    let bytes = length_bytes * (WINDOW * (windows - 1)) as f64;
    let rate = bytes / start.elapsed().as_secs_f64();
    println!(
        "{:.1} MB/s, {:.0} messages/s",
        rate / 1e6,
        rate / length_bytes
    );
}

fn usage() -> ! {
    eprintln!(
        "usage: exchange listen ADDRESS MODE BYTES SECONDS\n       \
         exchange join OWN_ADDRESS ADDRESS MODE BYTES SECONDS"
    );
    std::process::exit(2);
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (own, to, mode, bytes, seconds) = match words[..] {
        ["listen", own, mode, bytes, seconds] => (own, None, mode, bytes, seconds),
        ["join", own, to, mode, bytes, seconds] => (own, Some(to), mode, bytes, seconds),
        _ => usage(),
    };
    let address = |word: &str| word.parse::<SocketAddr>().unwrap_or_else(|_| usage());
    let bytes: usize = bytes.parse().unwrap_or_else(|_| usage());
    let time = Duration::from_secs_f64(seconds.parse().unwrap_or_else(|_| usage()));
    let mut side = Side::open(address(own), bytes);
    if let Some(to) = to {
        side.transport.add_remote(RemoteId(0), address(to));
    }
    match (to.is_some(), mode) {
        (true, "latency") => ask_latency(&mut side, time),
        (true, "bandwidth") => ask_bandwidth(&mut side, time),
        (false, "latency") => answer_latency(&mut side),
        (false, "bandwidth") => answer_bandwidth(&mut side),
        _ => usage(),
    }
    let condition = side.transport.condition(RemoteId(0));
    eprintln!("{:?}\n{condition:?}", side.transport.statistics());
}
