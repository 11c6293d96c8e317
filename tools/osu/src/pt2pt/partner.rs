// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A rank's place in its pair, and the tags of the pair's messages.
//!
//! Called by the other files of pt2pt.

use crate::options::Settings;
use weft_mpi::Communicator;

/// Tag of the messages that are measured (specified by OSU).
pub(super) const DATA_TAG: i32 = 100;
/// Tag of the answer that ends a window (specified by OSU).
pub(super) const ANSWER_TAG: i32 = 101;
/// Length of the answer that ends a window, in bytes (specified by OSU).
pub(super) const ANSWER_BYTES: usize = 4;

/// A rank's place in its pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partner {
    pub(super) rank: usize,
    /// The other rank.
    pub(super) other: usize,
    /// Whether this rank sends first.
    pub(super) leads: bool,
}

impl Partner {
    /// Of two ranks, rank 0 leads.
    pub(super) fn of_two(world: &Communicator<'_>) -> Self {
        Self {
            rank: world.rank(),
            other: 1 - world.rank(),
            leads: world.rank() == 0,
        }
    }

    /// Rank r leads and rank r + pairs follows; `None` for ranks beyond, which only watch.
    pub(super) fn of(world: &Communicator<'_>, settings: &Settings) -> Option<Self> {
        Self::among(
            world.rank(),
            settings.special.pairs.unwrap_or(world.size() / 2),
        )
    }

    fn among(rank: usize, pairs: usize) -> Option<Self> {
        let leads = rank < pairs;
        let other = if leads {
            rank + pairs
        } else {
            rank.wrapping_sub(pairs)
        };
        (rank < 2 * pairs).then_some(Self { rank, other, leads })
    }

    pub(super) fn other_as_target(&self) -> i32 {
        self.other as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_name_each_other_and_one_of_them_leads() {
        for pairs in 1..4 {
            for rank in 0..2 * pairs {
                let partner = Partner::among(rank, pairs).expect("within the pairs");
                let back = Partner::among(partner.other, pairs).expect("within the pairs");
                assert_eq!((back.other, back.leads), (rank, !partner.leads));
            }
            assert_eq!(Partner::among(2 * pairs, pairs), None);
        }
    }
}
