// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that both of their processes copy, between two transports of this one: whoever copies
//! which share, all of it arrives, and nothing is written into memory whose owner is done with it.

use std::net::SocketAddr;
use std::time::Duration;

use weft_contract::*;
use weft_memory::{BytesView, BytesViewMut, UserBuffer};

use crate::protocol::copy_method::CopyMethod;
use crate::transports_for_tests::{open_with, tagged};
use crate::tuner::copies::Lesson;
use crate::{Settings, Transport};

/// Not a multiple of a share, nor of a page.
const LENGTH: usize = 1_300_001;

/// Takes everything, each message into memory of its own.
#[derive(Default)]
struct Book {
    landings: Vec<UserBuffer>,
    landed: usize,
    sent: usize,
}

impl Owner for Book {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        true
    }
    fn on_offer(&mut self, envelope: &Envelope, _: OfferId) -> Option<Landing> {
        let buffer = UserBuffer::leaked(&[envelope.length_bytes as usize]);
        self.landings.push(buffer.clone());
        Some(Landing {
            token: LandingToken(0),
            buffer,
        })
    }
    fn on_landed(&mut self, _: LandingToken, outcome: Result<(), TransferError>) {
        outcome.expect("landed");
        self.landed += 1;
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

fn byte(tag: u64, index: usize) -> u8 {
    (tag as usize * 31 + index / 5 + index) as u8
}

fn contents(buffer: &UserBuffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.length_bytes()];
    buffer.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
    bytes
}

/// A sender and a receiver that has learned that shared copies are the fastest.
struct Pair {
    sender: (Transport, Book),
    receiver: (Transport, Book),
}

impl Pair {
    fn new() -> Self {
        let [mut sender, mut receiver] = [(), ()].map(|()| open_with(Settings::default()));
        // Machines with one processor share it among tests, too.
        receiver.set_shares_cores(false);
        sender.add_remote(RemoteId(0), receiver.local_address());
        receiver.add_remote(RemoteId(0), sender.local_address());
        let methods = [
            (CopyMethod::SingleCopy, 9),
            (CopyMethod::Pipelined, 9),
            (CopyMethod::PipelinedNonTemporal, 9),
            (CopyMethod::Cooperative, 1),
        ];
        for (method, cost) in methods.into_iter().chain(methods).chain(methods) {
            let bytes = LENGTH as u64;
            let lesson = Lesson::Unidirectional;
            let methods = &mut receiver.traffic.methods;
            methods.learn(method, bytes, Duration::from_micros(cost * 100), lesson);
        }
        Self {
            sender: (sender, Book::default()),
            receiver: (receiver, Book::default()),
        }
    }

    fn post(&mut self, tag: u64) {
        let payload = UserBuffer::leaked(&[LENGTH]);
        let bytes: Vec<u8> = (0..LENGTH).map(|index| byte(tag, index)).collect();
        payload.fill(0, BytesView::from_slice(&bytes));
        let op = tagged(tag, CompletionLevel::Transmit);
        loop {
            match self.sender.0.post_send(&op, &payload) {
                Ok(_) => return,
                Err(PostError::Busy) => self.progress(),
                Err(PostError::Failed(why)) => panic!("{why}"),
            }
        }
    }

    fn progress(&mut self) {
        self.receiver.0.progress(&mut self.receiver.1);
        self.sender.0.progress(&mut self.sender.1);
    }

    /// Goes on until the chunk claims of the first message are lent.
    fn lend(&mut self) {
        let is_lent = |pair: &mut Self| {
            let mut fetches = pair.receiver.0.traffic.fetches.iter_mut();
            fetches.any(|fetch| fetch.is_cooperative())
        };
        while !is_lent(self) {
            self.receiver.0.progress(&mut self.receiver.1);
        }
    }

    fn check(&self, tag: u64) {
        let expected: Vec<u8> = (0..LENGTH).map(|index| byte(tag, index)).collect();
        let landed = contents(&self.receiver.1.landings[tag as usize]);
        assert!(landed == expected, "message {tag} arrives whole");
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no process_vm_readv(2)")]
fn messages_that_both_copy_arrive_whole_and_in_turn() {
    let mut pair = Pair::new();
    (0..9).for_each(|tag| pair.post(tag));
    let mut helped = 0;
    while pair.receiver.1.landed < 9 || pair.sender.1.sent < 9 {
        pair.progress();
        helped += pair.sender.0.traffic.helps.helped();
    }
    assert!(helped > 0, "their sender helped");
    (0..9).for_each(|tag| pair.check(tag));
    assert_eq!(pair.sender.0.traffic.helps.count(), 0);
    let fetches = &mut pair.receiver.0.traffic.fetches;
    assert_eq!(fetches.pipes_lent(RemoteId(0)), 0);
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no process_vm_readv(2)")]
fn a_sender_that_does_not_look_leaves_all_of_it_to_the_receiver() {
    let mut pair = Pair::new();
    pair.post(0);
    while pair.receiver.1.landed == 0 {
        pair.receiver.0.progress(&mut pair.receiver.1);
    }
    pair.check(0);
    // It hears of being asked after that, and must not write.
    let landing = pair.receiver.1.landings[0].clone();
    landing.fill(0, BytesView::from_slice(&vec![0xEE; LENGTH]));
    while pair.sender.1.sent == 0 {
        pair.sender.0.progress(&mut pair.sender.1);
    }
    assert!(contents(&landing) == vec![0xEE; LENGTH]);
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no process_vm_readv(2)")]
fn nothing_is_written_for_a_receiver_that_has_closed() {
    let mut pair = Pair::new();
    pair.post(0);
    pair.lend();
    let Pair {
        sender: (mut sender, mut book),
        receiver: (receiver, received),
    } = pair;
    drop(receiver);
    let before = contents(&received.landings[0]);
    for _ in 0..100 {
        sender.progress(&mut Deaf(&mut book));
    }
    assert!(contents(&received.landings[0]) == before);
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no process_vm_readv(2)")]
fn a_message_that_may_not_be_read_after_all_comes_through_a_pipe() {
    let mut pair = Pair::new();
    pair.post(0);
    pair.lend();
    let mut fetches = pair.receiver.0.traffic.fetches.iter_mut();
    fetches.next().expect("one").move_to(8);
    drop(fetches);
    while pair.receiver.1.landed == 0 || pair.sender.1.sent == 0 {
        pair.progress();
    }
    pair.check(0);
}

/// An owner whose sends may fail.
struct Deaf<'a>(&'a mut Book);

impl Owner for Deaf<'_> {
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> bool {
        self.0.on_message(envelope, payload, ack)
    }
    fn on_offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing> {
        self.0.on_offer(envelope, offer)
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {}
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {}
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        self.0.remote_at(address)
    }
}
