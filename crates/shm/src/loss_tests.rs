// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Remotes that break the protocol: they are cut off, and what they still write meets nobody.

use weft_contract::*;
use weft_ring::{Head, Producer};

use crate::protocol::cell::inline_head;
use crate::remote::Link;
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
    let region = &to.own.region;
    let slot = region.slots().claim(&from.own.identity).expect("a slot");
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
    to.own.region.doorbell().ring(slot);
}

#[test]
fn who_is_cut_off_keeps_its_slot_until_it_is_dead() {
    let (mut ours, theirs, third) = (open(), open(), open());
    ours.add_remote(RemoteId(0), theirs.local_address());
    let (slot, mut producer) = talk_nonsense(&ours, &theirs);
    let whose = theirs.own.identity.incarnation;
    let mut say_more = |ours: &mut Transport| {
        for _ in 0..20 {
            say_nonsense(ours, slot, &mut producer);
            ours.progress(&mut Sink);
            ours.answer_bells(&mut Sink);
        }
        ours.check_lives(&mut Sink);
        ours.free_abandoned_slots();
    };
    say_more(&mut ours);
    assert!(matches!(
        ours.remotes[0].link,
        Link::Failed(TransferError::Corrupt)
    ));
    assert_eq!(
        ours.own.region.slots().holder(slot),
        Some(whose),
        "it lives"
    );
    assert_eq!(ours.statistics.lost, 1, "what it says later is not heard");
    let others = ours
        .own
        .region
        .slots()
        .claim(&third.own.identity)
        .expect("a slot");
    assert_ne!(others, slot);

    drop(theirs);
    ours.answer_bells(&mut Sink);
    ours.free_abandoned_slots();
    assert_eq!(ours.own.region.slots().holder(slot), None, "it is dead");
    // Its successor there is heard.
    let again = (0..2000).find_map(|_| {
        let taken = ours.own.region.slots().claim(&third.own.identity)?;
        (taken == slot).then_some(taken)
    });
    assert_eq!(again, Some(slot));
    let mut producer = Producer::attach(ours.own.region.mapping(), slot).expect("its lane");
    let head = inline_head(Class::Message, false, 0);
    assert!(producer.push_words(head, [0; 7]).is_ok());
    ours.own.region.doorbell().ring(slot);
    ours.answer_bells(&mut Sink);
    assert_eq!(
        ours.own.region.slots().holder(slot),
        Some(third.own.identity.incarnation)
    );
    assert!(
        ours.inbound[slot]
            .as_ref()
            .is_some_and(|lane| lane.received == 1)
    );
}
