// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Long messages that begin before anybody asked for them: they arrive whole whether their receive
//! is there or comes later, is shorter, or never comes, and other messages pass them.

#[path = "shared/transports.rs"]
mod transports;

use std::net::SocketAddr;

use transports::{open_pair, tagged};
use weft_contract::*;
use weft_memory::{BytesView, BytesViewMut, UserBuffer};
use weft_shm::protocol::EARLY_BYTES;
use weft_shm::{Protocol, Settings, SingleCopy, Transport};

const LONGEST: usize = 1_300_000;

/// Messages with this tag are unexpected.
const LATER: u64 = 1 << 32;

/// Remembers what came.
struct Book {
    landing: UserBuffer,
    /// How much of a message its receive takes.
    limit: usize,
    messages: Vec<u64>,
    offers: Vec<(OfferId, u64)>,
    landed: u64,
    sent: u64,
}

impl Owner for Book {
    fn on_message(&mut self, envelope: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.messages.push(envelope.tag);
        true
    }
    fn on_offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing> {
        if envelope.tag == LATER {
            self.offers.push((offer, envelope.length_bytes));
            return None;
        }
        Some(self.landing(envelope.length_bytes))
    }
    fn on_landed(&mut self, _: LandingToken, outcome: Result<(), TransferError>) {
        outcome.expect("landed");
        self.landed += 1;
    }
    fn on_sent(&mut self, _: SendToken, outcome: Result<(), TransferError>) {
        outcome.expect("sent");
        self.sent += 1;
    }
    fn on_remote_lost(&mut self, _: RemoteId, why: TransferError) {
        panic!("{why}");
    }
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}

impl Book {
    fn landing(&self, length_bytes: u64) -> Landing {
        let length = (length_bytes as usize).min(self.limit);
        self.landing
            .fill(0, BytesView::from_slice(&[0xEE; LONGEST]));
        Landing {
            token: LandingToken(0),
            buffer: self.landing.part(0, length),
        }
    }

    /// Asserts that so much of a message is here, and nothing beyond it was written.
    fn check(&self, seed: u64, length: usize) {
        let mut bytes = vec![0; LONGEST];
        self.landing
            .drain(0, &mut BytesViewMut::from_slice(&mut bytes));
        let expected: Vec<u8> = (0..length).map(|index| byte(seed, index)).collect();
        assert!(bytes[..length] == expected, "{length} bytes arrive whole");
        assert!(
            bytes[length..] == [0xEE; LONGEST][length..],
            "nothing is written behind them"
        );
    }
}

fn byte(seed: u64, index: usize) -> u8 {
    (seed as usize * 31 + index / 5 + index) as u8
}

/// Two endpoints with wide lanes, the first of which sends.
struct Pair {
    transports: [Transport; 2],
    books: [Book; 2],
    out: UserBuffer,
}

impl Pair {
    fn new(single_copy: SingleCopy) -> Self {
        let book = || Book {
            landing: UserBuffer::leaked(&[LONGEST]),
            limit: LONGEST,
            messages: Vec::new(),
            offers: Vec::new(),
            landed: 0,
            sent: 0,
        };
        let mut pair = Self {
            transports: open_pair(&Settings {
                single_copy,
                ..Settings::default()
            }),
            books: [book(), book()],
            out: UserBuffer::leaked(&[LONGEST + 10_000]),
        };
        // What is offered widens a lane as what is streamed does.
        pair.deliver(1, 1_000_000, CompletionLevel::Transmit);
        pair
    }

    fn progress(&mut self) {
        for (transport, book) in self.transports.iter_mut().zip(&mut self.books) {
            transport.progress(book);
        }
    }

