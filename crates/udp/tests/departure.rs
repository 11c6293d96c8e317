// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much of a message leaves before its sender looks for what has arrived.

use std::net::SocketAddr;

use weft_contract::{
    AckToken, Class, CompletionLevel, Envelope, Landing, LandingToken, OfferId, Owner, Peer,
    RemoteId, SendOp, SendToken, TransferError,
};
use weft_memory::{BytesView, UserBuffer};
use weft_simulated_wire::{Conditions, Transport, Wire, open};

/// The longest message that is sent unasked.
const MESSAGE_BYTES: usize = 256 << 10;
/// Messages that are under way together while the window grows, and how often. No offer is made for
/// them.
const SHORT_BYTES: usize = 32 << 10;
const SHORT_COUNT: usize = 16;
const WARM_UP_COUNT: usize = 40;
/// Steps of both sides after which something hangs.
const STEPS_MOST: usize = 100_000;

/// Counts what came.
#[derive(Default)]
struct Counter(usize);

impl Owner for Counter {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.0 += 1;
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        None
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {}
    fn on_remote_lost(&mut self, _: RemoteId, why: TransferError) {
        panic!("the remote is lost: {why}");
    }
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}

struct Pair {
    sender: Transport,
    receiver: Transport,
    at_sender: Counter,
    at_receiver: Counter,
}

impl Pair {
    fn open() -> Self {
        let address = Wire::open(Conditions::calm(1));
        let mut sender = open(address, 0);
        let receiver = open(address, 0);
        sender.add_remote(RemoteId(0), receiver.local_address());
        Self {
            sender,
            receiver,
            at_sender: Counter::default(),
            at_receiver: Counter::default(),
        }
    }

    fn post(&mut self, payload: &UserBuffer) {
        let op = SendOp {
            remote: RemoteId(0),
            class: Class::Tagged,
            tag: 7,
            cq_data: None,
            level: CompletionLevel::Transmit,
            token: SendToken(1),
            inject: false,
        };
        self.sender.post_send(&op, payload).expect("room");
    }

    fn in_flight_bytes(&mut self) -> u64 {
        let condition = self.sender.condition(RemoteId(0));
        condition.map_or(0, |condition| condition.in_flight_bytes)
    }

    /// Until all that was posted has come and is acknowledged.
    fn settle(&mut self, message_count: usize) {
        for _ in 0..STEPS_MOST {
            self.sender.progress(&mut self.at_sender);
            self.receiver.progress(&mut self.at_receiver);
            if self.at_receiver.0 == message_count && self.in_flight_bytes() == 0 {
                return;
            }
        }
        panic!("{} of {message_count} came", self.at_receiver.0);
    }
}

/// Whoever looks in between makes the receiver wait for that look, too.
#[test]
fn a_message_that_fits_the_window_has_left_when_its_send_returns() {
    let short = UserBuffer::leaked(&[SHORT_BYTES]);
    let mut pair = Pair::open();
    for round in 1..=WARM_UP_COUNT {
        for _ in 0..SHORT_COUNT {
            pair.post(&short);
        }
        pair.settle(round * SHORT_COUNT);
    }
    pair.post(&UserBuffer::leaked(&[MESSAGE_BYTES]));
    let left_bytes = pair.in_flight_bytes();
    assert!(left_bytes >= MESSAGE_BYTES as u64, "{left_bytes} have left");
}
