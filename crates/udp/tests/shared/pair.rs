// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A sender and a receiver in one process, and the lengths of the messages that came.
//!
//! Used by the tests of what leaves and of its sizes.

use std::net::SocketAddr;

use weft_contract::{
    AckToken, Class, CompletionLevel, Envelope, Landing, LandingToken, OfferId, Owner, Peer,
    RemoteId, SendOp, SendToken, TransferError,
};
use weft_memory::{BytesView, UserBuffer};
use weft_udp::{Ports, Settings, Transport};

/// Keeps the lengths of what came. No offer may come, and nobody may be lost.
#[derive(Debug, Default)]
pub struct Lengths(pub Vec<u64>);

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

/// Two transports, the first of which knows the second as its first remote.
#[derive(Debug)]
pub struct Pair<P: Ports> {
    pub sender: Transport<P>,
    pub receiver: Transport<P>,
    pub at_sender: Lengths,
    pub at_receiver: Lengths,
}

impl<P: Ports> Pair<P> {
    pub fn open(settings: &Settings) -> Self {
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

    pub fn post(&mut self, payload: &UserBuffer) {
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

    pub fn progress(&mut self) {
        self.sender.progress(&mut self.at_sender);
        self.receiver.progress(&mut self.at_receiver);
    }

    /// What the receiver has not acknowledged yet; 0 before the first message.
    pub fn in_flight_bytes(&mut self) -> u64 {
        let condition = self.sender.condition(RemoteId(0));
        condition.map_or(0, |condition| condition.in_flight_bytes)
    }
}
