// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unexpected messages: the earliest arrived that satisfies a receive being posted.
//!
//! Called by `matcher`; calls `slab` (the messages), `chain` (their order of arrival), `table`
//! (through an index per mask). While few messages wait they are looked through in order. When more
//! wait, the first receive of a mask has an index built for the mask, which later messages enter as
//! they arrive; an index that no receive has asked for a long time is dropped, so that messages are
//! not entered in vain. Indexes are bounded in number; a receive whose mask finds no room looks
//! through the messages in order. What was just looked for in vain is remembered until a message
//! arrives.

use crate::chain::{self, HasLink, Link, Links, NONE};
use crate::slab::{Id, Slab};
use crate::table::{Place, Table};
use crate::want::{Key, Mask, Want};

/// Up to this many messages are looked through without an index; chosen.
const SCANNED_COUNT: usize = 4;

/// Indexes at the same time; chosen: twice what programs use.
const INDEXES: usize = 8;

/// An index gives way to another mask only when it was not asked in this many lookups; chosen,
/// twice the indexes, so that more masks than indexes used in turn do not rebuild an index each
/// time.
const PATIENCE_LOOKUPS: u64 = 2 * INDEXES as u64;

/// An index is dropped when this many messages, or as many as wait if that is more, have entered it
/// since it was last asked; chosen: the cost of building it again is then a small part of what was
/// saved.
const IDLE_MESSAGES: usize = 1024;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    key: Key,
    /// Neighbours in order of arrival.
    arrival: Link,
}

impl HasLink for Entry {
    #[inline]
    fn link(&self) -> Link {
        self.arrival
    }
    #[inline]
    fn link_mut(&mut self) -> &mut Link {
        &mut self.arrival
    }
}

/// All waiting messages by what one mask compares: key to list of messages in order of arrival.
#[derive(Debug)]
struct Index {
    mask: Mask,
    table: Table,
    links: Vec<Link>,
    last_lookup: u64,
    entered_since_lookup: usize,
}

impl Index {
    fn new(mask: Mask) -> Self {
        Index {
            mask,
            table: Table::new(),
            links: Vec::new(),
            last_lookup: 0,
            entered_since_lookup: 0,
        }
    }

    #[inline]
    fn probe<U>(&self, hash: u32, messages: &Slab<Entry, U>, key: Key) -> Place {
        self.table
            .probe(hash, |head| self.mask.same(messages.head(head).key, key))
    }

    #[inline]
    fn enter<U>(&mut self, messages: &Slab<Entry, U>, index: u32, key: Key) {
        if self.links.len() <= index as usize {
            self.links.resize(index as usize + 1, Link::default());
        }
        let hash = self.mask.hash(key, 0);
        self.table.reserve();
        let place = self.probe(hash, messages, key);
        self.table.append(place, hash, &mut self.links, index);
    }

    #[inline]
    fn leave<U>(&mut self, messages: &Slab<Entry, U>, index: u32, key: Key) {
        let place = self.probe(self.mask.hash(key, 0), messages, key);
        self.table.remove(place, &mut self.links, index);
    }
}

/// Misses remembered; chosen: what one exchange with all neighbours in three dimensions posts. A
/// power of two.
const MISSES: usize = 32;

/// What was looked for in vain since the last message arrived: while many messages wait for
/// receives that are posted later, others go on, and each of their receives would ask an index that
/// no longer fits the cache.
#[derive(Debug, Default)]
struct Misses(Box<[Miss; MISSES]>);

#[derive(Clone, Copy, Debug, Default)]
struct Miss {
    mask: Mask,
    key: Key,
    /// Messages that had arrived by then; 0 for no miss, since an index has messages.
    arrivals: u64,
}

impl Misses {
    #[inline]
    fn place(key: Key) -> usize {
        let folded = key.tag ^ (key.tag >> 32) ^ u64::from(key.source);
        (folded ^ (folded >> 16)) as usize % MISSES
    }

    /// Whether the same was looked for in vain, and nothing has arrived since.
    #[inline]
    fn know(&self, mask: Mask, key: Key, arrivals: u64) -> bool {
        let miss = &self.0[Self::place(key)];
        miss.arrivals == arrivals && miss.mask == mask && mask.same(miss.key, key)
    }

    #[inline]
    fn note(&mut self, mask: Mask, key: Key, arrivals: u64) {
        self.0[Self::place(key)] = Miss {
            mask,
            key,
            arrivals,
        };
    }
}

/// All unexpected messages.
#[derive(Debug)]
pub(crate) struct Unexpected<U> {
    slab: Slab<Entry, U>,
    /// The message that arrived first.
    first: u32,
    /// Those in use come first.
    indexes: Vec<Index>,
    indexes_in_use: usize,
    lookups: u64,
    /// Messages that ever arrived.
    arrivals: u64,
    misses: Misses,
}

impl<U> Unexpected<U> {
    pub fn new() -> Self {
        Unexpected {
            slab: Slab::new(),
            first: NONE,
            indexes: Vec::new(),
            indexes_in_use: 0,
            lookups: 0,
            arrivals: 0,
            misses: Misses::default(),
        }
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.slab.count()
    }

    /// Adds a message after all others.
    #[inline(always)]
    pub fn push(&mut self, key: Key, message: U) -> Id {
        self.arrivals += 1;
        let index = self.slab.insert(
            Entry {
                key,
                arrival: Link::default(),
            },
            message,
        );
        if self.first == NONE {
            chain::start(&mut self.slab, index);
            self.first = index;
        } else {
            chain::append(&mut self.slab, self.first, index);
        }
        if self.indexes_in_use > 0 {
            self.enter(index, key);
        }
        self.slab.id(index)
    }

