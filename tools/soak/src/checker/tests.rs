// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shows that the checker sees faults: a transport made up here delivers by the rules of matching
//! and then loses, doubles, reorders, changes or forgets as a test asks it to.

use super::*;
use crate::ledger::Asked;
use crate::ledger::{Entry, Flaw, Ledger, SendEnd, Sent};
use crate::traffic::Form;
use crate::traffic::TAG_NUMBER_BITS;

const RANKS: u8 = 3;
const COUNT: u32 = 60;
const ROUND: u16 = 5;

fn life(rank: u8) -> Life {
    Life {
        rank,
        generation: 0,
    }
}

fn stream(from: u8, to: u8) -> Stream {
    Stream {
        round: ROUND,
        from: life(from),
        to: life(to),
    }
}

fn message(from: u8, to: u8, index: u32) -> Identity {
    Identity {
        stream: stream(from, to),
        index,
    }
}

/// A transport that keeps all laws; the ledgers that its users would write.
struct Fake {
    traffic: Traffic,
    round: Round,
}

impl Fake {
    /// Every rank sends `COUNT` messages to every other.
    fn new(seed: u64) -> Self {
        let traffic = Traffic {
            seed,
            longest_bytes: 1 << 16,
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let mut round = Round {
            number: ROUND,
            ledgers: Vec::new(),
            posted: HashMap::new(),
        };
        for rank in 0..RANKS {
            let others = (0..RANKS).filter(|other| *other != rank);
            let mut entries = Vec::new();
            for other in others {
                round.posted.insert(stream(rank, other), COUNT);
                entries.extend((0..COUNT).map(|index| {
                    Entry::Sent(Sent {
                        identity: message(rank, other, index),
                        end: SendEnd::Well,
                    })
                }));
                entries.extend(deliver(&traffic, &mut random, (other, rank)));
            }
            round.ledgers.push(Ledger {
                life: life(rank),
                is_cut_short: false,
                entries,
            });
        }
        Self { traffic, round }
    }

    fn entries(&mut self, rank: u8) -> &mut Vec<Entry> {
        &mut self.round.ledgers[usize::from(rank)].entries
    }

    /// The place of the entry that says that this message was received.
    fn place(&mut self, identity: Identity) -> usize {
        let rank = identity.stream.to.rank;
        let is_it =
            |entry: &Entry| matches!(entry, Entry::Received(one) if one.identity == identity);
        self.entries(rank).iter().position(is_it).unwrap()
    }

    fn received(&mut self, identity: Identity) -> &mut Received {
        let (place, rank) = (self.place(identity), identity.stream.to.rank);
        match &mut self.entries(rank)[place] {
            Entry::Received(one) => one,
            Entry::Sent(_) => unreachable!("it is the place of a receipt"),
        }
    }

    fn ended(&mut self, identity: Identity, end: SendEnd) {
        for entry in self.entries(identity.stream.from.rank) {
            match entry {
                Entry::Sent(sent) if sent.identity == identity => sent.end = end,
                _ => {}
            }
        }
    }

    fn findings(&self) -> Vec<Finding> {
        Checker::new(self.traffic).check(&self.round)
    }

    /// Asserts that there is one finding, of this kind.
    #[track_caller]
    fn has_one(&self, kind: Kind) {
        let findings = self.findings();
        assert!(
            findings.len() == 1 && findings[0].kind == kind,
            "{findings:?} should be one {kind:?}"
        );
    }
}

/// Posts receives of random kinds and gives each the earliest message that it matches.
fn deliver(traffic: &Traffic, random: &mut fastrand::Rng, (from, to): (u8, u8)) -> Vec<Entry> {
    let mut untaken: Vec<Identity> = (0..COUNT).map(|index| message(from, to, index)).collect();
    let mut entries = Vec::new();
    let mut post = u64::from(from) * 1_000;
    while !untaken.is_empty() {
        let any = untaken[random.usize(..untaken.len())];
        let tag = traffic.message(any).tag;
        let ignore = [0, TAG_NUMBER_BITS, u64::MAX][random.usize(..3)];
        let asked = Asked {
            source: random.bool().then_some(from),
            tag: tag.map(|tag| (tag, ignore)),
        };
        let fits = |one: &Identity| match (traffic.message(*one).tag, asked.tag) {
            (Some(tag), Some((asked, ignore))) => (asked ^ tag) & !ignore == 0,
            (None, None) => true,
            _ => false,
        };
        let first = untaken.iter().position(fits).unwrap();
        post += 1;
        entries.push(Entry::Received(Received {
            identity: untaken.remove(first),
            post,
            offset: 0,
            asked,
            flaw: None,
        }));
    }
    entries
}

#[test]
fn a_transport_that_keeps_the_laws_has_no_findings() {
    for seed in 0..20 {
        assert_eq!(Fake::new(seed).findings(), [], "seed {seed}");
    }
}

#[test]
fn a_message_that_never_came_is_lost() {
    let mut fake = Fake::new(1);
    let lost = message(0, 1, 7);
    assert_ne!(fake.traffic.message(lost).form, Form::Delivered);
    let place = fake.place(lost);
    fake.entries(1).remove(place);
    fake.has_one(Kind::Lost);
    assert!(
        fake.findings()[0]
            .text
            .contains("message 7 of round 5 from rank 0 to rank 1")
    );
}

#[test]
fn a_message_reported_delivered_to_a_killed_sender_and_not_received_is_lost() {
    let mut fake = Fake::new(1);
    let all = (0..COUNT).map(|index| message(0, 1, index));
    let traffic = fake.traffic;
    let mut delivered = all.filter(|one| traffic.message(*one).form == Form::Delivered);
    let lost = delivered.next().unwrap();
    let place = fake.place(lost);
    fake.entries(1).remove(place);
    fake.round.ledgers[0].is_cut_short = true;
    fake.has_one(Kind::Lost);
}

#[test]
fn a_message_received_twice_is_doubled() {
    let mut fake = Fake::new(2);
    let mut twice = *fake.received(message(2, 0, 3));
    twice.post += 500;
    fake.entries(0).push(Entry::Received(twice));
    let kinds: Vec<Kind> = fake.findings().iter().map(|one| one.kind).collect();
    assert!(kinds.contains(&Kind::Doubled), "{kinds:?}");
}

#[test]
fn two_messages_of_one_tag_in_each_others_receives_are_misordered() {
    let mut fake = Fake::new(3);
    let traffic = fake.traffic;
    let tag = |index| traffic.message(message(0, 1, index)).tag;
    let later = (1..COUNT).find(|index| tag(*index) == tag(0)).unwrap();
    let (first, second) = (message(0, 1, 0), message(0, 1, later));
    let (a, b) = (*fake.received(first), *fake.received(second));
    fake.received(first).identity = Identity {
        index: COUNT + 1,
        ..first
    };
    fake.received(second).identity = first;
    fake.received(Identity {
        index: COUNT + 1,
        ..first
    })
    .identity = second;
    assert!(a.post < b.post);
    let findings = fake.findings();
    assert!(
        findings.iter().any(|one| one.kind == Kind::Misordered),
        "{findings:?}"
    );
    assert!(findings.iter().all(|one| one.kind == Kind::Misordered));
}

#[test]
fn a_receive_of_every_tag_that_passes_over_an_earlier_message_is_misordered() {
    let mut fake = Fake::new(4);
    let traffic = fake.traffic;
    let tagged = |index: &u32| traffic.message(message(1, 2, *index)).tag.is_some();
    let mut indices = (0..COUNT).filter(tagged);
    let first = indices.next().unwrap();
    let other = |index: &u32| {
        traffic.message(message(1, 2, *index)).tag != traffic.message(message(1, 2, first)).tag
    };
    let second = indices.find(other).unwrap();
    // The later one is taken first, by a receive that takes any tag.
    let early = fake.received(message(1, 2, second));
    early.post = 1;
    early.asked.tag = Some((0, u64::MAX));
    fake.has_one(Kind::Misordered);
}

#[test]
fn changed_bytes_lengths_tags_and_sources_are_wrong() {
    for flaw in [
        Flaw::Byte(3),
        Flaw::Length(1),
        Flaw::Tag,
        Flaw::Data,
        Flaw::Source,
        Flaw::Unknown,
    ] {
        let mut fake = Fake::new(5);
        fake.received(message(0, 2, COUNT - 1)).flaw = Some(flaw);
        fake.has_one(Kind::Wrong);
    }
}

#[test]
fn a_receive_that_asked_for_another_source_is_wrong() {
    let mut fake = Fake::new(6);
    fake.received(message(0, 2, 0)).asked.source = Some(1);
    fake.has_one(Kind::Wrong);
}

#[test]
fn a_message_that_nobody_sent_is_wrong() {
    let mut fake = Fake::new(7);
    fake.round.posted.insert(stream(0, 1), COUNT - 1);
    fake.has_one(Kind::Wrong);
}

#[test]
fn a_message_for_another_rank_is_wrong() {
    let mut fake = Fake::new(8);
    let stray = *fake.received(message(0, 1, 0));
    let place = fake.place(message(0, 1, 0));
    fake.entries(1).remove(place);
    fake.entries(2).push(Entry::Received(stray));
    fake.has_one(Kind::Wrong);
}

#[test]
fn a_send_that_never_ends_is_hung_and_one_that_fails_is_failed() {
    let mut fake = Fake::new(9);
    fake.ended(message(0, 1, 4), SendEnd::Never);
    fake.has_one(Kind::Hung);
    fake.ended(message(0, 1, 4), SendEnd::Failed(104));
    fake.has_one(Kind::Failed);
}

#[test]
fn what_a_kill_has_cut_may_be_lost_and_fail_but_not_come_twice_or_changed() {
    let mut fake = Fake::new(10);
    fake.round.ledgers[0].is_cut_short = true;
    for index in 50..COUNT {
        let place = fake.place(message(0, 1, index));
        fake.entries(1).remove(place);
        fake.ended(message(1, 0, index), SendEnd::Failed(104));
        fake.ended(message(0, 1, index), SendEnd::Failed(104));
    }
    assert_eq!(fake.findings(), []);
    fake.received(message(0, 1, 3)).flaw = Some(Flaw::Byte(9));
    fake.has_one(Kind::Wrong);
}

#[test]
fn a_message_of_an_ended_round_is_wrong_or_if_cut_comes_once() {
    let fake = Fake::new(11);
    let late = |index| {
        let mut later = Fake::new(11).round;
        later.number = ROUND + 1;
        later.posted.clear();
        for ledger in &mut later.ledgers {
            ledger.entries.clear();
        }
        let one = *Fake::new(11).received(message(0, 1, index));
        later.ledgers[1].entries.push(Entry::Received(one));
        later
    };
    let mut checker = Checker::new(fake.traffic);
    assert_eq!(checker.check(&fake.round), []);
    assert_eq!(checker.check(&late(3))[0].kind, Kind::Wrong);

    let mut cut = Fake::new(11);
    cut.round.ledgers[0].is_cut_short = true;
    let place = cut.place(message(0, 1, COUNT - 1));
    cut.entries(1).remove(place);
    cut.ended(message(0, 1, COUNT - 1), SendEnd::Never);
    cut.ended(message(0, 1, COUNT - 1), SendEnd::Failed(1));
    let mut checker = Checker::new(cut.traffic);
    assert_eq!(checker.check(&cut.round), []);
    assert_eq!(checker.check(&late(COUNT - 1)), []);
    assert_eq!(checker.check(&late(COUNT - 1))[0].kind, Kind::Doubled);
}
