// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Models of the hand-over, through every interleaving of two or three ranks (docs/collectives.md,
//! clause 3). Run by tests/loom/run.sh. Each says which change of the code it is there to catch.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use weft_memory::{BytesView, BytesViewMut};

use crate::Team;
use crate::exchange::{Call, Exchange};
use crate::layout::FLAG_COUNT;
use crate::segment::model::Shared;
use crate::wait::{Patience, Wait};
use crate::{Blocks, Element, Fault, Leaving, Operation, Reduction, Reductions, Shape, Stopped};

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

/// One of two that doubt at each look whether the other can still come.
fn doubting(shared: Shared, rank: usize) -> Team {
    Team::over(shared.segment(), 2, rank, &Shape::flat(2, true))
}

/// One of three, of which the first is in a cache domain of its own.
fn apart(shared: Shared, rank: usize) -> Team {
    let shape = Shape {
        domains: vec![0, 1, 1],
        oversubscribed: false,
    };
    Team::over(shared.segment(), 3, rank, &shape)
}

fn broadcast(team: &mut Team, root: usize) -> Result<u64, Fault> {
    let mut data = [team.rank() as u8 + 1; 8];
    team.bcast(&mut Yielding, BytesViewMut::from_slice(&mut data), root)?;
    Ok(u64::from_ne_bytes(data))
}

/// Both ranks make a call that the other one does not make, and are told so.
fn both_find_out<T: core::fmt::Debug + PartialEq + 'static>(
    shared: Shared,
    as_team: impl Fn(Shared, usize) -> Team + Copy + 'static,
    first: impl FnOnce(Team) -> Result<T, Fault>,
    second: impl FnOnce(Team) -> Result<T, Fault> + 'static,
) {
    let other = thread::spawn(move || second(as_team(shared, 1)));
    assert_eq!(first(as_team(shared, 0)), Err(Fault::Mismatch { rank: 1 }));
    let other = other.join().expect("rank");
    assert_eq!(other, Err(Fault::Mismatch { rank: 0 }));
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
        let pair = |shared, rank| team(shared, 2, rank);
        let sum = |mut team: Team| {
            let send = 7_u64.to_ne_bytes();
            let mut recv = [0; 8];
            let sum = Reduction::new(Element::U64, Operation::Sum).expect("known");
            let send = Some(BytesView::from_slice(&send));
            let recv = BytesViewMut::from_slice(&mut recv);
            team.allreduce(&mut Yielding, send, recv, sum)
        };
        let meet = |mut team: Team| team.barrier(&mut Yielding);
        both_find_out(Shared::new(2), pair, sum, meet);
    });
}

/// Each rank gets the block that the other one has for it, of the step that it reads, though flags
/// are used again. Catches: a block of an earlier step, stored after the mark, or read too early.
#[test]
fn models_alltoall_brings_the_blocks_of_its_step() {
    loom::model(|| {
        let shared = Shared::new(2);
        let alltoalls = |mut team: Team| {
            let own = team.rank() as u8;
            for round in 0..FLAG_COUNT as u8 + 1 {
                let block = |from: u8, to: u8| [round << 4 | from << 2 | to; 8];
                let send = [block(own, 0), block(own, 1)];
                let mut recv = [[0; 8]; 2];
                let (given, taken) = (Blocks::Even(8), Blocks::Even(8));
                let target = BytesViewMut::from_slice(recv.as_flattened_mut());
                let send = Some(BytesView::from_slice(send.as_flattened()));
                team.alltoall(&mut Yielding, send, target, given, taken)
                    .expect("alltoall");
                assert_eq!(recv, [block(0, own), block(1, own)]);
            }
        };
        let other = thread::spawn(move || alltoalls(team(shared, 2, 1)));
        alltoalls(team(shared, 2, 0));
        other.join().expect("rank");
    });
}