    fn enter(&mut self, index: u32, key: Key) {
        let idle = self.slab.count().max(IDLE_MESSAGES);
        let mut at = 0;
        while at < self.indexes_in_use {
            let entered = &mut self.indexes[at];
            entered.entered_since_lookup += 1;
            if entered.entered_since_lookup > idle {
                self.indexes_in_use -= 1;
                self.indexes.swap(at, self.indexes_in_use);
            } else {
                entered.enter(&self.slab, index, key);
                at += 1;
            }
        }
    }

    /// The earliest message that satisfies `want`.
    #[inline]
    pub fn find(&mut self, want: Want) -> Option<Id> {
        match self.slab.count() {
            0 => None,
            1..=SCANNED_COUNT => self.scan(want),
            _ => self.look_up(want),
        }
    }

    /// Looks through the messages in order of arrival.
    fn scan(&self, want: Want) -> Option<Id> {
        let mask = Mask::of(want);
        let key = mask.key(want);
        self.in_order()
            .find(|&index| mask.same(self.slab.head(index).key, key))
            .map(|index| self.slab.id(index))
    }

    /// Indexes of all messages in order of arrival.
    #[inline]
    fn in_order(&self) -> impl Iterator<Item = u32> {
        let start = (self.first != NONE).then_some(self.first);
        std::iter::successors(start, |&index| {
            Some(self.slab.link(index).next).filter(|&next| next != self.first)
        })
    }

    fn look_up(&mut self, want: Want) -> Option<Id> {
        let mask = Mask::of(want);
        if self.misses.know(mask, mask.key(want), self.arrivals) {
            return None;
        }
        let found = self.look_into_index(want, mask);
        if found.is_none() {
            self.misses.note(mask, mask.key(want), self.arrivals);
        }
        found
    }

    #[inline(never)]
    fn look_into_index(&mut self, want: Want, mask: Mask) -> Option<Id> {
        self.lookups += 1;
        let known = self.indexes[..self.indexes_in_use]
            .iter()
            .position(|index| index.mask == mask);
        let Some(at) = known.or_else(|| self.build(mask)) else {
            return self.scan(want);
        };
        let index = &mut self.indexes[at];
        index.last_lookup = self.lookups;
        index.entered_since_lookup = 0;
        let key = mask.key(want);
        match index.probe(mask.hash(key, 0), &self.slab, key) {
            Place::Found { head, .. } => Some(self.slab.id(head)),
            Place::Vacant { .. } => None,
        }
    }

    /// Builds an index for a mask; linear. `None` when there is no room for one more.
    #[cold]
    fn build(&mut self, mask: Mask) -> Option<usize> {
        let at = self.room_for_index(mask)?;
        let mut index = std::mem::replace(&mut self.indexes[at], Index::new(mask));
        index.mask = mask;
        index.table.clear();
        for message in self.in_order() {
            index.enter(&self.slab, message, self.slab.head(message).key);
        }
        self.indexes[at] = index;
        Some(at)
    }

    fn room_for_index(&mut self, mask: Mask) -> Option<usize> {
        if self.indexes_in_use < INDEXES {
            if self.indexes_in_use == self.indexes.len() {
                self.indexes.push(Index::new(mask));
            }
            self.indexes_in_use += 1;
            return Some(self.indexes_in_use - 1);
        }
        let (at, oldest) = self
            .indexes
            .iter()
            .enumerate()
            .min_by_key(|(_, index)| index.last_lookup)?;
        (self.lookups - oldest.last_lookup > PATIENCE_LOOKUPS).then_some(at)
    }

    /// The message that `id` names; `None` when it has left.
    #[inline]
    pub fn get(&self, id: Id) -> Option<&U> {
        let index = self.slab.index(id)?;
        self.slab.body(index)
    }

    #[inline]
    pub fn get_mut(&mut self, id: Id) -> Option<&mut U> {
        let index = self.slab.index(id)?;
        self.slab.body_mut(index)
    }

    /// Removes the message that `id` names; `None` when it has left.
    #[inline]
    pub fn remove(&mut self, id: Id) -> Option<U> {
        let index = self.slab.index(id)?;
        self.leave(index);
        self.slab.remove(index)
    }

    /// The same, dropped where it lies. Nothing when it has left.
    #[inline]
    pub fn discard(&mut self, id: Id) {
        if let Some(index) = self.slab.index(id) {
            self.leave(index);
            self.slab.discard(index);
        }
    }

    /// Takes a message out of the order of arrival and of all indexes.
    #[inline(always)]
    fn leave(&mut self, index: u32) {
        if self.indexes_in_use > 0 {
            self.leave_indexes(index, self.slab.head(index).key);
        }
        let next = chain::unlink(&mut self.slab, index);
        if self.first == index {
            self.first = next;
        }
    }

    #[inline(never)]
    fn leave_indexes(&mut self, index: u32, key: Key) {
        for by_mask in &mut self.indexes[..self.indexes_in_use] {
            by_mask.leave(&self.slab, index, key);
        }
    }

    /// The earliest message from `source` that `select`s. Linear.
    pub fn find_from(&self, source: u32, mut select: impl FnMut(&U) -> bool) -> Option<Id> {
        let mut from = self
            .in_order()
            .filter(|&index| self.slab.head(index).key.source == source);
        let index = from.find(|&index| self.slab.body(index).is_some_and(&mut select))?;
        Some(self.slab.id(index))
    }
}
