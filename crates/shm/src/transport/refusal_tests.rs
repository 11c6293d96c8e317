// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of refusal.rs, between two transports of this process: what a receiver that cannot answer
//! leaves in its lane comes back to its sender, in order, every byte; and the slot is free again.

use std::net::SocketAddr;

use weft_contract::*;
use weft_memory::{BytesView, BytesViewMut, UserBuffer};
use weft_ring::layout::LANE_CELLS;

use crate::contact::remote::Link;
use crate::transports_for_tests::{open_with, tagged};
use crate::{Settings, SingleCopy, Transport};

/// What one side was told, in order.
#[derive(Default)]
struct Book {
    messages: Vec<(u64, Vec<u8>)>,
    returned: Vec<Returned>,
    sent: Vec<(u64, bool)>,
    turned: Vec<(TransferError, bool)>,
    lost_count: usize,
    landing: Option<(u64, UserBuffer)>,
}

fn bytes_of(buffer: &UserBuffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.length_bytes()];
    buffer.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
    bytes
}

impl Owner for Book {
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        _: Option<AckToken>,
    ) -> bool {
        self.messages.push((envelope.tag, payload.to_vec()));
        true
    }
    fn on_offer(&mut self, envelope: &Envelope, _: OfferId) -> Option<Landing> {
        let buffer = UserBuffer::leaked(&[envelope.length_bytes as usize]);
        self.landing = Some((envelope.tag, buffer.clone()));
        let token = LandingToken(0);
        Some(Landing { token, buffer })
    }
    fn on_landed(&mut self, _: LandingToken, outcome: Result<(), TransferError>) {
        outcome.expect("landed");
        let (tag, buffer) = self.landing.take().expect("one at a time");
        self.messages.push((tag, bytes_of(&buffer)));
    }
    fn on_sent(&mut self, token: SendToken, outcome: Result<(), TransferError>) {
        self.sent.push((token.0, outcome.is_ok()));
    }
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {
        self.lost_count += 1;
    }
    fn on_turned_away(&mut self, turned: TurnedAway) {
        self.turned.push((turned.why, turned.was_watched));
        self.returned.extend(turned.sends);
    }
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}

fn payload_of(tag: u64, length_bytes: usize) -> (Vec<u8>, UserBuffer) {
    let bytes: Vec<u8> = (0..length_bytes)
        .map(|at| (at as u64 * 7 + tag * 31) as u8)
        .collect();
    let buffer = UserBuffer::leaked(&[length_bytes]);
    buffer.fill(0, BytesView::from_slice(&bytes));
    (bytes, buffer)
}

struct Sender {
    transport: Transport,
    book: Book,
    /// All that was sent, with what `post_send` said.
    posted: Vec<(u64, Vec<u8>, Posted)>,
}

impl Sender {
    fn send(&mut self, length_bytes: usize, level: CompletionLevel) {
        let tag = self.posted.len() as u64;
        let (bytes, buffer) = payload_of(tag, length_bytes);
        let posted = self.transport.post_send(&tagged(tag, level), &buffer);
        let posted = posted.expect("there is room");
        self.posted.push((tag, bytes, posted));
    }
}

/// Two that know each other; the second has no addresses for the first one's region.
fn pair() -> (Sender, Transport) {
    let [mut transport, mut receiver] = [(), ()].map(|()| {
        open_with(Settings {
            single_copy: SingleCopy::Never,
            has_other_route: true,
            ..Settings::default()
        })
    });
    transport.add_remote(RemoteId(0), receiver.local_address());
    receiver.add_remote(RemoteId(0), transport.local_address());
    set_link(&mut receiver, Link::Elsewhere { is_told: true });
    let (book, posted) = (Book::default(), Vec::new());
    let sender = Sender {
        transport,
        book,
        posted,
    };
    (sender, receiver)
}

fn set_link(of: &mut Transport, link: Link) {
    of.traffic.contacts.remote_mut(RemoteId(0)).set_link(link);
}

fn progress(sender: &mut Sender, receiver: &mut Transport, book: &mut Book) {
    for _ in 0..200 {
        receiver.progress(book);
        sender.transport.progress(&mut sender.book);
        sender.transport.pace.hurry();
    }
}

/// Everything that was sent was either received or came back, once, in order.
fn check(sender: &Sender, heard: &Book) {
    let returned = sender.book.returned.iter();
    let returned = returned.map(|send| (send.op.tag, bytes_of(&send.payload)));
    let all: Vec<(u64, Vec<u8>)> = heard.messages.iter().cloned().chain(returned).collect();
    let tags = |list: &[(u64, Vec<u8>)]| list.iter().map(|(tag, _)| *tag).collect::<Vec<_>>();
    let posted: Vec<(u64, Vec<u8>)> = sender
        .posted
        .iter()
        .map(|(tag, bytes, _)| (*tag, bytes.clone()))
        .collect();
    assert_eq!(tags(&all), tags(&posted));
    assert!(all == posted, "some bytes differ");
    for send in &sender.book.returned {
        let (_, _, posted) = &sender.posted[send.op.tag as usize];
        let token = match posted {
            Posted::Complete => SendToken::NOBODY,
            Posted::Pending => SendToken(send.op.tag),
        };
        assert_eq!(send.op.token, token, "message {}", send.op.tag);
    }
    assert_eq!(sender.transport.traffic.sends.remotes().count(), 0);
    assert_eq!(sender.book.lost_count + heard.lost_count, 0);
}