/// A rank that doubts is not wrong: the other one has gone on to a later step, and waits there or
/// has left it to the MPI, but has published all before. Catches: `waits` or `left` stored without
/// release or loaded without acquire; no last look after a doubt.
#[test]
fn models_a_doubt_about_a_rank_that_is_ahead_is_dropped() {
    loom::model(|| {
        let shared = Shared::new(2);
        let other = thread::spawn(move || {
            let mut team = doubting(shared, 1);
            team.report(&mut Yielding, 0).expect("told");
            broadcast(&mut team, 0)
        });
        let mut team = doubting(shared, 0);
        assert_eq!(team.report(&mut Yielding, 0), Ok(()), "no rank differs");
        broadcast(&mut team, 0).expect("no rank differs");
        assert_eq!(other.join().expect("rank"), Ok(u64::from_ne_bytes([1; 8])));
    });
}

/// The same of a rank that has left the next call to the MPI.
#[test]
fn models_a_doubt_about_a_rank_that_has_left_a_later_call_is_dropped() {
    loom::model(|| {
        let shared = Shared::new(2);
        let other = thread::spawn(move || {
            let mut team = doubting(shared, 1);
            team.report(&mut Yielding, 0).expect("told");
            Leaving(&mut team).note();
            broadcast(&mut team, 0)
        });
        let mut team = doubting(shared, 0);
        assert_eq!(team.report(&mut Yielding, 0), Ok(()), "no rank differs");
        Leaving(&mut team).note();
        broadcast(&mut team, 0).expect("no rank differs");
        assert_eq!(other.join().expect("rank"), Ok(u64::from_ne_bytes([1; 8])));
    });
}

/// Ranks that wait for each other, each for the other's data, are both told. Catches: a rank that
/// waits without telling in which step.
#[test]
fn models_ranks_that_wait_for_each_other_find_out() {
    loom::model(|| {
        let wants = |root| move |mut team: Team| broadcast(&mut team, root);
        both_find_out(Shared::new(2), doubting, wants(1), wants(0));
    });
}

/// Ranks that name different lengths before they leave a call are both told. Catches: a mark
/// without the length.
#[test]
fn models_ranks_that_agree_on_different_lengths_find_out() {
    loom::model(|| {
        let agree = |mut team: Team| {
            let length_bytes = 100_000 + team.rank();
            Leaving(&mut team).agree(&mut Yielding, 1, 0, length_bytes)
        };
        both_find_out(Shared::new(2), doubting, agree, agree);
    });
}

/// A rank that has gone on hears of one that has given up, and waits no more. Catches: a rank that
/// gives up in silence.
#[test]
fn models_a_rank_that_gives_up_is_not_waited_for() {
    loom::model(|| {
        let go_on = |mut team: Team| {
            broadcast(&mut team, 0).expect("waits for nobody");
            team.barrier(&mut Yielding)
        };
        let meet = |mut team: Team| team.barrier(&mut Yielding);
        both_find_out(Shared::new(2), doubting, go_on, meet);
    });
}

/// A rank that waits for one that has left the call finds out, and may follow it.
#[test]
fn models_a_rank_follows_one_that_has_left_the_call() {
    loom::model(|| {
        let shared = Shared::new(2);
        let other = thread::spawn(move || Leaving(&mut doubting(shared, 1)).note());
        let own = broadcast(&mut doubting(shared, 0), 1);
        assert_eq!(own, Err(Fault::Left { rank: 1 }));
        other.join().expect("rank");
    });
}

/// A rank gets what the root gave from its leader, whole, though it never looks at the root.
/// Catches: a leader that publishes before it has read, or without release.
#[test]
fn models_a_leader_hands_on_what_it_heard() {
    loom::model(|| {
        let shared = Shared::new(3);
        let hear = move |rank| broadcast(&mut apart(shared, rank), 0);
        let others = [1, 2].map(|rank| thread::spawn(move || hear(rank)));
        let given = Ok(u64::from_ne_bytes([1; 8]));
        assert_eq!(hear(0), given);
        for other in others {
            assert_eq!(other.join().expect("rank"), given);
        }
    });
}

/// A root hears of two ranks in another domain by their leader.
#[test]
fn models_a_root_gets_the_sum_from_a_leader() {
    loom::model(|| {
        let shared = Shared::new(3);
        let give = move |rank: usize| {
            let sum = Reduction::new(Element::U64, Operation::Sum).expect("known");
            let send = (10_u64 << rank).to_ne_bytes();
            let mut recv = [0; 8];
            let target = BytesViewMut::from_slice(&mut recv);
            let send = Some(BytesView::from_slice(&send));
            apart(shared, rank)
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
