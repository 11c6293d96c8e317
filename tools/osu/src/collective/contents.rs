// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The input of each collective, and the output that it must give, byte by byte.
//!
//! Called by the exercises when validating. Collectives that move data carry pattern's messages,
//! whose contents depend on size, iteration, sender and receiver; reductions carry sums.

use super::neighbours::Grid;
use super::sums::Sum;
use crate::pattern::{self, Message};
use weft_mpi::{Collective, Communicator, Datatype, Prepared};

/// What is needed to know the contents of one rank.
pub struct Contents {
    which: Collective,
    kind: Datatype,
    rank: usize,
    ranks: usize,
    neighbours: Vec<usize>,
    size_bytes: usize,
}

/// The parts of one side, in their order.
type Parts = Vec<Message>;

impl Contents {
    /// Of this rank.
    pub fn new(which: Collective, kind: Datatype, world: &Communicator<'_>, grid: Grid) -> Self {
        Self {
            which,
            kind,
            rank: world.rank(),
            ranks: world.size(),
            neighbours: grid.of(world.rank(), world.size()),
            size_bytes: 0,
        }
    }

    /// Chooses the size.
    pub fn resize(&mut self, size_bytes: usize) {
        self.size_bytes = size_bytes;
    }

    /// Fills what is given, and spoils what is to be overwritten.
    pub fn prepare(&self, prepared: &mut Prepared<'_>, iteration: usize, root: usize) {
        if self.which.reduces() {
            let sum = self.sum(iteration);
            sum.fill(prepared.given(), 0, |element| sum.term(element, self.rank));
            prepared.taken().fill(0xee);
            return;
        }
        let (given, taken) = self.messages(iteration, root);
        for_parts(prepared.given(), &given, |bytes, message| {
            pattern::fill(bytes, message)
        });
        let is_source = self.which == Collective::Bcast && self.rank == root;
        for_parts(prepared.taken(), &taken, |bytes, message| match is_source {
            true => pattern::fill(bytes, message),
            false => pattern::spoil(bytes, message),
        });
    }

    /// How many bytes of what was taken are wrong.
    pub fn mismatches(&self, prepared: &mut Prepared<'_>, iteration: usize, root: usize) -> u64 {
        if self.which.reduces() {
            if self.which == Collective::Reduce && self.rank != root {
                return 0;
            }
            let sum = self.sum(iteration);
            let first = self.first_taken();
            return sum.mismatches(prepared.taken(), first, |element| {
                sum.total(element, self.ranks)
            });
        }
        let (_, taken) = self.messages(iteration, root);
        let mut wrong = 0;
        for_parts(prepared.taken(), &taken, |bytes, message| {
            wrong += pattern::mismatches(bytes, message);
        });
        wrong
    }

    fn sum(&self, iteration: usize) -> Sum {
        Sum {
            kind: self.kind,
            iteration,
            size_bytes: self.size_bytes,
        }
    }

    /// The first element that this rank takes of a reduction.
    fn first_taken(&self) -> usize {
        if !matches!(
            self.which,
            Collective::ReduceScatter | Collective::ReduceScatterBlock
        ) {
            return 0;
        }
        let elements = self.size_bytes / self.kind.size_bytes();
        let share = |rank| self.which.share(elements, rank, self.ranks);
        (0..self.rank).map(share).sum()
    }

