// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls that read the ranks' data where they lie, by threads as ranks: each compared with a model,
//! and refused by all where one rank shows nothing. Data lie in pieces, as the ends of buffers do,
//! some of them shorter than an element.
//!
//! WEFT_SEED=N repeats a run; its number is printed when a test fails.

use std::sync::atomic::{AtomicUsize, Ordering};

use fastrand::Rng;
use weft_collectives::{
    Block, Blocks, Direct, Element, Fault, Lengths, Operation, Reach, Reduction, Reductions, Shape,
    Shown, Team, Terms, Wait,
};
use weft_memory::{BytesView, BytesViewMut};

use crate::threads::run;

/// Calls of one team. Chosen: flags come round many times.
const CALLS: usize = if cfg!(miri) { 4 } else { 30 };

/// Threads see each other's memory as it is; a row ends where a multiple of a length does.
pub struct OneProcess {
    row_bytes: usize,
    shows: bool,
    /// Bytes that were prepared of each rank, and from where: nothing else is shown.
    prepared: Vec<(AtomicUsize, AtomicUsize)>,
}

impl OneProcess {
    pub fn new(row_bytes: usize, shows: bool, ranks: usize) -> Self {
        Self {
            row_bytes,
            shows,
            prepared: (0..ranks).map(|_| Default::default()).collect(),
        }
    }
}

impl Reach for OneProcess {
    fn show(&mut self, bytes: BytesView<'_>) -> Option<Shown> {
        let words = [bytes.base() as u64, bytes.length_bytes() as u64, 1];
        (self.shows && bytes.length_bytes() > 0).then_some(Shown(words))
    }

    fn prepare(&mut self, rank: usize, shown: Shown, offset_bytes: usize) -> usize {
        let Shown([_, length_bytes, _]) = shown;
        let left_bytes = (length_bytes as usize).saturating_sub(offset_bytes);
        let row_bytes = left_bytes.min(self.row_bytes - offset_bytes % self.row_bytes);
        self.prepared[rank].0.store(offset_bytes, Ordering::Relaxed);
        self.prepared[rank].1.store(row_bytes, Ordering::Relaxed);
        row_bytes
    }

    fn view(
        &self,
        rank: usize,
        shown: Shown,
        offset_bytes: usize,
        most_bytes: usize,
    ) -> BytesView<'_> {
        let Shown([address, ..]) = shown;
        let (from, bytes) = &self.prepared[rank];
        assert_eq!(from.load(Ordering::Relaxed), offset_bytes);
        let count = bytes.load(Ordering::Relaxed).min(most_bytes);
        let base = (address as usize + offset_bytes) as *const u8;
        // SAFETY: the bytes are another thread's, which is in the same call until all have read;
        // views may be written by others meanwhile.
        unsafe { BytesView::from_raw(base, count) }
    }
}

#[derive(Clone, Copy, Debug)]
enum What {
    Bcast,
    Scatter,
    Gather,
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Reduce,
    Allreduce,
}

/// One call, the same on all ranks.
#[derive(Clone, Debug)]
struct Case {
    what: What,
    root: usize,
    /// Bytes of a block, or of all data.
    length_bytes: usize,
    in_place: bool,
    /// Who shows nothing.
    hides: Option<usize>,
    row_bytes: usize,
    seed: u64,
}

impl Case {
    fn new(rng: &mut Rng, ranks: usize) -> Self {
        let kinds = [
            What::Bcast,
            What::Scatter,
            What::Gather,
            What::Allgather,
            What::Allgatherv,
            What::Alltoall,
            What::Alltoallv,
            What::Reduce,
            What::Allreduce,
        ];
        let most = [200, 5000, 60_000][rng.usize(..if cfg!(miri) { 1 } else { 3 })];
        Self {
            what: kinds[rng.usize(..kinds.len())],
            root: rng.usize(..ranks),
            length_bytes: (8 + rng.usize(..most)) / 8 * 8,
            in_place: rng.bool(),
            hides: (rng.u8(..4) == 0).then(|| rng.usize(..ranks)),
            row_bytes: match most {
                60_000 => 4096,
                _ => [13, 4096, 1 << 20][rng.usize(..3)],
            },
            seed: rng.u64(..),
        }
    }

