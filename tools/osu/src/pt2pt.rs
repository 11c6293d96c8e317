// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Benchmarks between pairs of ranks: one file each, and the partner, the message and the window that they share.
//!
//! Made by catalogue; the files call timing and weft-mpi.

pub mod bandwidth;
pub mod bidirectional;
pub mod latency;
pub mod message_rate;
pub mod multi_latency;
pub mod persistent;
mod ping_pong;
pub mod processes;
pub mod threads;
mod window;

use crate::options::Settings;
use weft_mpi::Communicator;

/// Tag of the messages that are measured (specified by OSU).
const DATA_TAG: i32 = 100;
/// Tag of the answer that ends a window (specified by OSU).
const ANSWER_TAG: i32 = 101;

/// A rank's place in its pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Partner {
    rank: usize,
    /// The other rank.
    other: usize,
    /// Whether this rank sends first.
    leads: bool,
}

impl Partner {
    /// Of two ranks, rank 0 leads.
    fn of_two(world: &Communicator<'_>) -> Self {
        Self {
            rank: world.rank(),
            other: 1 - world.rank(),
            leads: world.rank() == 0,
        }
    }

    /// Rank r leads and rank r + pairs follows; `None` for ranks beyond, which only watch.
    fn of(world: &Communicator<'_>, settings: &Settings) -> Option<Self> {
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

    fn other_as_target(&self) -> i32 {
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