    /// What this rank gives and takes. Sides that MPI does not look at, and those nothing is known
    /// about, are empty.
    fn messages(&self, iteration: usize, root: usize) -> (Parts, Parts) {
        let (rank, is_root) = (self.rank, self.rank == root);
        let from_to = |sender: usize, receiver: usize| Message {
            size_bytes: self.size_bytes,
            iteration,
            sender,
            receiver,
        };
        let one = |message: Message| vec![message];
        let only_root = |parts: &dyn Fn(usize) -> Message| -> Parts {
            if is_root {
                (0..self.ranks).map(parts).collect()
            } else {
                Vec::new()
            }
        };
        let all =
            |part: &dyn Fn(usize) -> Message| -> Parts { (0..self.ranks).map(part).collect() };
        match self.which {
            Collective::Bcast => (Vec::new(), one(from_to(root, 0))),
            Collective::Gather | Collective::Gatherv => (
                one(from_to(rank, root)),
                only_root(&|sender| from_to(sender, root)),
            ),
            Collective::Scatter | Collective::Scatterv => (
                only_root(&|receiver| from_to(root, receiver)),
                one(from_to(root, rank)),
            ),
            Collective::Allgather | Collective::Allgatherv => {
                (one(from_to(rank, 0)), all(&|sender| from_to(sender, 0)))
            }
            Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw => (
                all(&|receiver| from_to(rank, receiver)),
                all(&|sender| from_to(sender, rank)),
            ),
            Collective::NeighborAllgather | Collective::NeighborAllgatherv => {
                let taken = self.neighbours.iter().map(|sender| from_to(*sender, 0));
                (one(from_to(rank, 0)), taken.collect())
            }
            Collective::NeighborAlltoall
            | Collective::NeighborAlltoallv
            | Collective::NeighborAlltoallw => self.between_neighbours(&from_to),
            _ => (Vec::new(), Vec::new()),
        }
    }

    /// Where a rank is a neighbour several times, the n-th message to it is its n-th from here.
    fn between_neighbours(&self, from_to: &dyn Fn(usize, usize) -> Message) -> (Parts, Parts) {
        let times = |index: usize| {
            let other = self.neighbours[index];
            let before = self.neighbours[..index].iter();
            before.filter(|rank| **rank == other).count()
        };
        let part = |index: usize, gives: bool| {
            let (other, nth) = (self.neighbours[index], times(index) * self.ranks);
            match gives {
                true => from_to(self.rank, other + nth),
                false => from_to(other, self.rank + nth),
            }
        };
        let side = |gives| {
            (0..self.neighbours.len())
                .map(|index| part(index, gives))
                .collect()
        };
        (side(true), side(false))
    }
}

/// Each part's bytes with its message.
fn for_parts(bytes: &mut [u8], parts: &[Message], mut each: impl FnMut(&mut [u8], Message)) {
    for (part, message) in parts.iter().enumerate() {
        let size_bytes = message.size_bytes;
        each(
            &mut bytes[part * size_bytes..(part + 1) * size_bytes],
            *message,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(which: Collective, rank: usize, ranks: usize) -> Contents {
        Contents {
            which,
            kind: Datatype::Int,
            rank,
            ranks,
            neighbours: Grid::default().of(rank, ranks),
            size_bytes: 12,
        }
    }

    /// Every message taken is one that its sender gives, in a place the collective sends from.
    #[test]
    fn what_is_taken_is_what_was_given() {
        for which in Collective::ALL.iter().filter(|which| !which.reduces()) {
            for ranks in 2..6 {
                let root = ranks - 1;
                for rank in 0..ranks {
                    for message in of(*which, rank, ranks).messages(4, root).1 {
                        let sender = of(*which, message.sender, ranks);
                        let (given, taken) = sender.messages(4, root);
                        let source = if *which == Collective::Bcast {
                            taken
                        } else {
                            given
                        };
                        assert!(
                            source.contains(&message),
                            "{which:?}: {message:?} to {rank}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn scattered_reductions_cover_every_element_once() {
        for which in [Collective::ReduceScatter, Collective::ReduceScatterBlock] {
            let contents = |rank| Contents {
                size_bytes: 4 * 10,
                ..of(which, rank, 4)
            };
            let mut next = 0;
            for rank in 0..4 {
                assert_eq!(contents(rank).first_taken(), next);
                next += which.share(10, rank, 4);
            }
            assert_eq!(
                next,
                if which == Collective::ReduceScatter {
                    10
                } else {
                    8
                }
            );
        }
    }
}
