// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Posted receives in a hash table: the earliest that matches a message, in constant time for each
//! mask in use.
//!
//! Used by `posted` for all but the latest receives; calls `slab` (the receives), `table` (mask and
//! key to the list of receives with that mask and key, in order of posting), `masks` and `sources`.
//! An arriving message looks once for each mask that has receives posted, and the earliest of the
//! heads it finds is the match, because all receives of one list match the same messages.

use crate::chain::{HasLink, Link, NONE};
use crate::masks::Masks;
use crate::slab::{Id, Slab};
use crate::sources::SourceCounts;
use crate::table::{Place, Table};
use crate::want::{Key, Mask, Want};

/// What the table needs to know of a receive.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    key: Key,
    mask: u32,
    link: Link,
}

impl HasLink for Entry {
    #[inline]
    fn link(&self) -> Link {
        self.link
    }
    #[inline]
    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// Where a receive was found: its index in the slab, and its list's place in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    index: u32,
    place: Place,
}

/// The receives.
#[derive(Debug)]
pub(crate) struct Hashed<R> {
    slab: Slab<Entry, R>,
    table: Table,
    masks: Masks,
    sources: SourceCounts,
}

impl<R> Hashed<R> {
    pub fn new() -> Self {
        Hashed {
            slab: Slab::new(),
            table: Table::new(),
            masks: Masks::default(),
            sources: SourceCounts::default(),
        }
    }

    #[inline(always)]
    pub fn count(&self) -> usize {
        self.slab.count()
    }

    /// How many receives name `source`.
    pub fn directed_count(&self, source: u32) -> u32 {
        self.sources.get(source)
    }

    /// Adds a receive behind all that are there.
    pub fn push(&mut self, mask: Mask, key: Key, sequence: u64, receive: R) {
        let number = self.masks.add(mask);
        if mask.is_directed() {
            self.sources.add(key.source);
        }
        let entry = Entry {
            key,
            mask: number,
            link: Link::default(),
        };
        let index = self.slab.insert_as(sequence, entry, receive);
        let hash = self.masks.hash(number, key);
        self.table.reserve();
        let place = self.probe(hash, number, key);
        self.table.append(place, hash, &mut self.slab, index);
    }

    #[inline]
    fn probe(&self, hash: u32, number: u32, key: Key) -> Place {
        let mask = self.masks.get(number);
        self.table.probe(hash, |index| {
            let entry = self.slab.head(index);
            entry.mask == number && mask.same(entry.key, key)
        })
    }

    /// The earliest receive that a message with this key matches.
    #[inline(never)]
    pub fn find(&self, key: Key) -> Option<Spot> {
        let mut earliest: Option<Spot> = None;
        for number in self.masks.in_use() {
            let place = self.probe(self.masks.hash(number, key), number, key);
            if let Place::Found { head: index, .. } = place {
                let is_later = earliest.is_some_and(|other| {
                    self.slab.sequence(other.index) < self.slab.sequence(index)
                });
                if !is_later {
                    earliest = Some(Spot { index, place });
                }
            }
        }
        earliest
    }

    /// The receive that `id` names; `None` when it has left. Linear if it was named before it was
    /// here.
    pub fn find_id(&self, id: Id) -> Option<Spot> {
        let index = if id.index == NONE {
            let mut all = self.slab.iter();
            all.find(|&(_, sequence, ..)| sequence == id.sequence)?.0
        } else {
            self.slab.index(id)?
        };
        let Entry { key, mask, .. } = *self.slab.head(index);
        let place = self.probe(self.masks.hash(mask, key), mask, key);
        Some(Spot { index, place })
    }

    /// The earliest receive that `select`s. Linear.
    pub fn find_where(&self, mut select: impl FnMut(&R) -> bool) -> Option<Id> {
        let mut earliest: Option<Id> = None;
        for (index, sequence, _, receive) in self.slab.iter() {
            if earliest.is_none_or(|other| sequence < other.sequence) && select(receive) {
                earliest = Some(Id { index, sequence });
            }
        }
        earliest
    }

    /// The receives that name `source`, in no particular order. Linear.
    pub fn directed(&self, source: u32) -> impl Iterator<Item = Id> {
        let names = move |entry: &Entry| {
            entry.key.source == source && self.masks.get(entry.mask).is_directed()
        };
        let all = self.slab.iter();
        all.filter_map(move |(index, sequence, entry, _)| {
            names(entry).then_some(Id { index, sequence })
        })
    }

    #[inline]
    pub fn id(&self, spot: Spot) -> Id {
        self.slab.id(spot.index)
    }

    #[inline(always)]
    pub fn receive_mut(&mut self, spot: Spot) -> Option<&mut R> {
        self.slab.body_mut(spot.index)
    }

    pub fn want(&self, spot: Spot) -> Want {
        let entry = self.slab.head(spot.index);
        self.masks.get(entry.mask).want(entry.key)
    }

    /// Removes a receive that was just found.
    #[inline(never)]
    pub fn take(&mut self, spot: Spot) -> Option<R> {
        let Entry { key, mask, .. } = *self.slab.head(spot.index);
        self.table.remove(spot.place, &mut self.slab, spot.index);
        if self.masks.subtract(mask).is_directed() {
            self.sources.subtract(key.source);
        }
        self.slab.remove(spot.index)
    }
}
