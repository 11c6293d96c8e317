// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where each rank's block lies in a buffer. Handed in by callers of team.rs, read by gathering.rs,
//! spreading.rs and reduce_scatter.rs.

use crate::fault::Fault;
use crate::segment::Part;

/// One rank's block in a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// Where it begins.
    pub offset_bytes: usize,
    /// How long it is.
    pub length_bytes: usize,
}

/// The blocks of all ranks in one buffer, in the order of ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocks<'a> {
    /// All have this length, one after the other.
    Even(usize),
    /// Each has its own place and length (the v-forms of MPI).
    Uneven(&'a [Block]),
}

impl Blocks<'_> {
    /// The block of a rank; an empty one if there is none.
    #[inline]
    pub(crate) fn of(&self, rank: usize) -> Part {
        match self {
            Self::Even(length_bytes) => Part {
                offset_bytes: rank * length_bytes,
                length_bytes: *length_bytes,
            },
            Self::Uneven(blocks) => {
                let block = blocks.get(rank).copied().unwrap_or_default();
                Part {
                    offset_bytes: block.offset_bytes,
                    length_bytes: block.length_bytes,
                }
            }
        }
    }

    /// The length of the longest block.
    pub(crate) fn longest_bytes(&self) -> usize {
        match self {
            Self::Even(length_bytes) => *length_bytes,
            Self::Uneven(blocks) => {
                let lengths = blocks.iter().map(|block| block.length_bytes);
                lengths.max().unwrap_or(0)
            }
        }
    }

    /// What goes into a mark: 0 where ranks may name different lengths.
    pub(crate) fn common_bytes(&self) -> usize {
        match self {
            Self::Even(length_bytes) => *length_bytes,
            Self::Uneven(_) => 0,
        }
    }

    /// # Errors
    /// [`Fault::Length`] if a block of one of `ranks` ranks ends behind `given_bytes`.
    pub(crate) fn check(&self, ranks: usize, given_bytes: usize) -> Result<(), Fault> {
        let needed_bytes = match self {
            Self::Even(length_bytes) => ranks.checked_mul(*length_bytes),
            Self::Uneven(blocks) => {
                let full = blocks.iter().filter(|block| block.length_bytes > 0);
                full.map(|block| block.offset_bytes.checked_add(block.length_bytes))
                    .try_fold(0, |most, end| end.map(|end| end.max(most)))
            }
        };
        let needed_bytes = needed_bytes.unwrap_or(usize::MAX);
        if needed_bytes <= given_bytes {
            return Ok(());
        }
        Err(Fault::Length {
            given_bytes,
            needed_bytes,
        })
    }
}

/// How blocks are cut into chunks, a step for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chunks {
    /// Bytes of a chunk of a block; fewer at its end.
    pub(crate) chunk_bytes: usize,
    /// How many there are.
    pub(crate) count: usize,
}

impl Chunks {
    /// Cuts blocks of up to `longest_bytes` so that a chunk has `room_bytes`.
    pub(crate) fn new(longest_bytes: usize, room_bytes: usize) -> Self {
        let chunk_bytes = longest_bytes.clamp(1, room_bytes);
        Self {
            chunk_bytes,
            count: longest_bytes.div_ceil(chunk_bytes),
        }
    }

    /// This chunk of a block; empty behind its end.
    #[inline]
    pub(crate) fn of(&self, block: Part, chunk: usize) -> Part {
        let skipped_bytes = (chunk * self.chunk_bytes).min(block.length_bytes);
        let left_bytes = block.length_bytes - skipped_bytes;
        Part {
            offset_bytes: block.offset_bytes + skipped_bytes,
            length_bytes: left_bytes.min(self.chunk_bytes),
        }
    }
}
