// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a receive asks for, and the mask and hash that make asking cheap.
//!
//! Used by `posted` and `unexpected`; calls nothing. The rule of comparison is libfabric's
//! (fi_tagged(3)): a tag matches when it equals the wanted tag in every bit that `ignore` leaves
//! clear. MPI libraries post all receives with one or a few constant ignore masks, so the mask
//! names a class, and inside a class matching is equality of what the mask leaves: a hash lookup.

use weft_contract::RemoteId;

/// What a receive asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// The one remote process a message may come from; `None` takes messages from any.
    pub source: Option<RemoteId>,
    /// The tag wanted; bits that `ignore` sets have no meaning here.
    pub tag: u64,
    /// Bits set here are not compared.
    pub ignore: u64,
}

impl Want {
    /// Whether a message from `source` with `tag` satisfies this want. Fast path.
    #[inline]
    pub fn matches(&self, source: RemoteId, tag: u64) -> bool {
        let mask = Mask::of(*self);
        mask.same(
            mask.key(*self),
            Key {
                source: source.0,
                tag,
            },
        )
    }
}

/// A source and a tag side by side; the source is without meaning where the mask does not compare
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Key {
    pub source: u32,
    pub tag: u64,
}

/// Which parts of a key are compared: wants of one mask differ only in the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mask {
    pub compared_tag_bits: u64,
    pub compared_source_bits: u32,
}

// Chosen by search: of eight million random triples of odd numbers the one whose worst mean probe
// (2.0 slots, in tables at most half full) over tags of every power of two as stride, many sources
// of one tag, and grids of sources and tags is shortest.
const TAG_LOW_MULTIPLIER: u64 = 0xfa22_8872_28c4_e1cf;
const TAG_HIGH_MULTIPLIER: u64 = 0x1acd_9103_8449_8cc7;
const SOURCE_MULTIPLIER: u64 = 0x58be_3c01_2d88_33b9;

impl Mask {
    /// The mask of a want.
    #[inline]
    pub fn of(want: Want) -> Self {
        Mask {
            compared_tag_bits: !want.ignore,
            compared_source_bits: if want.source.is_some() { u32::MAX } else { 0 },
        }
    }

    /// The key of a want.
    #[inline]
    pub fn key(self, want: Want) -> Key {
        Key {
            source: want.source.map_or(0, |source| source.0),
            tag: want.tag,
        }
    }

    /// Turns a key of this mask back into the want it came from.
    #[inline]
    pub fn want(self, key: Key) -> Want {
        Want {
            source: self.is_directed().then_some(RemoteId(key.source)),
            tag: key.tag,
            ignore: !self.compared_tag_bits,
        }
    }

    /// Whether wants of this mask name their source.
    #[inline]
    pub fn is_directed(self) -> bool {
        self.compared_source_bits != 0
    }

    /// Whether two keys are equal in what this mask compares.
    #[inline]
    pub fn same(self, left: Key, right: Key) -> bool {
        let tags = (left.tag ^ right.tag) & self.compared_tag_bits;
        let sources = (left.source ^ right.source) & self.compared_source_bits;
        tags | u64::from(sources) == 0
    }

    /// The hash of a key under this mask, its best bits highest. Keys that are the `same` hash the
    /// same; `salt` tells the masks of one table apart.
    ///
    /// A sum of products has no mixing beyond one multiplication, and that is meant: keys in
    /// sequence then lie in a few evenly moving streams, which share cache lines, where a better
    /// mixed hash would miss the cache each time.
    #[inline]
    pub fn hash(self, key: Key, salt: u64) -> u32 {
        let tag = key.tag & self.compared_tag_bits;
        let low = u64::from(tag as u32).wrapping_mul(TAG_LOW_MULTIPLIER);
        let high = (tag >> 32).wrapping_mul(TAG_HIGH_MULTIPLIER);
        let source =
            u64::from(key.source & self.compared_source_bits).wrapping_mul(SOURCE_MULTIPLIER);
        (low.wrapping_add(high)
            .wrapping_add(source)
            .wrapping_add(salt)
            >> 32) as u32
    }
}