    /// What a rank holds before: so many bytes.
    fn data(&self, rank: usize, length_bytes: usize) -> Vec<u8> {
        let mut rng = Rng::with_seed(self.seed ^ (rank as u64) << 32);
        let word = |_| (0.5 + rng.f64()).to_ne_bytes();
        (0..length_bytes / 8).flat_map(word).collect()
    }

    fn sum(&self, ranks: usize) -> Vec<u8> {
        let mut sum = self.data(0, self.length_bytes);
        for rank in 1..ranks {
            let other = self.data(rank, self.length_bytes);
            for (a, b) in sum.chunks_exact_mut(8).zip(other.chunks_exact(8)) {
                reduction().combine(&mut BytesViewMut::from_slice(a), BytesView::from_slice(b));
            }
        }
        sum
    }

    /// Blocks with lengths of their own, some of them empty, from last to first with gaps.
    fn blocks(&self, ranks: usize) -> Vec<Block> {
        let mut rng = Rng::with_seed(self.seed);
        let length = self.length_bytes;
        let block = |rank: usize| Block {
            offset_bytes: (ranks - 1 - rank) * length * 2 + rng.usize(..length),
            length_bytes: [0, length, rng.usize(..=length)][rng.usize(..3)],
        };
        (0..ranks).map(block).collect()
    }

    /// What the ranks give each other in an alltoallv, some of it empty: bytes from one to another.
    fn lengths(&self, ranks: usize) -> Vec<Vec<usize>> {
        let mut rng = Rng::with_seed(self.seed);
        let length = self.length_bytes;
        let mut block = |_| [0, length, rng.usize(..=length)][rng.usize(..3)];
        let mut row = |_| (0..ranks).map(&mut block).collect();
        (0..ranks).map(&mut row).collect()
    }

    /// Half of the calls may stage whatever is not shown.
    fn most_staged_bytes(&self) -> usize {
        match self.seed % 2 {
            0 => usize::MAX,
            _ => self.length_bytes / 2,
        }
    }

    fn tries(&self, rank: usize) -> bool {
        !self.in_place && (self.seed >> 1) % 4 != rank as u64
    }