    fn post(&mut self, tag: u64, length: usize, level: CompletionLevel) {
        let bytes: Vec<u8> = (0..length).map(|index| byte(tag, index)).collect();
        // Short ones lie behind long ones, which may be on their way still.
        let place = if length < 10_000 { LONGEST } else { 0 };
        let payload = self.out.part(place, length);
        payload.fill(0, BytesView::from_slice(&bytes));
        let op = tagged(tag, level);
        loop {
            match self.transports[0].post_send(&op, &payload) {
                Ok(Posted::Complete) => return self.books[0].sent += 1,
                Ok(Posted::Pending) => return,
                Err(PostError::Busy) => self.progress(),
                Err(PostError::Failed(why)) => panic!("{why}"),
            }
        }
    }

    fn deliver(&mut self, tag: u64, length: usize, level: CompletionLevel) {
        let (landed, sent) = (self.books[1].landed, self.books[0].sent);
        self.post(tag, length, level);
        while self.books[1].landed == landed || self.books[0].sent == sent {
            self.progress();
        }
        let limit = self.books[1].limit;
        self.books[1].check(tag, length.min(limit));
    }

    fn streamed(&self) -> u64 {
        let sent = self.transports[0].statistics();
        sent.sent(Protocol::Streamed).messages
    }
}

#[test]
fn what_begins_unasked_arrives_whole_by_every_copy_method() {
    for single_copy in [SingleCopy::Auto, SingleCopy::Never] {
        let mut pair = Pair::new(single_copy);
        for round in 0..8 {
            for length in [64 * 1024 + 1, 131_072, 300_001, LONGEST] {
                let level = [CompletionLevel::Transmit, CompletionLevel::Delivery][round % 2];
                pair.deliver(round as u64, length, level);
            }
        }
        assert!(pair.streamed() > 4, "{} in parts", pair.streamed());
    }
}

#[test]
fn a_receive_that_comes_later_gets_all_of_it_and_others_pass_meanwhile() {
    let mut pair = Pair::new(SingleCopy::Never);
    for round in 1..=30 {
        pair.post(LATER, 200_000, CompletionLevel::Transmit);
        pair.post(7, 8, CompletionLevel::Transmit);
        pair.post(8, 3000, CompletionLevel::Transmit);
        while pair.books[1].offers.is_empty() || pair.books[1].messages.len() < 2 * round {
            pair.progress();
        }
        (0..100).for_each(|_| pair.progress());
        let (offer, length) = pair.books[1].offers.pop().expect("an offer");
        assert_eq!((length, pair.books[1].landed), (200_000, round as u64));
        let landing = pair.books[1].landing(length);
        pair.transports[1].accept(offer, landing);
        while pair.books[1].landed == round as u64 || pair.books[0].sent < 1 + 3 * round as u64 {
            pair.progress();
        }
        pair.books[1].check(LATER, 200_000);
    }
    assert_eq!(pair.books[1].messages, [7, 8].repeat(30));
}

#[test]
fn a_receive_shorter_than_the_message_gets_its_own_length() {
    let mut pair = Pair::new(SingleCopy::Never);
    for limit in [
        0,
        1,
        2048,
        EARLY_BYTES - 1,
        EARLY_BYTES,
        EARLY_BYTES + 1,
        100_000,
    ] {
        pair.books[1].limit = limit;
        for level in [CompletionLevel::Transmit, CompletionLevel::Delivery] {
            (0..3).for_each(|tag| pair.deliver(tag, 150_000, level));
        }
    }
}

#[test]
fn what_nobody_wants_ends_for_its_sender_and_leaves_nothing() {
    let mut pair = Pair::new(SingleCopy::Never);
    for round in 1..=50 {
        pair.post(LATER, 100_000, CompletionLevel::Delivery);
        while pair.books[1].offers.is_empty() {
            pair.progress();
        }
        let (offer, _) = pair.books[1].offers.pop().expect("an offer");
        pair.transports[1].discard(offer);
        while pair.books[0].sent < 1 + round {
            pair.progress();
        }
    }
    assert_eq!(pair.books[1].landed, 1);
    pair.deliver(3, 100_000, CompletionLevel::Transmit);
}
