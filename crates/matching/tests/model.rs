// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The matcher against a plain model that looks through lists in order: whatever the sequence of
//! calls, both give the same answers.

use proptest::prelude::*;
use weft_contract::RemoteId;
use weft_matching::{Matcher, PostedId, UnexpectedId, Want};

/// One call, or the pair of calls that the endpoint makes.
#[derive(Clone, Debug)]
enum Step {
    /// A message arrives: it takes a posted receive, or is kept.
    Arrive {
        source: u32,
        tag: u64,
    },
    /// A receive is posted: it takes an unexpected message, or is kept.
    Receive(Want),
    /// Looks for an unexpected message and leaves it.
    Peek(Want),
    /// Looks for a posted receive and leaves it.
    PeekPosted {
        source: u32,
        tag: u64,
    },
    /// Adds to a side without looking at the other, so that both grow.
    PostOnly(Want),
    KeepOnly {
        source: u32,
        tag: u64,
    },
    /// Removes the receive or message that was added as the `nth` of all; often gone already.
    RemovePosted {
        nth: usize,
    },
    RemoveUnexpected {
        nth: usize,
    },
    /// Cancels the earliest receive whose number leaves this remainder by five.
    Cancel {
        remainder: u32,
    },
    /// One receive of a lost source, all of them, or its messages with this remainder by three.
    LosePosted {
        source: u32,
        all: bool,
    },
    LoseUnexpected {
        source: u32,
        remainder: u32,
    },
}

#[derive(Default)]
struct Model {
    posted: Vec<(Want, u32)>,
    unexpected: Vec<(u32, u64, u32)>,
}

fn matches(want: &Want, source: u32, tag: u64) -> bool {
    want.source.is_none_or(|wanted| wanted.0 == source)
        && (want.tag | want.ignore) == (tag | want.ignore)
}

impl Model {
    fn posted(&self, source: u32, tag: u64) -> Option<usize> {
        self.posted
            .iter()
            .position(|(want, _)| matches(want, source, tag))
    }
    fn unexpected(&self, want: &Want) -> Option<usize> {
        self.unexpected
            .iter()
            .position(|&(source, tag, _)| matches(want, source, tag))
    }
}

/// Matcher and model side by side; every receive and message is numbered.
#[derive(Default)]
struct Pair {
    matcher: Matcher<u32, u32>,
    model: Model,
    posted_ids: Vec<PostedId>,
    unexpected_ids: Vec<UnexpectedId>,
}

impl Pair {
    fn post(&mut self, want: Want) {
        let number = self.posted_ids.len() as u32;
        self.posted_ids.push(self.matcher.post(want, number));
        self.model.posted.push((want, number));
    }

    fn keep(&mut self, source: u32, tag: u64) {
        let number = self.unexpected_ids.len() as u32;
        self.unexpected_ids
            .push(self.matcher.push_unexpected(RemoteId(source), tag, number));
        self.model.unexpected.push((source, tag, number));
    }

    fn peek_posted(&mut self, source: u32, tag: u64) -> Option<usize> {
        let at = self.model.posted(source, tag);
        let expected = at.map(|at| self.model.posted[at]);
        let found = self.matcher.find_posted(RemoteId(source), tag);
        let found = found.map(|mut posted| (posted.want(), *posted.receive(), posted.id()));
        assert_eq!(found.map(|(want, number, _)| (want, number)), expected);
        assert_eq!(
            found.map(|(_, _, id)| id),
            expected.map(|(_, number)| self.posted_ids[number as usize])
        );
        at
    }

    fn peek(&mut self, want: Want) -> Option<(usize, UnexpectedId)> {
        let at = self.model.unexpected(&want);
        let found = self.matcher.find_unexpected(want);
        let expected = at.map(|at| self.model.unexpected[at]);
        assert_eq!(
            found,
            expected.map(|(_, _, number)| self.unexpected_ids[number as usize])
        );
        let content = found.and_then(|id| self.matcher.unexpected(id));
        assert_eq!(content.copied(), expected.map(|(_, _, number)| number));
        at.zip(found)
    }

