// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a remote: what it sent before is taken, and what others send goes on. Remotes that
//! break the protocol are cut off, and what they still write meets nobody. And our own end: nothing
//! of ours stays in use.

use std::net::SocketAddr;

use weft_contract::*;
use weft_memory::{BytesView, BytesViewMut, UserBuffer};
use weft_ring::{Head, Producer, Registrations};

use crate::contact::remote::Link;
use crate::protocol::cell::inline_head;
use crate::transports_for_tests::{Sink, open_with, tagged};
use crate::{Settings, SingleCopy, Transport};

fn open() -> Transport {
    open_with(Settings::default())
}

/// Claims a slot of one in the name of another, and says what means nothing there.
fn talk_nonsense(to: &Transport, from: &Transport) -> (usize, Producer) {
    let region = to.traffic.contacts.own.region();
    let slot = region
        .slots()
        .claim(from.traffic.contacts.own.identity())
        .expect("a slot");
    let mut producer = Producer::attach(region.mapping(), slot).expect("its lane");
    say_nonsense(to, slot, &mut producer);
    (slot, producer)
}

fn say_nonsense(to: &Transport, slot: usize, producer: &mut Producer) {
    let head = Head {
        kind: 77,
        flags: 0,
        length_bytes: 0,
    };
    assert!(producer.push_words(head, [0; 7]).is_ok());
    to.traffic.contacts.own.doorbell().ring(slot);
}

fn free_abandoned_slots(of: &mut Transport) {
    let contacts = &mut of.traffic.contacts;
    contacts.lanes.free_abandoned(&contacts.own);
}

#[test]
fn who_is_cut_off_keeps_its_slot_until_it_is_dead() {
    let (mut ours, theirs, third) = (open(), open(), open());
    ours.add_remote(RemoteId(0), theirs.local_address());
    let (slot, mut producer) = talk_nonsense(&ours, &theirs);
    let whose = theirs.traffic.contacts.own.identity().incarnation;
    let mut say_more = |ours: &mut Transport| {
        for _ in 0..20 {
            say_nonsense(ours, slot, &mut producer);
            ours.progress(&mut Sink);
            ours.traffic.answer_bells(&mut Sink);
        }
        ours.traffic.check_lives(&mut Sink);
        free_abandoned_slots(ours);
    };
    say_more(&mut ours);
    let contacts = &ours.traffic.contacts;
    let failed = contacts.remote(RemoteId(0)).failed();
    assert_eq!(failed, Some(TransferError::Corrupt));
    assert_eq!(
        ours.traffic.contacts.own.slots().holder(slot),
        Some(whose),
        "it lives"
    );
    assert_eq!(ours.statistics().lost, 1, "what it says later is not heard");
    let others = ours
        .traffic
        .contacts
        .own
        .slots()
        .claim(third.traffic.contacts.own.identity())
        .expect("a slot");
    assert_ne!(others, slot);

    drop(theirs);
    ours.traffic.answer_bells(&mut Sink);
    free_abandoned_slots(&mut ours);
    assert_eq!(
        ours.traffic.contacts.own.slots().holder(slot),
        None,
        "it is dead"
    );
    // Its successor there is heard.
    let again = (0..2000).find_map(|_| {
        let taken = ours
            .traffic
            .contacts
            .own
            .slots()
            .claim(third.traffic.contacts.own.identity())?;
        (taken == slot).then_some(taken)
    });
    assert_eq!(again, Some(slot));
    let mut producer =
        Producer::attach(ours.traffic.contacts.own.region().mapping(), slot).expect("its lane");
    let head = inline_head(Class::Message, false, 0);
    assert!(producer.push_words(head, [0; 7]).is_ok());
    ours.traffic.contacts.own.doorbell().ring(slot);
    ours.traffic.answer_bells(&mut Sink);
    assert_eq!(
        ours.traffic.contacts.own.slots().holder(slot),
        Some(third.traffic.contacts.own.identity().incarnation)
    );
    assert!(
        ours.traffic
            .contacts
            .lanes
            .get(slot)
            .is_some_and(|lane| lane.received() == 1)
    );
}

#[test]
fn an_endpoint_that_closes_takes_all_registrations_back() {
    let mut owner = open();
    let region = owner.traffic.contacts.own.region().clone();
    (0..20).for_each(|key| {
        owner.publish_registration(&Registration {
            key,
            length_bytes: 8,
            ..Registration::default()
        });
    });
    assert_eq!(Registrations::of(region.mapping()).keys().len(), 20);
    drop(owner);
    assert!(Registrations::of(region.mapping()).keys().is_empty());
}

/// What it was told, in order; offers go into its buffer.
#[derive(Default)]
struct Told(Vec<&'static str>, Option<UserBuffer>);

impl Owner for Told {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.0.push("word");
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        self.0.push("offer");
        let (token, buffer) = (LandingToken(1), self.1.take()?);
        Some(Landing { token, buffer })
    }
    fn on_landed(&mut self, _: LandingToken, outcome: Result<(), TransferError>) {
        self.0
            .push(if outcome.is_ok() { "landed" } else { "failed" });
    }
    fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {}
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {
        self.0.push("lost");
    }
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}

