// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Long messages in both directions between two transports of this process: one of them chooses the
//! method for both, and what it says binds to nothing.

use weft_contract::*;
use weft_memory::UserBuffer;

use crate::copy::bidirectional::{advice_of, advised};
use crate::protocol::copy_method::CopyMethod;
use crate::transports_for_tests::{Basin, open_with, tagged};
use crate::tuner::copies::class_of;
use crate::{Settings, Transport};

const LENGTH: usize = 300_001;

/// Two endpoints, the one that chooses for both first.
struct Pair([(Transport, Basin); 2]);

impl Pair {
    fn new() -> Self {
        let open = || {
            let mut transport = open_with(Settings::default());
            // Machines with one processor share it among tests, too.
            transport.set_shares_cores(false);
            (transport, Basin::new(LENGTH))
        };
        let mut ends = [open(), open()];
        let [a, b] = ends.each_mut().map(|(transport, _)| transport);
        a.add_remote(RemoteId(0), b.local_address());
        b.add_remote(RemoteId(0), a.local_address());
        ends.sort_by_key(|(transport, _)| transport.traffic.contacts.own.identity().incarnation);
        Self(ends)
    }

    fn progress(&mut self) {
        for (transport, book) in &mut self.0 {
            transport.progress(book);
        }
    }

    /// One message from each of these, and waits until they are delivered.
    fn exchange(&mut self, senders: &[usize]) {
        let ends = |pair: &Self| pair.0.each_ref().map(|(_, book)| (book.landed, book.sent));
        let before = ends(self);
        for &sender in senders {
            let payload = UserBuffer::leaked(&[LENGTH]);
            let op = tagged(0, CompletionLevel::Delivery);
            while let Err(why) = self.0[sender].0.post_send(&op, &payload) {
                assert_eq!(why, PostError::Busy);
                self.progress();
            }
        }
        let expected = [0, 1].map(|end| {
            let (landed, sent) = before[end];
            let count = |end| usize::from(senders.contains(&end));
            (landed + count(1 - end), sent + count(end))
        });
        while ends(self) != expected {
            self.progress();
        }
    }

    /// What an end publishes of the messages' class: for traffic in one direction, and for
    /// bidirectional traffic.
    fn published(&self, end: usize) -> (u8, u8) {
        let byte = self.0[end]
            .0
            .traffic
            .methods
            .published(class_of(LENGTH as u64));
        (byte & 15, byte >> 4)
    }

    /// What the first one tells the second.
    fn word(&self) -> u64 {
        let lane = self.0[0].0.traffic.contacts.lanes.iter().next();
        lane.expect("a lane").advice()
    }
}

#[test]
fn of_bidirectional_traffic_one_process_chooses_for_both() {
    let mut pair = Pair::new();
    for _ in 0..60 {
        pair.exchange(&[0, 1]);
    }
    let (chosen, followed) = (pair.published(0), pair.published(1));
    assert!(chosen.1 != 0, "it has tried all methods: {chosen:?}");
    assert!(followed.1 != 0 && followed.0 == 0, "{followed:?}");
    assert!(advised(pair.word(), class_of(LENGTH as u64)).is_some());
    // Once it only receives, it chooses for itself and says so.
    for _ in 0..60 {
        pair.exchange(&[1]);
    }
    assert_eq!(pair.word(), 0);
    assert!(pair.published(0).0 != 0, "{:?}", pair.published(0));
}

#[test]
fn messages_that_only_come_are_chosen_for_by_their_receiver() {
    for receiver in [0, 1] {
        let mut pair = Pair::new();
        for _ in 0..60 {
            pair.exchange(&[1 - receiver]);
        }
        let (alone, both) = pair.published(receiver);
        assert!(alone != 0 && both == 0, "{alone} and {both}");
    }
}

#[test]
fn a_claim_that_cannot_be_heeded_is_not() {
    let mut pair = Pair::new();
    pair.exchange(&[0, 1]);
    let class = class_of(LENGTH as u64);
    let claims = [
        advice_of(class, CopyMethod::Mapped),
        advice_of(class, CopyMethod::Cooperative) + 1,
        u64::MAX,
        (class as u64) << 8,
    ];
    for claim in claims {
        for _ in 0..4 {
            let lane = pair.0[0].0.traffic.contacts.lane_of(RemoteId(0));
            lane.expect("a lane").forge_advice(claim);
            pair.exchange(&[0, 1]);
        }
    }
}

#[test]
fn a_word_names_a_way_of_one_class() {
    let word = advice_of(18, CopyMethod::Cooperative);
    assert_eq!(advised(word, 18), Some(CopyMethod::Cooperative));
    assert_eq!(advised(word, 17), None);
    assert_eq!(advised(0, 0), None);
    assert_eq!(advised(18 << 8 | 7, 18), None);
}
