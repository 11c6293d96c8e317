// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Long messages of an endpoint to itself: copied from one buffer to the other, through no lane and
//! no pipe, whether the receive is there or comes later, is shorter, or lies in pieces.

#[path = "shared/transports.rs"]
mod transports;

use std::net::SocketAddr;

use transports::{open, tagged};
use weft_contract::*;
use weft_memory::{BytesView, BytesViewMut, UserBuffer};
use weft_shm::{Protocol, Settings, SingleCopy};

const LENGTH: usize = 1_300_001;

/// Messages with this tag are unexpected.
const LATER: u64 = 1 << 32;

struct Book {
    landing: UserBuffer,
    offers: Vec<OfferId>,
    landed: u64,
    sent: u64,
}

impl Owner for Book {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        panic!("it is too long to come in one piece")
    }
    fn on_offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing> {
        if envelope.tag == LATER {
            self.offers.push(offer);
            return None;
        }
        Some(self.landing())
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
    fn landing(&self) -> Landing {
        Landing {
            token: LandingToken(0),
            buffer: self.landing.clone(),
        }
    }
}

/// Sends one message to itself; answers what its receive holds, and how many messages went through
/// memory that is lent.
fn deliver(tag: u64, receive: &[usize]) -> (Vec<u8>, u64) {
    let mut transport = open(Settings {
        single_copy: SingleCopy::Never,
        ..Settings::default()
    });
    transport.add_remote(RemoteId(0), transport.local_address());
    let mut book = Book {
        landing: UserBuffer::leaked(receive),
        offers: Vec::new(),
        landed: 0,
        sent: 0,
    };
    let payload = UserBuffer::leaked(&[LENGTH]);
    payload.fill(0, BytesView::from_slice(&pattern()));
    let posted = transport.post_send(&tagged(tag, CompletionLevel::Delivery), &payload);
    assert!(matches!(posted, Ok(Posted::Pending)), "{posted:?}");
    while tag == LATER && book.offers.is_empty() {
        transport.progress(&mut book);
    }
    if let Some(offer) = book.offers.pop() {
        transport.accept(offer, book.landing());
    }
    while (book.landed, book.sent) != (1, 1) {
        transport.progress(&mut book);
    }
    let mut bytes = vec![0; book.landing.length_bytes()];
    book.landing
        .drain(0, &mut BytesViewMut::from_slice(&mut bytes));
    let statistics = transport.statistics();
    let lent = [Protocol::Pipelined, Protocol::Streamed];
    (
        bytes,
        lent.map(|protocol| statistics.sent(protocol).messages)
            .iter()
            .sum(),
    )
}

fn pattern() -> Vec<u8> {
    (0..LENGTH).map(|index| (index / 5 + index) as u8).collect()
}

#[test]
fn a_long_message_to_itself_is_copied_once_and_lent_nothing() {
    for tag in [1, LATER] {
        for receive in [&[LENGTH][..], &[700_000], &[100_001, 3, 1_199_997]] {
            let (bytes, lent) = deliver(tag, receive);
            assert!(bytes == pattern()[..bytes.len()], "{receive:?} of {tag}");
            assert_eq!(lent, 0);
        }
    }
}
