// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random non-blocking calls, many of them under way at a time, by threads as ranks that go on with
//! them at any time; each compared with what its ranks' words add up to, or with the words.
//!
//! WEFT_SEED=N repeats a run; its number is printed when a test fails.

use std::collections::VecDeque;

use fastrand::Rng;
use weft_collectives::{
    Combination, Element, Fault, Nonblocking, Operation, Reduction, Shape, Team,
};
use weft_memory::{BytesView, BytesViewMut};

use crate::threads::{Memory, Yielding, run};
use weft_collectives::Wait;

/// Calls of one team. Chosen: flags come round many times.
const CALLS: usize = if cfg!(miri) { 12 } else { 300 };

/// Most calls under way. Chosen: more than there are flags.
const UNDER_WAY: usize = 20;

/// What a word of a buffer holds where nothing is written.
const UNTOUCHED: u32 = 0xA5A5_A5A5;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Barrier,
    Bcast,
    Gather,
    Allgather,
    Scatter,
    Alltoall,
    ReduceScatter,
    Combine(Combination),
}

/// One call, the same on all ranks.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: Kind,
    ranks: usize,
    root: usize,
    /// Of a block, or of all.
    words: usize,
    in_place: bool,
    seed: u32,
}

/// Word `at` of what a rank gives.
fn word(seed: u32, rank: usize, at: usize) -> u32 {
    (seed ^ (rank as u32) << 24 ^ at as u32).wrapping_mul(0x9E37_79B9)
}

impl Case {
    fn new(rng: &mut Rng, ranks: usize) -> Self {
        let root = rng.usize(..ranks);
        let kinds = [
            Kind::Barrier,
            Kind::Bcast,
            Kind::Gather,
            Kind::Allgather,
            Kind::Scatter,
            Kind::Alltoall,
            Kind::ReduceScatter,
            Kind::Combine(Combination::All),
            Kind::Combine(Combination::Root(root)),
            Kind::Combine(Combination::UpTo),
            Kind::Combine(Combination::Below),
        ];
        let most = [2, 30, 600, 5_000, 12_000][rng.usize(..if cfg!(miri) { 2 } else { 5 })];
        Self {
            kind: kinds[rng.usize(..kinds.len())],
            ranks,
            root,
            words: 1 + rng.usize(..most / ranks + 1),
            in_place: rng.bool(),
            seed: rng.u32(..),
        }
    }

    fn given(&self, rank: usize, words: usize) -> Vec<u32> {
        (0..words).map(|at| word(self.seed, rank, at)).collect()
    }

    /// Word `at` of the sum over the first so many ranks.
    fn sum(&self, ranks: usize, at: usize) -> u32 {
        (0..ranks).fold(0, |sum: u32, rank| {
            sum.wrapping_add(word(self.seed, rank, at))
        })
    }

    /// What a rank gives in all, and how many words its buffer for the result has.
    fn lengths(&self) -> (usize, usize) {
        let all = self.words * self.ranks;
        match self.kind {
            Kind::Barrier => (0, 0),
            Kind::Bcast | Kind::Combine(_) => (self.words, self.words),
            Kind::Gather | Kind::Allgather => (self.words, all),
            Kind::Scatter => (all, self.words),
            Kind::Alltoall => (all, all),
            Kind::ReduceScatter if self.in_place => (all, all),
            Kind::ReduceScatter => (all, self.words),
        }
    }

    /// Where a rank's data lie in its buffer for the result, in place; `None` where it has another.
    fn place(&self, rank: usize) -> Option<usize> {
        let is_root = rank == self.root;
        match self.kind {
            Kind::Bcast if is_root => Some(0),
            Kind::Gather if self.in_place && is_root => Some(rank * self.words),
            Kind::Allgather if self.in_place => Some(rank * self.words),
            Kind::Alltoall | Kind::ReduceScatter | Kind::Combine(_) if self.in_place => Some(0),
            _ => None,
        }
    }

