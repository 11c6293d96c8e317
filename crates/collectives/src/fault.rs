// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a collective call fails. Small values without text; whoever shows one makes words of it.

use core::fmt;

use crate::layout::RANK_LIMIT;

/// The waiting rank was told to give up: a rank died, or the job ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped;

/// Why a call failed. After [`Fault::Stopped`], [`Fault::Mismatch`], [`Fault::Unreachable`] and
/// [`Fault::Left`] the team is of no more use: each later call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// [`crate::Wait`] said so.
    Stopped,
    /// This rank is in another call than we are, or in the same one with another root or length.
    Mismatch {
        /// The rank.
        rank: usize,
    },
    /// A rank's data, which it has shown, cannot be read in place.
    Unreachable {
        /// The rank.
        rank: usize,
    },
    /// A rank has refused the call ([`crate::Team::refuse`]); all ranks hear it, and the team is as
    /// before.
    Refused,
    /// This rank has left the call to the MPI because of its length. The others, who named another
    /// length, find it there; the team is of no more use.
    Left {
        /// The rank.
        rank: usize,
    },
    /// The team cannot have so many ranks, or not this one among them.
    Ranks {
        /// Ranks of the team.
        ranks: usize,
        /// The rank that was named.
        rank: usize,
    },
    /// A buffer is shorter than the call needs.
    Length {
        /// Bytes that it has.
        given_bytes: usize,
        /// Bytes that the call needs.
        needed_bytes: usize,
    },
    /// The segment's address is not a multiple of a page.
    Unaligned,
}

impl From<Stopped> for Fault {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => write!(to, "the call was given up, because a rank has ended"),
            Self::Mismatch { rank } => write!(
                to,
                "rank {rank} is in another collective call, has another count, type or root, or \
                 has given up; all ranks must make the same calls in the same order"
            ),
            Self::Unreachable { rank } => write!(
                to,
                "the memory of rank {rank} cannot be mapped; see the limits of this process \
                 (ulimit -v, vm.max_map_count), or use --heap private"
            ),
            Self::Left { rank } => write!(
                to,
                "rank {rank} has named another length, for which the MPI carries out the call"
            ),
            Self::Refused => write!(to, "a rank cannot take part in the call"),
            Self::Ranks { ranks, rank } => write!(
                to,
                "rank {rank} of {ranks} cannot be; ranks are counted from 0, and there are at most \
                 {RANK_LIMIT}"
            ),
            Self::Length {
                given_bytes,
                needed_bytes,
            } => write!(
                to,
                "the buffer has {given_bytes} bytes, and the call needs {needed_bytes}"
            ),
            Self::Unaligned => write!(to, "the segment does not begin with a page"),
        }
    }
}

impl core::error::Error for Fault {}
