// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages one by one have a socket of their own: whoever sleeps hears of them there, and a stream
//! through it arrives whole.
#![cfg(target_os = "linux")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use weft_contract::{
    AckToken, Class, CompletionLevel, Envelope, Landing, LandingToken, OfferId, Owner, Peer,
    RemoteId, SendOp, SendToken, Sleep, TransferError,
};
use weft_memory::{BytesView, BytesViewMut, UserBuffer};
use weft_os::sleep::wait_readable;
use weft_udp::{Settings, Transport};

/// So many messages that the way has a socket of its own, and that it is known where they come in.
const SETTLED: u64 = 300;
const STREAM_BYTES: usize = 256 << 10;

/// Takes messages into a buffer, in order.
struct Taker {
    buffer: UserBuffer,
    received: u64,
    sent: u64,
}

impl Owner for Taker {
    fn on_message(&mut self, _: &Envelope, payload: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.buffer.fill(0, payload);
        self.received += 1;
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        Some(Landing {
            token: LandingToken(0),
            buffer: self.buffer.clone(),
        })
    }
    fn on_landed(&mut self, _: LandingToken, outcome: Result<(), TransferError>) {
        outcome.expect("landed");
        self.received += 1;
    }
    fn on_sent(&mut self, _: SendToken, outcome: Result<(), TransferError>) {
        outcome.expect("sent");
        self.sent += 1;
    }
    fn on_remote_lost(&mut self, _: RemoteId, why: TransferError) {
        panic!("lost: {why}");
    }
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}

struct Side {
    transport: Transport,
    owner: Taker,
    posted: u64,
}

/// Two endpoints of one thread with one path between them, so that everything takes the way of
/// single messages.
fn pair() -> [Side; 2] {
    let settings = Settings {
        address: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        path_count: 1,
        ..Settings::default()
    };
    let mut sides = [(); 2].map(|()| Side {
        transport: Transport::open(&settings).expect("sockets"),
        owner: Taker {
            buffer: UserBuffer::leaked(&[STREAM_BYTES]),
            received: 0,
            sent: 0,
        },
        posted: 0,
    });
    let addresses = [0, 1].map(|side: usize| sides[side].transport.local_address());
    for (side, address) in [(0, addresses[1]), (1, addresses[0])] {
        sides[side].transport.add_remote(RemoteId(0), address);
    }
    sides
}

impl Side {
    fn post(&mut self, payload: &UserBuffer) {
        let op = SendOp {
            remote: RemoteId(0),
            class: Class::Tagged,
            tag: 1,
            cq_data: None,
            level: CompletionLevel::Transmit,
            token: SendToken(7),
            inject: false,
        };
        self.transport.post_send(&op, payload).expect("posted");
        self.posted += 1;
    }

    fn first_bytes(&self) -> u64 {
        let mut bytes = [0; 8];
        self.owner
            .buffer
            .drain(0, &mut BytesViewMut::from_slice(&mut bytes));
        u64::from_le_bytes(bytes)
    }
}

fn number(value: u64) -> UserBuffer {
    let buffer = UserBuffer::leaked(&[8]);
    buffer.fill(0, BytesView::from_slice(&value.to_le_bytes()));
    buffer
}

/// Progress of both until so many messages have come to a side.
fn run(sides: &mut [Side; 2], to: usize, count: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while sides[to].owner.received < count {
        assert!(Instant::now() < deadline, "not done within a minute");
        for side in sides.iter_mut() {
            side.transport.progress(&mut side.owner);
        }
    }
}

/// One message there and one back, so many times.
fn one_by_one(sides: &mut [Side; 2], count: u64) {
    for _ in 0..count {
        for (from, to) in [(0, 1), (1, 0)] {
            let value = 1 + sides[from].posted;
            sides[from].post(&number(value));
            run(sides, to, value);
            assert_eq!(sides[to].first_bytes(), value);
        }
    }
}

/// Ends when a sleep is allowed, with nothing due for a while.
fn prepare_sleep(sides: &mut [Side; 2]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < deadline, "never still");
        for side in sides.iter_mut() {
            side.transport.progress(&mut side.owner);
        }
        let still = sides.iter().all(|side| side.owner.sent == side.posted);
        if still && sides[1].transport.before_sleep() {
            let descriptor = sides[1].transport.wait_fd().expect("sockets have one");
            if !wait_readable(descriptor, 20) {
                return;
            }
            sides[1].transport.after_sleep();
        }
    }
}

#[test]
fn whoever_sleeps_hears_of_a_message_that_comes_in_through_the_connected_socket() {
    let mut sides = pair();
    for awake in [SETTLED, 1, 1, 100, 1] {
        one_by_one(&mut sides, awake);
        prepare_sleep(&mut sides);
        let value = 1 + sides[0].posted;
        sides[0].post(&number(value));
        let descriptor = sides[1].transport.wait_fd().expect("sockets have one");
        assert!(
            wait_readable(descriptor, 10_000),
            "after {awake} round trips"
        );
        sides[1].transport.after_sleep();
        run(&mut sides, 1, value);
        assert_eq!(sides[1].first_bytes(), value);
        // Both have sent as much again.
        let value = 1 + sides[1].posted;
        sides[1].post(&number(value));
        run(&mut sides, 0, value);
    }
}

#[test]
fn a_stream_through_the_connected_socket_arrives_whole_and_single_messages_go_on_after_it() {
    const COUNT: u64 = 60;
    let mut sides = pair();
    for _ in 0..3 {
        one_by_one(&mut sides, SETTLED);
        let before = (sides[0].posted, sides[1].posted);
        let payload = UserBuffer::leaked(&[STREAM_BYTES]);
        let bytes: Vec<u8> = (0..STREAM_BYTES).map(|place| (place % 251) as u8).collect();
        payload.fill(0, BytesView::from_slice(&bytes));
        for _ in 0..COUNT {
            sides[0].post(&payload);
        }
        run(&mut sides, 1, before.0 + COUNT);
        let mut arrived = vec![0; STREAM_BYTES];
        sides[1]
            .owner
            .buffer
            .drain(0, &mut BytesViewMut::from_slice(&mut arrived));
        assert!(arrived == bytes, "every byte of the last one");
        for _ in 0..COUNT {
            sides[1].post(&number(1));
        }
        run(&mut sides, 0, before.1 + COUNT);
    }
    for side in &sides {
        let statistics = side.transport.statistics();
        assert_eq!(statistics.machine.malformed_count, 0);
    }
}