    /// What a rank's buffer holds at the end, as far as that is specified.
    fn expected(&self, rank: usize, before: &[u32]) -> Vec<u32> {
        let words = self.words;
        let is_root = rank == self.root;
        let blocks = |of: &dyn Fn(usize, usize) -> u32| {
            let each = |from| (0..words).map(move |at| (from, at));
            let all = (0..self.ranks).flat_map(each);
            all.map(|(from, at)| of(from, at)).collect()
        };
        let sums = |ranks: usize, from: usize| {
            (from..from + words).map(|at| self.sum(ranks, at)).collect()
        };
        match self.kind {
            Kind::Bcast => self.given(self.root, words),
            Kind::Gather if !is_root => before.to_vec(),
            Kind::Gather | Kind::Allgather => blocks(&|from, at| word(self.seed, from, at)),
            Kind::Scatter if self.in_place && is_root => before.to_vec(),
            Kind::Scatter => (0..words)
                .map(|at| word(self.seed, self.root, rank * words + at))
                .collect(),
            Kind::Alltoall => blocks(&|from, at| word(self.seed, from, rank * words + at)),
            Kind::ReduceScatter => sums(self.ranks, rank * words),
            Kind::Combine(Combination::All) => sums(self.ranks, 0),
            Kind::Combine(Combination::Root(_)) if is_root => sums(self.ranks, 0),
            Kind::Combine(Combination::UpTo) => sums(rank + 1, 0),
            Kind::Combine(Combination::Below) if rank > 0 => sums(rank, 0),
            Kind::Barrier | Kind::Combine(_) => before.to_vec(),
        }
    }

    fn begin(&self, calls: &mut Nonblocking, rank: usize) -> Begun {
        let (given, taken) = self.lengths();
        let send: &'static [u32] = self.given(rank, given).leak();
        let mut before = vec![UNTOUCHED; taken];
        let place = self.place(rank);
        if let Some(at) = place {
            before[at..at + given].copy_from_slice(send);
        }
        let recv = before.clone().leak().as_mut_ptr();
        // SAFETY: leaked, of these lengths; the views are used only until the call has ended.
        let (send, target) = unsafe {
            (
                BytesView::from_raw(send.as_ptr().cast(), given * 4),
                BytesViewMut::from_raw(recv.cast(), taken * 4),
            )
        };
        self.hand_over(calls, place.is_none().then_some(send), send, target, rank)
            .expect("begun");
        Begun {
            case: *self,
            before,
            recv,
        }
    }

    fn hand_over(
        &self,
        calls: &mut Nonblocking,
        send: Option<BytesView<'static>>,
        whole: BytesView<'static>,
        recv: BytesViewMut<'static>,
        rank: usize,
    ) -> Result<(), Fault> {
        let (block_bytes, root) = (self.words * 4, self.root);
        let sum = Reduction::new(Element::U32, Operation::Sum).expect("known");
        match self.kind {
            Kind::Barrier => calls.barrier(),
            Kind::Bcast => calls.bcast(recv, root),
            Kind::Gather => calls.gather(send, recv, block_bytes, Some(root)),
            Kind::Allgather => calls.gather(send, recv, block_bytes, None),
            Kind::Scatter => {
                let keeps = self.in_place && rank == root;
                calls.scatter(whole, (!keeps).then_some(recv), block_bytes, root)
            }
            Kind::Alltoall => calls.alltoall(send, recv, block_bytes),
            Kind::ReduceScatter => calls.reduce_scatter(send, recv, block_bytes, sum),
            Kind::Combine(combination) => calls.combine(send, recv, sum, combination),
        }
    }
}

/// A call under way.
struct Begun {
    case: Case,
    before: Vec<u32>,
    recv: *mut u32,
}

impl Begun {
    fn check(self, rank: usize) {
        // SAFETY: leaked with this length; the call has ended.
        let recv = unsafe { std::slice::from_raw_parts(self.recv, self.before.len()) };
        let expected = self.case.expected(rank, &self.before);
        assert!(
            recv[..expected.len()] == expected,
            "{:?} on rank {rank}",
            self.case
        );
    }
}

/// Goes on until at most so many calls are under way.
fn go_on(
    calls: &mut Nonblocking,
    begun: &mut VecDeque<Begun>,
    most: usize,
    rank: usize,
    wait: &mut dyn Wait,
) {
    loop {
        for _ in 0..calls.advance().expect("went on") {
            begun.pop_front().expect("one more").check(rank);
        }
        assert_eq!(calls.count(), begun.len());
        if begun.len() <= most {
            return;
        }
        wait.pause(0).expect("nobody has panicked");
    }
}

