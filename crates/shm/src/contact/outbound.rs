// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Our lane in a remote's region: what we send goes through it.

use std::ops::Range;

use weft_memory::{Mapping, UserBuffer};
use weft_ring::layout::{LANE_BYTES, PAGE_BYTES, lane_offset};
use weft_ring::{Consumer, Full, Pool, Producer};

use crate::protocol::cell::Carrier;

/// Payload that counts as long.
const LONG_BYTES: usize = 2048;

/// Payload from here on counts too, by a sixteenth unless the lane has its pages. Measured: a
/// stream of such messages is faster in a wide lane by a seventh to a third, which pays for the
/// pages of one after about 8 MiB (docs/lab/2026-11-21-wide-lanes.md).
pub(crate) const MEDIUM_BYTES: usize = 256;

/// Payload that goes in a chunk if there is one. Measured: from here on two processes that answer
/// each other gain by it (docs/lab/2026-11-22-chunks.md).
const CHUNK_FROM_BYTES: usize = 1024;

/// Long payload after which a lane is made wide. Chosen: a quarter of the memory that this costs
/// the receiver, some tens of messages.
pub(crate) const WIDEN_AFTER_BYTES: u64 = 512 << 10;

/// Wide lanes of one sender. Measured: with more of them, or where ranks share cores, the lanes
/// together exceed the cache that they are meant for, and their pages cost more than they bring.
pub(crate) const WIDE_LANES: u32 = 2;

/// How much of a lane's data area is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Width {
    /// The first part of it; so many bytes of long payload went through it.
    Narrow(u64),
    /// All of it, and the chunks.
    Wide,
    /// The first part of it for ever: no other pages are reserved.
    Fixed,
}

/// Our lane in a remote's region.
#[derive(Debug)]
pub(crate) struct Outbound {
    producer: Producer,
    /// Its chunks.
    pool: Pool,
    mapping: Mapping,
    slot: usize,
    width: Width,
    /// The pages that it uses when it is wide have been made.
    is_warm: bool,
}

impl Outbound {
    /// The lane of our slot. `None` if it is none.
    pub(super) fn new(mapping: Mapping, slot: usize) -> Option<Self> {
        Some(Self {
            producer: Producer::attach(&mapping, slot)?,
            pool: Pool::attach(&mapping, slot)?,
            mapping,
            slot,
            width: Width::Narrow(0),
            is_warm: false,
        })
    }

    /// Our slot in the remote's region.
    #[inline(always)]
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    #[inline(always)]
    pub(crate) fn producer(&self) -> &Producer {
        &self.producer
    }

    #[inline(always)]
    pub(crate) fn producer_mut(&mut self) -> &mut Producer {
        &mut self.producer
    }

    /// The chunks of our lane.
    #[inline(always)]
    pub(crate) fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// Publishes a cell with these bytes of a payload: in a chunk if there is one, else in the data
    /// area.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        back: Option<&mut Pool>,
        carrier: Carrier,
        payload: &UserBuffer,
        bytes: Range<usize>,
    ) -> Result<(), Full> {
        let (head, words) = carrier.encode();
        if bytes.len() >= CHUNK_FROM_BYTES
            && let Some(chunk) = Pool::pick(&mut self.pool, back)
        {
            return self.producer.push_chunk(head, words, chunk, payload, bytes);
        }
        self.producer.push_data(head, words, payload, bytes)
    }

    /// What lies in our lane and was not taken, and the chunks that it names.
    pub(crate) fn untaken(&mut self) -> (Consumer, &Pool) {
        (Consumer::of_untaken(&mut self.producer), &self.pool)
    }

    /// Our lane never becomes wide: the pages for that are not reserved.
    pub(super) fn stay_narrow(&mut self) {
        self.width = Width::Fixed;
    }

    /// Counts payload of at least [`MEDIUM_BYTES`] towards a wide lane; true if it is time for one.
    pub(crate) fn note_long(&mut self, length_bytes: usize) -> bool {
        let Width::Narrow(long_bytes) = &mut self.width else {
            return false;
        };
        let weight_bytes = if length_bytes < LONG_BYTES && !self.is_warm {
            length_bytes / 16
        } else {
            length_bytes
        };
        *long_bytes = long_bytes.saturating_add(weight_bytes as u64);
        *long_bytes > WIDEN_AFTER_BYTES
    }

    /// Has our lane go round its whole data area, and use its chunks. Slow path.
    pub(crate) fn widen(&mut self) {
        self.width = Width::Wide;
        self.producer.widen();
        // At once, and not in each of the messages of the first lap.
        self.warm();
        self.pool.open();
    }

    /// Has the pages made that our lane uses when it is wide. Slow path: about a millisecond for
    /// each MiB.
    pub(super) fn warm(&mut self) {
        if !std::mem::replace(&mut self.is_warm, true) {
            warm_lane(&self.mapping, self.slot);
        }
    }

    /// Whether our lane goes round its whole data area, and its chunks are in use.
    pub(crate) fn is_wide(&self) -> bool {
        self.width == Width::Wide
    }

    /// Whether our lane is as wide as it gets.
    pub(crate) fn is_full_width(&self) -> bool {
        !matches!(self.width, Width::Narrow(_))
    }
}

#[cfg(test)]
impl Outbound {
    /// Whether the pages have been made that it uses when it is wide.
    pub(crate) fn is_warm(&self) -> bool {
        self.is_warm
    }
}

/// Has the pages of a wide lane made.
pub(super) fn warm_lane(mapping: &Mapping, slot: usize) {
    let wide = lane_offset(slot) + PAGE_BYTES;
    mapping.populate(wide, LANE_BYTES - PAGE_BYTES);
}
