// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which collective a call is, in its mark (docs/collectives.md, clause 3). Named by team.rs and
//! other callers of algorithms.

use crate::arithmetic::Reduction;
use crate::blocks::Blocks;

/// Which collective a call is, in a mark. Specified by docs/collectives.md, clause 3.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Barrier = 1,
    Bcast,
    Reduce,
    Allreduce,
    Gather,
    Allgather,
    Scatter,
    Alltoall,
    ReduceScatter,
    Scan,
    Exscan,
    Report,
    /// No call: others that wait for one see that there will be none.
    Abandon,
    /// No call either: all find out whether they are about to leave the same one.
    Agree,
    /// Set for a call whose ranks name lengths of their own.
    Uneven = 0x10,
}

impl Kind {
    /// With a reduction.
    #[inline(always)]
    pub(crate) fn with(self, reduction: Reduction) -> u8 {
        (self as u8).wrapping_add(reduction.code().wrapping_mul(32))
    }
}

/// The kind of a call with blocks.
pub(crate) fn with_lengths(kind: Kind, blocks: Blocks<'_>) -> u8 {
    match blocks {
        Blocks::Uneven(_) => kind as u8 | Kind::Uneven as u8,
        Blocks::Even(_) => kind as u8,
    }
}