#[test]
fn what_needs_an_answer_and_all_behind_it_comes_back_in_order() {
    use CompletionLevel::{Delivery, Transmit};
    let (mut sender, mut receiver) = pair();
    let mut book = Book::default();
    // Once round the lane and more, so that marks of the lap before lie there.
    for _ in 0..LANE_CELLS + 7 {
        sender.send(8, Transmit);
        receiver.progress(&mut book);
    }
    for (length_bytes, level) in [
        (200, Transmit),
        (5_000, Transmit),
        (20_000, Transmit),
        (300_000, Transmit),
        (0, Transmit),
        (100, Transmit),
        (8_000, Delivery),
        (1_000_000, Delivery),
        (20_000, Transmit),
        (3_000, Transmit),
        (70_000, Transmit),
        (8, Transmit),
    ] {
        sender.send(length_bytes, level);
    }
    sender.transport.watch(RemoteId(0), true);
    progress(&mut sender, &mut receiver, &mut book);
    let first_returned = LANE_CELLS as u64 + 7 + 3;
    assert_eq!(sender.book.returned[0].op.tag, first_returned);
    assert_eq!(sender.book.turned, [(TransferError::NoMemory, true)]);
    let level_of = |tag: u64| {
        let mut returned = sender.book.returned.iter();
        let send = returned.find(|send| send.op.tag == tag).expect("returned");
        (send.op.level, send.op.inject)
    };
    assert_eq!(level_of(first_returned), (Transmit, false));
    assert_eq!(level_of(first_returned + 3), (Delivery, true));
    assert_eq!(level_of(first_returned + 4), (Delivery, false));
    check(&sender, &book);
    assert_eq!(
        receiver.traffic.contacts.own.slots().holder(0),
        None,
        "the slot is free"
    );
    let again = sender
        .transport
        .post_send(&tagged(0, Transmit), &UserBuffer::leaked(&[8]));
    assert_eq!(again, Err(PostError::Failed(TransferError::NoMemory)));
}

#[test]
fn a_refusal_that_rings_before_a_sleep_is_heard_and_not_slept_over() {
    let (mut sender, mut receiver) = pair();
    let mut book = Book::default();
    sender.send(300_000, CompletionLevel::Transmit);
    receiver.progress(&mut book);
    assert!(!sender.transport.before_sleep(), "there is something to do");
    sender.transport.progress(&mut sender.book);
    assert_eq!(sender.book.returned.len(), 1);
    check(&sender, &book);
}

#[test]
fn sends_that_wait_for_room_come_back_behind_those_in_the_lane() {
    let (mut sender, mut receiver) = pair();
    let mut book = Book::default();
    sender.send(300_000, CompletionLevel::Transmit);
    // A narrow lane holds one of these, and the beginning of another.
    for _ in 0..6 {
        sender.send(50_000, CompletionLevel::Transmit);
    }
    let contacts = &mut sender.transport.traffic.contacts;
    let waiting = contacts.remote_mut(RemoteId(0)).waiting();
    assert!(waiting[0].sent_bytes > 0);
    progress(&mut sender, &mut receiver, &mut book);
    assert_eq!(sender.book.returned.len(), 7);
    check(&sender, &book);
    assert!(!sender.transport.traffic.contacts.agenda.is_sending());
}

#[test]
fn a_stream_that_needs_no_answer_goes_on_after_its_receiver_is_turned_away() {
    let (mut sender, mut receiver) = pair();
    set_link(&mut receiver, Link::Unknown);
    let mut book = Book::default();
    for _ in 0..6 {
        sender.send(60_000, CompletionLevel::Transmit);
    }
    receiver.progress(&mut book);
    assert_eq!(
        receiver.traffic.receives.streams.count(),
        1,
        "one is arriving"
    );
    set_link(&mut receiver, Link::Elsewhere { is_told: false });
    let agenda = &mut receiver.traffic.contacts.agenda;
    agenda.note_lost(RemoteId(0), TransferError::NoMemory);
    progress(&mut sender, &mut receiver, &mut book);
    assert_eq!(book.messages.len(), 6);
    assert_eq!(book.turned, [(TransferError::NoMemory, false)]);
    check(&sender, &book);
    // One that needs an answer meanwhile.
    sender.send(300_000, CompletionLevel::Transmit);
    progress(&mut sender, &mut receiver, &mut book);
    assert_eq!(sender.book.returned.len(), 1);
    check(&sender, &book);
}
