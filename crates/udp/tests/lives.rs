// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A process is replaced by another at its address: what its remotes still hold of the first is not
//! taken for the second's. Over the simulated wire, so that ports and order are the test's to
//! choose.

use std::net::SocketAddr;

use weft_contract::{
    AckToken, Class, CompletionLevel, Envelope, Landing, LandingToken, OfferId, Owner, Peer,
    RemoteId, SendOp, SendToken, TransferError,
};
use weft_memory::{BytesView, UserBuffer};
use weft_simulated_wire::{Conditions, SimulatedPorts, Wire, open};
use weft_udp::Transport;

/// Steps of both sides after which nothing more is to come; a protection against hanging.
const STEPS_MOST: usize = 100_000;

/// Keeps every message unmatched.
#[derive(Default)]
struct Keeper {
    kept: Vec<(u64, AckToken)>,
    sent: usize,
    lost: usize,
}

impl Owner for Keeper {
    fn on_message(&mut self, envelope: &Envelope, _: BytesView<'_>, ack: Option<AckToken>) -> bool {
        self.kept
            .push((envelope.tag, ack.expect("a receipt is wanted")));
        false
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        None
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, _: SendToken, outcome: Result<(), TransferError>) {
        assert_eq!(outcome, Ok(()));
        self.sent += 1;
    }
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {
        self.lost += 1;
    }
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}

fn post(transport: &mut Transport<SimulatedPorts>, tag: u64) {
    post_bytes(transport, tag, 64, CompletionLevel::Delivery);
}

fn post_bytes(
    transport: &mut Transport<SimulatedPorts>,
    tag: u64,
    length: usize,
    level: CompletionLevel,
) {
    let op = SendOp {
        remote: RemoteId(0),
        class: Class::Tagged,
        tag,
        cq_data: None,
        level,
        token: SendToken(tag as usize as _),
        inject: false,
    };
    let buffer = UserBuffer::leaked(&[length]);
    transport.post_send(&op, &buffer).expect("room");
}

type Side<'a> = (&'a mut Transport<SimulatedPorts>, &'a mut Keeper);

fn run(one: Side<'_>, other: Side<'_>, until: impl Fn(&Keeper, &Keeper) -> bool) -> bool {
    for _ in 0..STEPS_MOST {
        if until(one.1, other.1) {
            return true;
        }
        one.0.progress(one.1);
        other.0.progress(other.1);
    }
    false
}

#[test]
fn a_receipt_for_a_process_that_is_gone_completes_nothing_of_the_next_one_at_its_address() {
    let wire = Wire::open(Conditions::calm(11));
    let (mut receiver, mut at_receiver) = (open(wire, 4000), Keeper::default());
    let (mut first, mut at_first) = (open(wire, 3000), Keeper::default());
    first.add_remote(RemoteId(0), receiver.local_address());
    post(&mut first, 1);
    let sides = (
        (&mut first, &mut at_first),
        (&mut receiver, &mut at_receiver),
    );
    assert!(run(sides.0, sides.1, |_, receiver| receiver.kept.len() == 1));
    drop(first);
    let (mut second, mut at_second) = (open(wire, 3000), Keeper::default());
    second.add_remote(RemoteId(0), receiver.local_address());
    post(&mut second, 2);
    let sides = (
        (&mut second, &mut at_second),
        (&mut receiver, &mut at_receiver),
    );
    assert!(run(sides.0, sides.1, |_, receiver| receiver.kept.len() == 2));
    assert_eq!(at_receiver.lost, 1);
    // The receiver matches the message of the process that is gone.
    let [(1, of_first), (2, of_second)] = at_receiver.kept[..] else {
        panic!("{:?}", at_receiver.kept);
    };
    receiver.acknowledge(of_first);
    let sides = (
        (&mut second, &mut at_second),
        (&mut receiver, &mut at_receiver),
    );
    assert!(
        !run(sides.0, sides.1, |second, _| second.sent > 0),
        "nobody has received it"
    );
    receiver.acknowledge(of_second);
    let sides = (
        (&mut second, &mut at_second),
        (&mut receiver, &mut at_receiver),
    );
    assert!(run(sides.0, sides.1, |second, _| second.sent == 1));
}

/// What comes meanwhile is dropped, but its sender is not kept.
#[test]
fn who_closes_while_it_owes_something_takes_all_segments_of_a_message() {
    let wire = Wire::open(Conditions::calm(12));
    let (mut closes, mut at_closing) = (open(wire, 4000), Keeper::default());
    let (mut stays, mut at_staying) = (open(wire, 3000), Keeper::default());
    closes.add_remote(RemoteId(0), stays.local_address());
    stays.add_remote(RemoteId(0), closes.local_address());
    post_bytes(&mut stays, 1, 64, CompletionLevel::Transmit);
    let sides = (&mut closes, &mut at_closing);
    let known = |_: &Keeper, staying: &Keeper| staying.sent == 1;
    assert!(run(sides, (&mut stays, &mut at_staying), known));
    post_bytes(&mut stays, 2, 40_000, CompletionLevel::Transmit);
    post_bytes(&mut closes, 3, 64, CompletionLevel::Transmit);
    // The other one computes.
    drop(closes);
    for _ in 0..STEPS_MOST {
        stays.progress(&mut at_staying);
        if at_staying.lost > 0 {
            break;
        }
    }
    assert_eq!((at_staying.sent, at_staying.lost), (2, 1));
}
