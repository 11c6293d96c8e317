// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Remotes that break the protocol: they are cut off, and what they still write meets nobody. And
//! our own end: nothing of ours stays in use.

use weft_contract::*;
use weft_ring::{Head, Producer, Registrations};

use crate::protocol::cell::inline_head;
use crate::sink::Sink;
use crate::{Settings, Transport};

fn open() -> Transport {
    let settings = Settings {
        address: Some(([127, 0, 0, 1], 0).into()),
        ..Settings::default()
    };
    Transport::open(settings).expect("transport")
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