fn say_a_word(transport: &mut Transport) {
    let op = tagged(1, CompletionLevel::Transmit);
    while transport
        .post_send(&op, &UserBuffer::leaked(&[8]))
        .is_err_and(|error| error == PostError::Busy)
    {}
}

#[test]
fn first_and_last_word_of_one_that_leaves_comes_before_its_loss() {
    let [mut ours, mut theirs] = [(), ()].map(|()| open_with(Settings::default()));
    ours.add_remote(RemoteId(0), theirs.local_address());
    theirs.add_remote(RemoteId(0), ours.local_address());
    say_a_word(&mut ours);
    ours.watch(RemoteId(0), true);
    // It contacts us between our look at the bells and our look after the living.
    say_a_word(&mut theirs);
    drop(theirs);
    let mut told = Told::default();
    ours.traffic.check_lives(&mut told);
    assert_eq!(told.0, ["word", "lost"]);
}

/// Its lane to us works, but we can reach it no more: it has no slot left, or we no addresses.
#[test]
fn a_receive_that_needs_our_answer_ends_when_its_sender_cannot_be_answered() {
    const LONG: usize = 3_000_000;
    let [mut ours, mut theirs] = [(), ()].map(|()| {
        open_with(Settings {
            single_copy: SingleCopy::Never,
            ..Settings::default()
        })
    });
    theirs.add_remote(RemoteId(0), ours.local_address());
    ours.add_remote(RemoteId(0), theirs.local_address());
    let op = tagged(1, CompletionLevel::Transmit);
    let payload = UserBuffer::leaked(&[LONG]);
    assert_eq!(theirs.post_send(&op, &payload), Ok(Posted::Pending));
    let mut told = Told(Vec::new(), Some(UserBuffer::leaked(&[LONG])));
    while told.0.is_empty() {
        ours.progress(&mut told);
    }
    let (remote, why) = (RemoteId(0), TransferError::NoMemory);
    let contacts = &mut ours.traffic.contacts;
    contacts.remote_mut(remote).set_link(Link::Failed(why));
    contacts.agenda.note_lost(remote, why);
    for _ in 0..100 {
        ours.progress(&mut told);
        theirs.progress(&mut Told::default());
    }
    assert_eq!(told.0, ["offer", "failed", "lost"]);
}

/// Takes each offer into a buffer of its own, by its tag.
struct Taker {
    senders: [SocketAddr; 2],
    buffers: Vec<UserBuffer>,
    offered: usize,
    landed: Vec<u64>,
    lost: usize,
}

impl Owner for Taker {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        true
    }
    fn on_offer(&mut self, envelope: &Envelope, _: OfferId) -> Option<Landing> {
        self.offered += 1;
        Some(Landing {
            token: LandingToken(envelope.tag),
            buffer: self.buffers[envelope.tag as usize].clone(),
        })
    }
    fn on_landed(&mut self, landing: LandingToken, outcome: Result<(), TransferError>) {
        self.landed.extend(outcome.is_ok().then_some(landing.0));
    }
    fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {}
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {
        self.lost += 1;
    }
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        RemoteId(u32::from(address == self.senders[1]))
    }
}

/// Several messages of one sender go through one pipe, in their order.
#[test]
fn messages_of_others_come_into_their_own_receives_when_a_remote_is_lost_among_them() {
    const LONG: usize = 200_000;
    let [mut ours, mut dying, mut other] = [(), (), ()].map(|()| {
        open_with(Settings {
            single_copy: SingleCopy::Never,
            ..Settings::default()
        })
    });
    let senders = [dying.local_address(), other.local_address()];
    let mut taker = Taker {
        senders,
        buffers: (0..4).map(|_| UserBuffer::leaked(&[LONG])).collect(),
        offered: 0,
        landed: Vec::new(),
        lost: 0,
    };
    for (id, address) in senders.into_iter().enumerate() {
        ours.add_remote(RemoteId(id as u32), address);
    }
    for sender in [&mut dying, &mut other] {
        sender.add_remote(RemoteId(0), ours.local_address());
    }
    for tag in 0..4_u64 {
        let payload = UserBuffer::leaked(&[LONG]);
        payload.fill(0, BytesView::from_slice(&[tag as u8 + 1; LONG]));
        let op = tagged(tag, CompletionLevel::Transmit);
        let sender = if tag == 0 { &mut dying } else { &mut other };
        while sender.post_send(&op, &payload) == Err(PostError::Busy) {
            ours.progress(&mut taker);
        }
        // Their places in our list of what comes in are in this order.
        while taker.offered as u64 <= tag {
            ours.progress(&mut taker);
        }
    }
    for _ in 0..4 {
        ours.progress(&mut taker);
    }
    drop(dying);
    while taker.lost == 0 {
        ours.progress(&mut taker);
    }
    while taker.landed.len() < 3 {
        other.progress(&mut Told::default());
        ours.progress(&mut taker);
    }
    assert_eq!(taker.landed, [1, 2, 3]);
    for tag in taker.landed {
        let mut bytes = vec![0; LONG];
        let buffer = &taker.buffers[tag as usize];
        buffer.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
        assert!(bytes == [tag as u8 + 1; LONG], "message {tag}");
    }
}
