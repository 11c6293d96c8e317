// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Models of the hand-over, through every interleaving of two or three ranks (docs/collectives.md,
//! clause 3). Run by tests/loom/run.sh. Each says which change of the code it is there to catch.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use weft_memory::{BytesView, BytesViewMut};

use crate::exchange::{Call, Exchange};
use crate::layout::FLAG_COUNT;
use crate::segment::model::Shared;
use crate::wait::{Patience, Wait};
use crate::{Element, Fault, Operation, Reduction, Reductions, Shape, Stopped, Team};

struct Yielding;

impl Wait for Yielding {
    fn pause(&mut self, _: u32) -> Result<(), Stopped> {
        thread::yield_now();
        Ok(())
    }
}

fn team(shared: Shared, ranks: usize, rank: usize) -> Team {
    Team::over(shared.segment(), ranks, rank, &Shape::flat(ranks, false))
}

fn exchange(shared: Shared, rank: usize) -> Exchange {
    let mut exchange = Exchange::new(shared.segment(), 2, rank, Patience::new(false));
    let call = Call {
        kind: 1,
        root: 0,
        length_bytes: 0,
    };
    exchange.begin(call).expect("begun");
    exchange
}

/// What was written before a barrier is there after it, on both ranks. Catches: the mark stored
/// without release, or loaded without acquire.
#[test]
fn models_barriers_order_what_lies_around_them() {
    const ROUNDS: usize = 2;
    loom::model(|| {
        let shared = Shared::new(2);
        let written = Arc::new(UnsafeCell::new(usize::MAX));
        let rank = move |rank: usize, written: Arc<UnsafeCell<usize>>| {
            let mut team = team(shared, 2, rank);
            for round in 0..ROUNDS {
                if round == rank {
                    // SAFETY: one rank's turn at a time; loom asserts it.
                    written.with_mut(|place| unsafe { *place = round });
                }
                team.barrier(&mut Yielding).expect("barrier");
                // SAFETY: nobody writes before the next barrier; loom asserts it.
                assert_eq!(written.with(|place| unsafe { *place }), round);
                if round + 1 < ROUNDS {
                    team.barrier(&mut Yielding).expect("barrier");
                }
            }
        };
        let theirs = written.clone();
        let other = thread::spawn(move || rank(1, theirs));
        rank(0, written);
        other.join().expect("rank");
    });
}

/// A root hears of two ranks that wait for nobody. (Where three wait for each other, the model has
/// no end.)
#[test]
fn models_a_root_gets_the_sum_of_three() {
    loom::model(|| {
        let shared = Shared::new(3);
        let give = move |rank: usize| {
            let sum = Reduction::new(Element::U64, Operation::Sum).expect("known");
            let send = (10_u64 << rank).to_ne_bytes();
            let mut recv = [0; 8];
            let target = BytesViewMut::from_slice(&mut recv);
            let send = Some(BytesView::from_slice(&send));
            team(shared, 3, rank)
                .reduce(&mut Yielding, send, target, sum, 0)
                .expect("sum");
            u64::from_ne_bytes(recv)
        };
        let others = [1, 2].map(|rank| thread::spawn(move || give(rank)));
        assert_eq!(give(0), 70);
        for other in others {
            assert_eq!(other.join().expect("rank"), 0, "not for this rank");
        }
    });
}

