// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The accesses, and the contents that they must leave in the window and in the local buffers.
//!
//! Called by one_sided. Put and get carry pattern's messages. The atomic accesses add or swap small
//! whole numbers, which change from one iteration to the next.

use crate::collective::sums::{Sum, encode};
use crate::pattern::{self, Message};
use weft_mpi::{Datatype, Operation, Result, There, Window};

/// An access to the other rank's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// MPI_Put.
    Put,
    /// MPI_Get.
    Get,
    /// MPI_Accumulate with MPI_SUM.
    Accumulate,
    /// MPI_Get_accumulate with MPI_SUM.
    GetAccumulate,
    /// MPI_Fetch_and_op with MPI_SUM; one element.
    FetchAndOp,
    /// MPI_Compare_and_swap; one element.
    CompareAndSwap,
}

impl Access {
    /// Whether it is of one element, so that there are no message sizes.
    pub fn is_single(self) -> bool {
        matches!(self, Self::FetchAndOp | Self::CompareAndSwap)
    }

    /// Whether it computes, so that MPI_CHAR has no meaning for it.
    pub fn computes(self) -> bool {
        !matches!(self, Self::Put | Self::Get)
    }
}

/// What is accessed, by whom.
#[derive(Clone, Copy, Debug)]
pub struct Contents {
    /// The access.
    pub access: Access,
    /// Type of the elements.
    pub kind: Datatype,
    /// This rank.
    pub rank: usize,
    /// Size of one access.
    pub size_bytes: usize,
    /// Accesses side by side in the window.
    pub depth: usize,
}

/// What rank 0 and rank 1 add: term(.., this) on top of what was there, which is term(.., 0).
const ADDED: usize = 5;

impl Contents {
    /// All accesses of one iteration.
    ///
    /// # Errors
    /// What MPI reports.
    #[inline]
    pub fn access_all(&self, window: &mut Window<'_>, other: i32) -> Result<()> {
        for slot in 0..self.depth {
            let part = slot * self.size_bytes..(slot + 1) * self.size_bytes;
            let there = There {
                rank: other,
                place: part.start,
            };
            let how = (self.kind, Operation::Sum);
            match self.access {
                Access::Put => window.put(part, self.kind, there)?,
                Access::Get => window.get(part, self.kind, there)?,
                Access::Accumulate => window.accumulate(part, how, there)?,
                Access::GetAccumulate => window.get_accumulate(part, how, there)?,
                Access::FetchAndOp => window.fetch_and_op(how, there)?,
                Access::CompareAndSwap => window.compare_and_swap(self.kind, there)?,
            }
        }
        Ok(())
    }

    /// Sets the buffers of a rank that accesses, and the window of one that is accessed.
    pub fn prepare(
        &self,
        window: &mut Window<'_>,
        iteration: usize,
        accesses: bool,
        is_accessed: bool,
    ) {
        let sum = self.sum(iteration);
        for slot in 0..self.depth {
            let place = slot * self.size_bytes..(slot + 1) * self.size_bytes;
            let own = self.message(iteration, self.rank, slot);
            let others = self.message(iteration, 1 - self.rank, slot);
            if accesses {
                let outgoing = &mut window.outgoing()[place.clone()];
                match self.access.computes() {
                    true => sum.fill(outgoing, 0, |element| sum.term(element, ADDED)),
                    false => pattern::fill(outgoing, own),
                }
                pattern::spoil(&mut window.incoming()[place.clone()], others);
            }
            if is_accessed {
                let mut bytes = vec![0; self.size_bytes];
                match self.access {
                    Access::Put => pattern::spoil(&mut bytes, others),
                    Access::Get => pattern::fill(&mut bytes, own),
                    _ => sum.fill(&mut bytes, 0, |element| sum.term(element, 0)),
                }
                window.own().write(place.start, &bytes);
            }
        }
        if accesses && self.access == Access::CompareAndSwap {
            let (compared, length) = encode(self.compared(iteration), self.kind);
            window.compared()[..length].copy_from_slice(&compared[..length]);
        }
    }

    /// Wrong bytes in the buffers of a rank that accessed and in the window of one that was
    /// accessed.
    pub fn mismatches(
        &self,
        window: &mut Window<'_>,
        iteration: usize,
        accesses: bool,
        is_accessed: bool,
    ) -> u64 {
        let sum = self.sum(iteration);
        let before = |element: usize| sum.term(element, 0);
        let added = |element: usize| sum.term(element, ADDED);
        let mut wrong = 0;
        for slot in 0..self.depth {
            let place = slot * self.size_bytes..(slot + 1) * self.size_bytes;
            let others = self.message(iteration, 1 - self.rank, slot);
            if accesses {
                let incoming = &window.incoming()[place.clone()];
                wrong += match self.access {
                    Access::Put | Access::Accumulate => 0,
                    Access::Get => pattern::mismatches(incoming, others),
                    _ => sum.mismatches(incoming, 0, before),
                };
            }
            if is_accessed {
                let mut bytes = vec![0; self.size_bytes];
                window.own().read(place.start, &mut bytes);
                wrong += match self.access {
                    Access::Put => pattern::mismatches(&bytes, others),
                    Access::Get => 0,
                    Access::CompareAndSwap if self.swaps(iteration) => {
                        sum.mismatches(&bytes, 0, added)
                    }
                    Access::CompareAndSwap => sum.mismatches(&bytes, 0, before),
                    _ => sum.mismatches(&bytes, 0, |element| before(element) + added(element)),
                };
            }
        }
        wrong
    }

    /// Every third comparison fails, so that a swap without comparing is found.
    fn swaps(&self, iteration: usize) -> bool {
        iteration % 3 != 2
    }

    fn compared(&self, iteration: usize) -> usize {
        let there = self.sum(iteration).term(0, 0);
        there + usize::from(!self.swaps(iteration))
    }

    fn sum(&self, iteration: usize) -> Sum {
        Sum {
            kind: self.kind,
            iteration,
            size_bytes: self.size_bytes,
        }
    }

    fn message(&self, iteration: usize, sender: usize, slot: usize) -> Message {
        Message {
            size_bytes: self.size_bytes,
            iteration,
            sender,
            receiver: slot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENTS: Contents = Contents {
        access: Access::CompareAndSwap,
        kind: Datatype::Long,
        rank: 0,
        size_bytes: 8,
        depth: 1,
    };

    #[test]
    fn every_third_comparison_is_with_another_number() {
        for iteration in 0..30 {
            let there = CONTENTS.sum(iteration).term(0, 0);
            assert_eq!(
                CONTENTS.compared(iteration) == there,
                CONTENTS.swaps(iteration)
            );
        }
        assert_eq!((0..30).filter(|i| CONTENTS.swaps(*i)).count(), 20);
    }
}