    /// Makes an alltoallv. In place a rank gives another as much as it takes from it.
    fn alltoallv(&self, direct: &mut Direct<'_>, wait: &mut dyn Wait, own: usize, ranks: usize) {
        let table = self.lengths(ranks);
        let bytes = |from: usize, to: usize| match self.in_place {
            true => table[from.min(to)][from.max(to)],
            false => table[from][to],
        };
        let place = |lengths: Vec<usize>, gap: usize| {
            let mut end = 0;
            let block = |length_bytes| {
                let offset_bytes = end;
                end += length_bytes + gap;
                Block {
                    offset_bytes,
                    length_bytes,
                }
            };
            let blocks: Vec<Block> = lengths.into_iter().map(block).collect();
            (blocks, end)
        };
        let row = |rank| place((0..ranks).map(|to| bytes(rank, to)).collect(), 0);
        let (given, _) = row(own);
        let gap = if self.in_place { 0 } else { 5 };
        let (taken, end) = place((0..ranks).map(|from| bytes(from, own)).collect(), gap);
        let data = |rank: usize, end: usize| self.data(rank, end + 8)[..end].to_vec();
        let whole = data(own, row(own).1);
        let mut recv = if self.in_place {
            whole.clone()
        } else {
            vec![0xEE; end]
        };
        let mut expected = recv.clone();
        for (from, to) in taken.iter().enumerate() {
            let (blocks, end) = row(from);
            let (at, length) = (blocks[own].offset_bytes, to.length_bytes);
            let source = data(from, end);
            expected[to.offset_bytes..][..length].copy_from_slice(&source[at..][..length]);
        }
        let send = (!self.in_place).then(|| BytesView::from_slice(&whole));
        let lengths = Lengths {
            given: &given,
            taken: &taken,
        };
        let terms = Terms {
            tries: self.tries(own),
            most_staged_bytes: self.most_staged_bytes(),
        };
        let buffer = BytesViewMut::from_slice(&mut recv);
        let outcome = direct.alltoall_of_lengths(wait, send, buffer, lengths, terms);
        let longest = |rank: usize| {
            let each = (0..ranks).map(|other| bytes(rank, other).max(bytes(other, rank)));
            each.max().unwrap_or(0)
        };
        let gives = |rank: usize| (0..ranks).any(|to| bytes(rank, to) > 0);
        let shows = |rank| !gives(rank) || (self.tries(rank) && self.hides != Some(rank));
        let is_long = (0..ranks).any(|rank| longest(rank) > self.most_staged_bytes());
        if is_long && !(0..ranks).all(shows) {
            assert_eq!(outcome, Err(Fault::Refused), "{self:?} on rank {own}");
            expected = if self.in_place {
                whole
            } else {
                vec![0xEE; end]
            };
        } else {
            assert_eq!(outcome, Ok(()), "{self:?} on rank {own}");
        }
        assert!(recv == expected, "{self:?} on rank {own}");
    }

    // structure: allow function-length because each call has its own arm
    fn make(&self, team: &mut Team, wait: &mut dyn Wait) {
        let (own, ranks, length) = (team.rank(), team.ranks(), self.length_bytes);
        let mut reach = OneProcess::new(self.row_bytes, self.hides != Some(own), ranks);
        let mut direct = Direct::new(team, &mut reach);
        if let What::Alltoallv = self.what {
            return self.alltoallv(&mut direct, wait, own, ranks);
        }
        let block = |data: Vec<u8>, at: usize| data[at * length..(at + 1) * length].to_vec();
        let (whole, all) = (self.data(own, length), self.data(own, length * ranks));
        let mut recv = vec![0xEE; length * ranks];
        let is_root = own == self.root;
        let each = |of: &dyn Fn(usize) -> Vec<u8>| (0..ranks).flat_map(of).collect::<Vec<u8>>();
        let view = BytesView::from_slice;
        let (outcome, expected) = match self.what {
            What::Bcast => {
                recv.truncate(length);
                if is_root {
                    recv.copy_from_slice(&whole);
                }
                let buffer = BytesViewMut::from_slice(&mut recv);
                let outcome = direct.bcast(wait, buffer, length, self.root);
                (outcome, self.data(self.root, length))
            }
            What::Scatter => {
                recv.truncate(length);
                let buffer = BytesViewMut::from_slice(&mut recv);
                let outcome = direct.scatter(wait, view(&all), Some(buffer), length, self.root);
                (outcome, block(self.data(self.root, length * ranks), own))
            }
            What::Gather => {
                let buffer = BytesViewMut::from_slice(&mut recv);
                let outcome = direct.gather(wait, Some(view(&whole)), buffer, length, self.root);
                let expected = match is_root {
                    true => each(&|rank| self.data(rank, length)),
                    false => vec![0xEE; length * ranks],
                };
                (outcome, expected)
            }
            What::Allgather => {
                if self.in_place {
                    recv[own * length..(own + 1) * length].copy_from_slice(&whole);
                }
                let send = (!self.in_place).then(|| view(&whole));
                let buffer = BytesViewMut::from_slice(&mut recv);
                let outcome = direct.allgather(wait, send, buffer, Blocks::Even(length));
                (outcome, each(&|rank| self.data(rank, length)))
            }
            What::Allgatherv => {
                let blocks = self.blocks(ranks);
                let (at, bytes) = (blocks[own].offset_bytes, blocks[own].length_bytes);
                recv = vec![0xEE; length * ranks * 2];
                if self.in_place {
                    recv[at..at + bytes].copy_from_slice(&whole[..bytes]);
                }
                let send = (!self.in_place).then(|| view(&whole[..bytes]));
                let buffer = BytesViewMut::from_slice(&mut recv);
                let outcome = direct.allgather(wait, send, buffer, Blocks::Uneven(&blocks));
                let mut expected = vec![0xEE; length * ranks * 2];
                for (rank, block) in blocks.iter().enumerate() {
                    let (at, bytes) = (block.offset_bytes, block.length_bytes);
                    let given = self.data(rank, length);
                    expected[at..at + bytes].copy_from_slice(&given[..bytes]);
                }
                (outcome, expected)
            }
            What::Alltoall => {
                let send = (!self.in_place).then(|| view(&all));
                let buffer = BytesViewMut::from_slice(&mut recv);
                let outcome = direct.alltoall(wait, send, buffer, length);
                let from = |rank| block(self.data(rank, length * ranks), own);
                (outcome, each(&from))
            }
            What::Alltoallv | What::Reduce | What::Allreduce => {
                recv.truncate(length);
                if self.in_place {
                    recv.copy_from_slice(&whole);
                }
                let send = (!self.in_place).then(|| view(&whole));
                let before = recv.clone();
                let buffer = BytesViewMut::from_slice(&mut recv);
                let outcome = match self.what {
                    What::Reduce => direct.reduce(wait, send, buffer, reduction(), self.root),
                    _ => direct.allreduce(wait, send, buffer, reduction()),
                };
                assert_eq!(direct.has_read_in_place(), self.hides.is_none());
                let gets = is_root || matches!(self.what, What::Allreduce);
                (outcome, if gets { self.sum(ranks) } else { before })
            }
        };
        if self.is_refused(ranks) {
            assert_eq!(outcome, Err(Fault::Refused), "{self:?} on rank {own}");
        } else {
            assert_eq!(outcome, Ok(()), "{self:?} on rank {own}");
            assert!(recv == expected, "{self:?} on rank {own}");
        }
    }