/// Staging is written again only when its reader has finished with it, and read only when it is
/// published. Catches: `open` that does not wait, `done` stored without release or loaded without
/// acquire, the mark likewise.
#[test]
fn models_staging_changes_hands() {
    const STEPS: u64 = FLAG_COUNT as u64 + 1;
    loom::model(|| {
        let shared = Shared::new(2);
        let stages: Arc<[UnsafeCell<u64>; FLAG_COUNT]> =
            Arc::new(core::array::from_fn(|_| UnsafeCell::new(0)));
        let theirs = stages.clone();
        let reader = thread::spawn(move || {
            let mut exchange = exchange(shared, 1);
            for _ in 0..STEPS {
                let step = exchange.next_step();
                exchange.heed(&mut Yielding, 0, step).expect("heard");
                // SAFETY: published and not finished: ours to read; loom asserts it.
                let seen = theirs[step as usize % FLAG_COUNT].with(|stage| unsafe { *stage });
                assert_eq!(seen, step);
                exchange.finish(step);
            }
        });
        let mut exchange = exchange(shared, 0);
        for _ in 0..STEPS {
            let step = exchange.next_step();
            exchange.open(&mut Yielding, step).expect("open");
            // SAFETY: all have finished the last use: ours to write; loom asserts it.
            stages[step as usize % FLAG_COUNT].with_mut(|stage| unsafe { *stage = step });
            exchange.publish(step);
            exchange.finish(step);
        }
        reader.join().expect("reader");
    });
}

/// Short data come whole, and of the step that is read. Catches: data stored after the mark, or a
/// flag used again too early.
#[test]
fn models_short_data_are_those_of_their_step() {
    loom::model(|| {
        let shared = Shared::new(2);
        let bcasts = |mut team: Team| {
            for round in 0..FLAG_COUNT as u8 + 1 {
                let mut data = if team.rank() == 0 {
                    [round + 1; 16]
                } else {
                    [0; 16]
                };
                let buffer = BytesViewMut::from_slice(&mut data);
                team.bcast(&mut Yielding, buffer, 0).expect("bcast");
                assert_eq!(data, [round + 1; 16]);
            }
        };
        let other = thread::spawn(move || bcasts(team(shared, 2, 1)));
        bcasts(team(shared, 2, 0));
        other.join().expect("rank");
    });
}

/// Ranks that combine each other's data agree, though one goes ahead at once and uses its flags
/// again. Catches: what all have finished assumed too early.
#[test]
fn models_both_ranks_get_the_sum() {
    loom::model(|| {
        let shared = Shared::new(2);
        let sums = |mut team: Team| {
            let sum = Reduction::new(Element::U64, Operation::Sum).expect("known");
            let send = (10 + team.rank() as u64).to_ne_bytes();
            let mut recv = [0; 8];
            let target = BytesViewMut::from_slice(&mut recv);
            let send = Some(BytesView::from_slice(&send));
            team.allreduce(&mut Yielding, send, target, sum)
                .expect("sum");
            assert_eq!(u64::from_ne_bytes(recv), 21);
            for round in 0..FLAG_COUNT as u8 {
                let mut data = if team.rank() == 0 { [round; 8] } else { [9; 8] };
                let buffer = BytesViewMut::from_slice(&mut data);
                team.bcast(&mut Yielding, buffer, 0).expect("bcast");
                assert_eq!(data, [round; 8]);
            }
        };
        let other = thread::spawn(move || sums(team(shared, 2, 1)));
        sums(team(shared, 2, 0));
        other.join().expect("rank");
    });
}

/// Ranks in different calls are told so, and none hangs: the first to look finds the other's mark.
#[test]
fn models_ranks_in_different_calls_find_out() {
    loom::model(|| {
        let shared = Shared::new(2);
        let other = thread::spawn(move || team(shared, 2, 1).barrier(&mut Yielding));
        let send = 7_u64.to_ne_bytes();
        let mut recv = [0; 8];
        let sum = Reduction::new(Element::U64, Operation::Sum).expect("known");
        let own = team(shared, 2, 0).allreduce(
            &mut Yielding,
            Some(BytesView::from_slice(&send)),
            BytesViewMut::from_slice(&mut recv),
            sum,
        );
        assert_eq!(own, Err(Fault::Mismatch { rank: 1 }));
        let other = other.join().expect("rank");
        assert_eq!(other, Err(Fault::Mismatch { rank: 0 }));
    });
}