    fn arrive(&mut self, source: u32, tag: u64) {
        match self.peek_posted(source, tag) {
            Some(at) => {
                let expected = self.model.posted.remove(at).1;
                if let Some(mut first) = self.matcher.find_first_posted(RemoteId(source), tag) {
                    assert_eq!(*first.receive(), expected);
                    return first.forget();
                }
                let taken = self
                    .matcher
                    .find_posted(RemoteId(source), tag)
                    .map(|posted| posted.take());
                assert_eq!(taken, Some(expected));
            }
            None => {
                let first = self.matcher.find_first_posted(RemoteId(source), tag);
                assert!(first.is_none(), "a receive matches that should not");
                self.keep(source, tag);
            }
        }
    }

    fn receive(&mut self, want: Want) {
        match self.peek(want) {
            Some((at, id)) => {
                let (_, _, number) = self.model.unexpected.remove(at);
                if number % 2 == 0 {
                    assert_eq!(self.matcher.unexpected_mut(id).copied(), Some(number));
                    self.matcher.discard_unexpected(id);
                    return assert_eq!(self.matcher.unexpected_mut(id), None);
                }
                assert_eq!(self.matcher.remove_unexpected(id), Some(number));
            }
            None => self.post(want),
        }
    }

    fn remove_posted(&mut self, nth: usize) {
        let Some(&id) = self.posted_ids.get(nth % self.posted_ids.len().max(1)) else {
            return;
        };
        let number = (nth % self.posted_ids.len()) as u32;
        let at = self
            .model
            .posted
            .iter()
            .position(|&(_, other)| other == number);
        assert_eq!(
            self.matcher.remove_posted(id),
            at.map(|at| self.model.posted.remove(at).1)
        );
    }

    fn remove_unexpected(&mut self, nth: usize) {
        let Some(&id) = self
            .unexpected_ids
            .get(nth % self.unexpected_ids.len().max(1))
        else {
            return;
        };
        let number = (nth % self.unexpected_ids.len()) as u32;
        let at = self
            .model
            .unexpected
            .iter()
            .position(|&(_, _, other)| other == number);
        let expected = at.map(|at| self.model.unexpected.remove(at));
        assert_eq!(
            self.matcher.remove_unexpected(id),
            expected.map(|(_, _, number)| number)
        );
    }

    fn cancel(&mut self, remainder: u32) {
        let at = self
            .model
            .posted
            .iter()
            .position(|&(_, number)| number % 5 == remainder);
        let canceled = self.matcher.cancel(|number| number % 5 == remainder);
        assert_eq!(canceled, at.map(|at| self.model.posted.remove(at).1));
    }

    fn lose_posted(&mut self, source: u32, all: bool) {
        loop {
            let at = self
                .model
                .posted
                .iter()
                .position(|(want, _)| want.source == Some(RemoteId(source)));
            let removed = self.matcher.remove_posted_from(RemoteId(source));
            assert_eq!(removed, at.map(|at| self.model.posted.remove(at).1));
            if !all || removed.is_none() {
                return;
            }
        }
    }