    /// Who gives nothing may hide it.
    fn is_refused(&self, ranks: usize) -> bool {
        match self.what {
            What::Bcast | What::Scatter => self.hides == Some(self.root),
            What::Gather => self.hides.is_some_and(|rank| rank != self.root),
            What::Allgather => self.hides.is_some(),
            // Who gives nothing has nothing to show.
            What::Allgatherv => {
                let blocks = self.blocks(ranks);
                self.hides.is_some_and(|rank| blocks[rank].length_bytes > 0)
            }
            What::Alltoall => self.hides.is_some() || (self.in_place && ranks > 0),
            What::Alltoallv | What::Reduce | What::Allreduce => false,
        }
    }
}

fn reduction() -> Reduction {
    Reduction::new(Element::F64, Operation::Sum).expect("has a meaning")
}

fn teams(ranks: usize) {
    let asked = std::env::var("WEFT_SEED").ok();
    let seed = asked
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    println!("WEFT_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let cases: Vec<_> = (0..CALLS).map(|_| Case::new(&mut rng, ranks)).collect();
    run(&Shape::flat(ranks, true), |team, wait| {
        cases.iter().for_each(|case| case.make(team, wait));
        // What was refused has left the team as it was.
        team.barrier(wait).expect("barrier");
    });
}

#[test]
fn two_ranks_read_in_place_what_the_model_says() {
    teams(2);
}

#[test]
fn three_ranks_read_in_place_what_the_model_says() {
    teams(3);
}

#[test]
#[cfg_attr(miri, ignore = "many threads take Miri minutes")]
fn eleven_ranks_read_in_place_what_the_model_says() {
    teams(11);
}
