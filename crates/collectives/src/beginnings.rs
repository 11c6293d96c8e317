// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a rank puts the beginnings of its blocks in the first step of an alltoall whose lengths
//! only some ranks know (docs/collectives.md, clause 4.8). Used by uneven.rs; calls spreading.rs.
//!
//! Short blocks lie close together, so that a communicator with short calls takes few pages.

use weft_memory::BytesView;

use crate::blocks::Chunks;
use crate::exchange::{Exchange, Inline};
use crate::layout::INLINE_BYTES;
use crate::spreading::{self, Spreading};

/// From one block to the next where they lie close together. Chosen: a line of a cache, and the
/// blocks for 64 ranks fill a page.
const CLOSE_BYTES: usize = 64;

/// A rank's choice, which the others hear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    /// In the staging, each in its full share.
    Shares,
    /// In the staging, close together: the whole blocks.
    Close,
    /// In the flag, behind the words of this length: the whole blocks.
    Flag(usize),
}

impl Room {
    /// What suits blocks of up to `longest_bytes`, with so many bytes of the flag taken.
    pub(crate) fn of(exchange: &Exchange, longest_bytes: usize, flag_bytes: usize) -> Self {
        let rooms = [Self::Flag(flag_bytes), Self::Close];
        let mut fitting = rooms.into_iter();
        let room = fitting.find(|room| longest_bytes <= room.block_bytes(exchange));
        room.unwrap_or(Self::Shares)
    }

    /// Bytes from one block to the next.
    fn block_bytes(self, exchange: &Exchange) -> usize {
        let shares_bytes = spreading::beginnings(exchange).chunk_bytes;
        let others = (exchange.ranks() - 1).max(1);
        match self {
            Self::Shares => shares_bytes,
            Self::Close => CLOSE_BYTES.min(shares_bytes),
            Self::Flag(flag_bytes) => (INLINE_BYTES - flag_bytes) / others,
        }
    }

    fn chunks(self, exchange: &Exchange) -> Chunks {
        let block_bytes = self.block_bytes(exchange).max(1);
        Chunks::new(block_bytes, block_bytes)
    }

    /// Publishes `words`, and the beginnings of this rank's blocks in this room.
    pub(crate) fn publish(
        self,
        exchange: &mut Exchange,
        step: u64,
        spreading: &mut Spreading<'_>,
        words: BytesView<'_>,
    ) {
        spreading.chunks = self.chunks(exchange);
        let Self::Flag(flag_bytes) = self else {
            spreading.stage(exchange, 0, step);
            return exchange.publish_inline(step, words);
        };
        let mut all = Inline::EMPTY;
        all.view_mut(flag_bytes).fill(0, words);
        let data_bytes = spreading.published_bytes(exchange.ranks());
        let mut target = all.view_mut(INLINE_BYTES);
        spreading.put(exchange, 0, &mut target.part(flag_bytes, data_bytes));
        exchange.publish_inline(step, all.view(flag_bytes + data_bytes));
    }

    /// Takes the beginning of the block that `rank`, which has chosen this room, gives to us.
    pub(crate) fn take(
        self,
        exchange: &Exchange,
        rank: usize,
        step: u64,
        spreading: &mut Spreading<'_>,
    ) {
        spreading.chunks = self.chunks(exchange);
        let Self::Flag(flag_bytes) = self else {
            return spreading.take_staged(exchange, rank, 0, step);
        };
        let all = exchange.inline(rank, step, INLINE_BYTES);
        let (_, data) = all.view(INLINE_BYTES).split_at(flag_bytes);
        spreading.take_from(exchange.rank(), rank, 0, data);
    }
}