    fn lose_unexpected(&mut self, source: u32, remainder: u32) {
        let selected =
            |&(from, _, number): &(u32, u64, u32)| from == source && number % 3 == remainder;
        let at = self.model.unexpected.iter().position(selected);
        let removed = self
            .matcher
            .remove_unexpected_from(RemoteId(source), |number| number % 3 == remainder);
        assert_eq!(removed, at.map(|at| self.model.unexpected.remove(at).2));
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Arrive { source, tag } => self.arrive(source, tag),
            Step::Receive(want) => self.receive(want),
            Step::Peek(want) => drop(self.peek(want)),
            Step::PeekPosted { source, tag } => drop(self.peek_posted(source, tag)),
            Step::PostOnly(want) => self.post(want),
            Step::KeepOnly { source, tag } => self.keep(source, tag),
            Step::RemovePosted { nth } => self.remove_posted(nth),
            Step::RemoveUnexpected { nth } => self.remove_unexpected(nth),
            Step::Cancel { remainder } => self.cancel(remainder),
            Step::LosePosted { source, all } => self.lose_posted(source, all),
            Step::LoseUnexpected { source, remainder } => self.lose_unexpected(source, remainder),
        }
        assert_eq!(self.matcher.posted_count(), self.model.posted.len());
        assert_eq!(self.matcher.unexpected_count(), self.model.unexpected.len());
        for source in SOURCES {
            let directed = self
                .model
                .posted
                .iter()
                .filter(|(want, _)| want.source == Some(RemoteId(source)))
                .count();
            assert_eq!(
                self.matcher.directed_count(RemoteId(source)) as usize,
                directed
            );
        }
    }

    /// Empties both sides by matching, in an order that the wants choose.
    fn drain(&mut self) {
        while let Some(&(want, _)) = self.model.posted.last() {
            let source = want.source.map_or(SOURCES[0], |source| source.0);
            self.arrive(source, want.tag);
        }
        while let Some(&(source, tag, _)) = self.model.unexpected.last() {
            self.receive(Want {
                source: Some(RemoteId(source)),
                tag,
                ignore: 0,
            });
        }
        assert_eq!(
            (self.matcher.posted_count(), self.matcher.unexpected_count()),
            (0, 0)
        );
    }
}

/// Few, so that keys collide, and the extremes.
const SOURCES: [u32; 4] = [0, 1, 2, u32::MAX];

fn source() -> impl Strategy<Value = u32> {
    proptest::sample::select(&SOURCES[..])
}

fn tag() -> impl Strategy<Value = u64> {
    let low = 0..6u64;
    let high = proptest::sample::select(vec![0, 0, 0, 1 << 63, 1 << 32]);
    (low, high).prop_map(|(low, high)| low | high)
}

/// `masks` says how many different ignore masks there may be.
fn want(masks: usize) -> impl Strategy<Value = Want> {
    let all = [
        0,
        1 << 63 | 1,
        u64::MAX,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        1 << 32,
        1 << 63,
        1 << 40,
        u64::MAX >> 1,
    ];
    let ignore = proptest::sample::select(all[..masks].to_vec());
    (proptest::option::of(source()), tag(), ignore).prop_map(|(source, tag, ignore)| Want {
        source: source.map(RemoteId),
        tag,
        ignore,
    })
}

fn step(masks: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (source(), tag()).prop_map(|(source, tag)| Step::Arrive { source, tag }),
        6 => want(masks).prop_map(Step::Receive),
        3 => want(masks).prop_map(Step::Peek),
        1 => (source(), tag()).prop_map(|(source, tag)| Step::PeekPosted { source, tag }),
        3 => want(masks).prop_map(Step::PostOnly),
        3 => (source(), tag()).prop_map(|(source, tag)| Step::KeepOnly { source, tag }),
        1 => any::<usize>().prop_map(|nth| Step::RemovePosted { nth }),
        1 => any::<usize>().prop_map(|nth| Step::RemoveUnexpected { nth }),
        1 => (0..5u32).prop_map(|remainder| Step::Cancel { remainder }),
        1 => (source(), proptest::bool::weighted(0.1))
            .prop_map(|(source, all)| Step::LosePosted { source, all }),
        1 => (source(), 0..3u32)
            .prop_map(|(source, remainder)| Step::LoseUnexpected { source, remainder }),
    ]
}

fn agree(steps: &[Step]) {
    let mut pair = Pair::default();
    // The second round runs on reused storage.
    for _ in 0..2 {
        for step in steps {
            pair.apply(step);
        }
        pair.drain();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn matcher_agrees_with_the_model_with_few_masks(
        steps in proptest::collection::vec(step(2), 1..300),
    ) {
        agree(&steps);
    }

    #[test]
    fn matcher_agrees_with_the_model_with_more_masks_than_indexes(
        steps in proptest::collection::vec(step(14), 1..400),
    ) {
        agree(&steps);
    }
}