fn make_all(team: &mut Team, cases: &[Case], wait: &mut dyn Wait, memory: &Memory) {
    let (rank, ranks) = (team.rank(), team.ranks());
    let mut rng = Rng::with_seed(rank as u64);
    let mut calls = Nonblocking::new(memory.team(rank, &Shape::flat(ranks, false)));
    let mut begun = VecDeque::new();
    for case in cases {
        begun.push_back(case.begin(&mut calls, rank));
        if rng.u8(..3) == 0 {
            let most = rng.usize(..UNDER_WAY);
            go_on(&mut calls, &mut begun, most, rank, wait);
        }
    }
    go_on(&mut calls, &mut begun, 0, rank, wait);
}

/// Calls of so many ranks.
fn calls(ranks: usize) {
    let asked = std::env::var("WEFT_SEED").ok();
    let seed = asked.and_then(|text| text.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("WEFT_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let cases: Vec<_> = (0..CALLS).map(|_| Case::new(&mut rng, ranks)).collect();
    let memory = Memory::new(ranks);
    run(
        &Shape::flat(ranks, true),
        |team, wait: &mut Yielding<'_>| {
            make_all(team, &cases, wait, &memory);
        },
    );
}

#[test]
fn two_ranks_get_what_their_words_add_up_to_though_nobody_waits() {
    calls(2);
}

#[test]
fn three_ranks_get_what_their_words_add_up_to_though_nobody_waits() {
    calls(3);
}

#[test]
#[cfg_attr(miri, ignore = "many threads take Miri minutes")]
fn eight_ranks_get_what_their_words_add_up_to_though_nobody_waits() {
    calls(8);
}

fn two() -> (Memory, Nonblocking, Nonblocking) {
    let memory = Memory::new(2);
    let calls = |rank| Nonblocking::new(memory.team(rank, &Shape::flat(2, false)));
    let (one, other) = (calls(0), calls(1));
    (memory, one, other)
}

/// Whoever has begun a short call and gone on once has done its part.
#[test]
fn a_short_call_ends_without_further_help_of_the_others() {
    let (_memory, mut one, mut other) = two();
    one.barrier().expect("begun");
    assert_eq!(one.advance(), Ok(0), "the other has not come");
    other.barrier().expect("begun");
    assert_eq!(other.advance(), Ok(1), "the first one is there");
    assert_eq!(one.advance(), Ok(1));
}

/// A root that is ahead of its reader by more than there are flags waits, and goes on later.
#[test]
fn calls_beyond_the_flags_wait_for_their_turn() {
    let (_memory, mut one, mut other) = two();
    for value in 0..20_u8 {
        let buffer = BytesViewMut::from_slice(vec![value; 8].leak());
        one.bcast(buffer, 0).expect("begun");
    }
    assert_eq!(one.advance(), Ok(8), "as many as there are flags");
    let room: Vec<*mut u8> = (0..20).map(|_| vec![0; 8].leak().as_mut_ptr()).collect();
    for &base in &room {
        // SAFETY: leaked, 8 bytes.
        let buffer = unsafe { BytesViewMut::from_raw(base, 8) };
        other.bcast(buffer, 0).expect("begun");
    }
    assert_eq!(other.advance(), Ok(8), "what was published");
    assert_eq!(one.advance(), Ok(8));
    assert_eq!(other.advance(), Ok(8));
    assert_eq!(one.advance(), Ok(4));
    assert_eq!(other.advance(), Ok(4));
    for (value, &base) in room.iter().enumerate() {
        // SAFETY: leaked, 8 bytes; the call has ended.
        assert_eq!(unsafe { *base }, value as u8);
    }
}

#[test]
fn ranks_in_different_calls_find_out_and_nothing_works_any_more() {
    let (_memory, mut one, mut other) = two();
    one.barrier().expect("begun");
    assert_eq!(one.advance(), Ok(0));
    let buffer = BytesViewMut::from_slice(vec![0; 8].leak());
    other.bcast(buffer, 0).expect("begun");
    assert_eq!(other.advance(), Err(Fault::Mismatch { rank: 0 }));
    assert_eq!(other.barrier(), Err(Fault::Mismatch { rank: 0 }));
}
