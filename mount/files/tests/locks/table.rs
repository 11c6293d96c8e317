// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of the table of one file, against a model that has an entry for each byte.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use weft_files::locks::table::{Holder, Lock, Span, Table, Ticket, Waiting};

const BYTES: u64 = 12;

/// By byte: who holds it, and whether exclusively.
type Model = BTreeMap<u64, BTreeMap<u64, bool>>;

#[derive(Debug, Clone)]
enum Step {
    Take(Lock),
    Wait(Lock),
    Release(Holder, Span),
    DropNode(u64),
    Cancel(usize),
}

fn holder() -> impl Strategy<Value = Holder> {
    (0..2u64, 0..3u64).prop_map(|(node, owner)| Holder { node, owner })
}

fn span() -> impl Strategy<Value = Span> {
    (0..BYTES, 0..BYTES, any::<bool>()).prop_map(|(one, other, is_endless)| Span {
        first: one.min(other),
        last: if is_endless { u64::MAX } else { one.max(other) },
    })
}

fn lock() -> impl Strategy<Value = Lock> {
    (holder(), span(), any::<bool>()).prop_map(|(holder, span, is_exclusive)| Lock {
        holder,
        span,
        is_exclusive,
        process: 1,
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => lock().prop_map(Step::Take),
        4 => lock().prop_map(Step::Wait),
        4 => (holder(), span()).prop_map(|(holder, span)| Step::Release(holder, span)),
        1 => (0..2u64).prop_map(Step::DropNode),
        1 => (0..8usize).prop_map(Step::Cancel),
    ]
}

fn bytes(span: Span) -> std::ops::RangeInclusive<u64> {
    // Byte `BYTES` stands for all behind it.
    span.first..=span.last.min(BYTES)
}

fn name(holder: Holder) -> u64 {
    holder.node * 10 + holder.owner
}

fn put(model: &mut Model, lock: &Lock) {
    for byte in bytes(lock.span) {
        let held = model.entry(byte).or_default();
        held.insert(name(lock.holder), lock.is_exclusive);
    }
}

fn may(model: &Model, lock: &Lock) -> bool {
    bytes(lock.span).all(|byte| {
        let others = model.get(&byte).into_iter().flatten();
        let mut others = others.filter(|(other, _)| **other != name(lock.holder));
        others.all(|(_, is_exclusive)| !is_exclusive && !lock.is_exclusive)
    })
}

/// The table says of each byte what the model says, in as few ranges as possible.
fn check(table: &Table, model: &Model) {
    let mut seen = Model::new();
    for held in table.held() {
        for byte in bytes(held.span) {
            let before = seen.entry(byte).or_default();
            let before = before.insert(name(held.holder), held.is_exclusive);
            assert_eq!(before, None, "a holder has a byte twice");
        }
        let joins = |other: &&Lock| {
            other.holder == held.holder
                && other.is_exclusive == held.is_exclusive
                && held.span.last.checked_add(1) == Some(other.span.first)
        };
        assert_eq!(table.held().iter().find(joins), None, "two ranges are one");
    }
    let mut model = model.clone();
    model.retain(|_, held| !held.is_empty());
    assert_eq!(seen, model);
    for held in model.values() {
        assert!(held.len() < 2 || held.values().all(|is_exclusive| !is_exclusive));
    }
}

/// The table, the model, and who waits.
#[derive(Default)]
struct World {
    table: Table,
    model: Model,
    waiting: Vec<(Ticket, Lock)>,
    last: u64,
}

impl World {
    fn served(&mut self, served: Vec<Ticket>) {
        for ticket in served {
            let at = self.waiting.iter().position(|(other, _)| *other == ticket);
            let (_, lock) = self.waiting.remove(at.expect("who is served has waited"));
            assert!(may(&self.model, &lock), "{lock:?}");
            put(&mut self.model, &lock);
        }
    }

    fn cut(&mut self, is_cut: impl Fn(u64, u64) -> bool) {
        for (byte, held) in &mut self.model {
            held.retain(|name, _| !is_cut(*byte, *name));
        }
    }

    fn wait(&mut self, lock: Lock) {
        self.last += 1;
        let ticket = Ticket {
            node: lock.holder.node,
            number: self.last,
        };
        let (waiting, served) = self.table.wait(ticket, lock);
        match waiting {
            Waiting::Granted => {
                assert!(may(&self.model, &lock));
                put(&mut self.model, &lock);
            }
            Waiting::Waits => self.waiting.push((ticket, lock)),
            Waiting::Deadlock => assert!(!may(&self.model, &lock)),
        }
        self.served(served);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Take(lock) => {
                let taken = self.table.take(lock);
                assert_eq!(taken.is_ok(), may(&self.model, &lock));
                if let Ok(served) = taken {
                    put(&mut self.model, &lock);
                    self.served(served);
                }
            }
            Step::Wait(lock) => self.wait(lock),
            Step::Release(holder, span) => {
                let served = self.table.release(holder, span);
                let bytes = bytes(span);
                self.cut(|byte, other| other == name(holder) && bytes.contains(&byte));
                self.served(served);
            }
            Step::DropNode(node) => {
                let served = self.table.drop_node(node);
                self.cut(|_, name| name / 10 == node);
                self.waiting.retain(|(ticket, _)| ticket.node != node);
                self.served(served);
            }
            Step::Cancel(at) => {
                let Some((ticket, _)) = self.waiting.get(at).copied() else {
                    return;
                };
                self.waiting.remove(at);
                let (was_there, served) = self.table.cancel(ticket);
                assert!(was_there);
                self.served(served);
            }
        }
        check(&self.table, &self.model);
    }

    /// Nobody waits for nothing: when all holders give up, all are served.
    fn end(&mut self) {
        let holders = (0..2).flat_map(|node| (0..3).map(move |owner| Holder { node, owner }));
        let holders: BTreeSet<Holder> = holders.collect();
        let all = Span {
            first: 0,
            last: u64::MAX,
        };
        for _ in 0..=self.waiting.len() {
            for holder in &holders {
                self.step(&Step::Release(*holder, all));
            }
        }
        assert!(self.waiting.is_empty(), "{:?}", self.waiting);
        assert!(self.table.is_empty());
    }
}

