// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How large datagrams are: what the way to a remote takes, not what the interface does whose
//! address it has.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use weft_contract::{
    AckToken, Class, CompletionLevel, Envelope, Landing, LandingToken, OfferId, Owner, Peer,
    RemoteId, SendOp, SendToken, TransferError,
};
use weft_memory::{BytesView, UserBuffer};
use weft_simulated_wire::{Conditions, SimulatedPorts, Wire};
use weft_udp::{Ports, Settings, SocketPorts, Transport};

/// Keeps the lengths of what came.
#[derive(Default)]
struct Lengths(Vec<u64>);

impl Owner for Lengths {
    fn on_message(&mut self, envelope: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.0.push(envelope.length_bytes);
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

struct Pair<P: Ports> {
    sender: Transport<P>,
    receiver: Transport<P>,
    at_sender: Lengths,
    at_receiver: Lengths,
}

impl<P: Ports> Pair<P> {
    fn open(settings: &Settings) -> Self {
        let mut sender = Transport::open(settings).expect("sockets");
        let receiver = Transport::open(settings).expect("sockets");
        sender.add_remote(RemoteId(0), receiver.local_address());
        Self {
            sender,
            receiver,
            at_sender: Lengths::default(),
            at_receiver: Lengths::default(),
        }
    }

    /// Sends a message and waits for it; answers how many datagrams the sender has sent until then.
    fn send(&mut self, length_bytes: usize) -> u64 {
        let before = self.sender.statistics().machine;
        let op = SendOp {
            remote: RemoteId(0),
            class: Class::Tagged,
            tag: 7,
            cq_data: None,
            level: CompletionLevel::Transmit,
            token: SendToken(1),
            inject: false,
        };
        let payload = UserBuffer::leaked(&[length_bytes]);
        self.sender.post_send(&op, &payload).expect("room");
        let (count, start) = (self.at_receiver.0.len(), Instant::now());
        while self.at_receiver.0.len() == count {
            self.sender.progress(&mut self.at_sender);
            self.receiver.progress(&mut self.at_receiver);
            assert!(start.elapsed() < Duration::from_secs(100), "it arrives");
        }
        // Its answer has come too, and with a first one what the other side takes.
        let is_open = |condition: weft_srd::Condition| condition.in_flight_bytes > 0;
        while self.sender.condition(RemoteId(0)).is_some_and(is_open) {
            self.sender.progress(&mut self.at_sender);
            self.receiver.progress(&mut self.at_receiver);
            assert!(start.elapsed() < Duration::from_secs(100), "it is answered");
        }
        let after = self.sender.statistics().machine;
        let again = after.retransmitted_count - before.retransmitted_count;
        after.sent_count - before.sent_count - again
    }

    /// The longest datagram in use.
    fn datagram_bytes(&mut self) -> u16 {
        let condition = self.sender.condition(RemoteId(0));
        condition.expect("it was talked to").datagram_bytes
    }
}

#[test]
fn a_message_between_processes_of_one_host_is_one_datagram_whatever_the_interface_takes() {
    let mut pair = Pair::<SocketPorts>::open(&Settings::default());
    pair.send(8);
    for length_bytes in [8192, 60_000] {
        let count = pair.send(length_bytes);
        assert!(count <= 2, "{count} datagrams for {length_bytes} bytes");
    }
    assert_eq!(pair.at_receiver.0, [8, 8192, 60_000]);
}

#[test]
fn what_the_user_allows_holds_on_one_host_too() {
    let mut pair = Pair::<SocketPorts>::open(&Settings {
        datagram_limit_bytes: Some(1300),
        ..Settings::default()
    });
    pair.send(8);
    pair.send(8);
    pair.send(8192);
    assert_eq!(pair.datagram_bytes(), 1300);
}

#[test]
fn jumbo_frames_that_the_network_swallows_cost_no_message_and_a_size_that_it_carries_is_found() {
    let wire = Wire::open(Conditions {
        seed: 9,
        lost_per_mille: 0,
        repeated_per_mille: 0,
        spread_ns: 0,
        full_every: 0,
        swallows_above_bytes: 4500,
    });
    let settings = Settings {
        address: Some(SocketAddr::new(wire, 0)),
        datagram_limit_bytes: Some(8972),
        ..Settings::default()
    };
    let mut pair = Pair::<SimulatedPorts>::open(&settings);
    pair.send(8);
    pair.send(50_000);
    assert_eq!(pair.datagram_bytes(), 1436, "nothing long is used untried");
    // Both clocks move with every look; the larger sizes have had their time.
    for _ in 0..20_000 {
        pair.send(8);
    }
    pair.send(50_000);
    assert_eq!(pair.datagram_bytes(), 4000);
}