proptest! {
    #[test]
    fn table_does_what_a_model_of_each_byte_does(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::default();
        for step in &steps {
            world.step(step);
        }
        world.end();
    }
}

fn one(owner: u64, first: u64, last: u64, is_exclusive: bool) -> Lock {
    Lock {
        holder: Holder { node: 0, owner },
        span: Span { first, last },
        is_exclusive,
        process: 1,
    }
}

fn ticket(number: u64) -> Ticket {
    Ticket { node: 0, number }
}

#[test]
fn writer_waits_for_no_more_than_some_readers_who_come_later() {
    let mut table = Table::default();
    table.take(one(0, 0, 9, false)).unwrap();
    let (waits, _) = table.wait(ticket(0), one(1, 0, 9, true));
    assert_eq!(waits, Waiting::Waits);
    let mut passed = 0;
    for reader in 2..100 {
        match table.wait(ticket(reader), one(reader, 0, 9, false)) {
            (Waiting::Granted, _) => passed += 1,
            (other, _) => assert_eq!(other, Waiting::Waits),
        }
    }
    assert!((1..20).contains(&passed), "{passed}");
    let mut served = Vec::new();
    for reader in 0..=100 {
        let holder = Holder {
            node: 0,
            owner: reader,
        };
        if reader != 1 {
            served.extend(table.release(holder, Span { first: 0, last: 9 }));
        }
    }
    assert_eq!(served.first(), Some(&ticket(0)), "the writer comes first");
}

#[test]
fn who_would_wait_for_itself_hears_so() {
    let mut table = Table::default();
    for owner in 0..3 {
        table.take(one(owner, owner, owner, true)).unwrap();
    }
    for owner in 0..2 {
        let (waits, _) = table.wait(ticket(owner), one(owner, owner + 1, owner + 1, true));
        assert_eq!(waits, Waiting::Waits);
    }
    let (last, _) = table.wait(ticket(2), one(2, 0, 0, true));
    assert_eq!(last, Waiting::Deadlock);
    let (other, _) = table.wait(ticket(3), one(3, 0, 0, true));
    assert_eq!(other, Waiting::Waits);
}
