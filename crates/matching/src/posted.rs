// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Posted receives: the earliest that matches an arriving message, in constant time per mask in use.
//!
//! Called by `matcher`; calls `slab` (the receives), `recent`, `table` (mask and key to the list of receives with that mask and key, in order of
//! posting), `sources`. An arriving message looks once for each mask that has receives posted, and the earliest of the heads it finds is
//! the match, because all receives of one list match the same messages. Programs use one to four masks.
//!
//! Most programs receive nearly in the order in which they post. So a receive first waits in a short queue of the latest ones, whose
//! front is looked at before anything is hashed; the queue enters the table when a message matches none of its first few, or when it
//! has grown long. All receives in the table are older than those in the queue. Only those in the table lie in the slab, and are counted by
//! source.

use crate::chain::{Link, Links, NONE};
use crate::recent::{Front, Queue, Recent};
use crate::slab::{Id, Slab};
use crate::sources::SourceCounts;
use crate::table::{Place, Table};
use crate::want::{Key, Mask, Want};

/// What the table needs to know of a receive.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    key: Key,
    mask: u32,
    link: Link,
}

impl<R> Links for Slab<Head, R> {
    #[inline]
    fn link(&self, index: u32) -> Link {
        self.head(index).link
    }
    #[inline]
    fn link_mut(&mut self, index: u32) -> &mut Link {
        &mut self.head_mut(index).link
    }
}

/// A mask and how many receives are posted with it; reused for another mask when that is 0.
#[derive(Debug)]
struct MaskUse {
    mask: Mask,
    salt: u64,
    posted: u32,
}

/// Spreads the masks of the one table; chosen: 2^64 over the golden ratio.
const SALT_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Unused masks at the end of the list are dropped beyond this many; chosen: more than programs use.
const MASKS_KEPT: usize = 8;

/// Receives of the queue that are looked at before it enters the table; chosen: as many as cost less than one lookup.
const LOOKED_AT: usize = 4;

/// A posted receive that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    /// In the queue, so many behind its front.
    Queue(usize),
    /// In the table, under an index of the slab.
    Table(u32, Place),
}

/// All posted receives.
#[derive(Debug)]
pub(crate) struct Posted<R> {
    /// Those in the table.
    slab: Slab<Head, R>,
    /// The latest receives, in order of posting.
    queue: Queue<R>,
    /// Receives ever posted: the order of the latest one.
    last_sequence: u64,
    table: Table,
    masks: Vec<MaskUse>,
    sources: SourceCounts,
    /// Receives directed at `swept_source`, latest first, as of some earlier call of `remove_from`.
    swept: Vec<Id>,
    swept_source: u32,
}

/// The name of a receive in the queue: there it has no index.
fn queued_id<R>(recent: &Recent<R>) -> Id {
    Id {
        index: NONE,
        sequence: recent.sequence,
    }
}

/// Whether a receive in the queue names `source`.
fn names<R>(recent: &Recent<R>, source: u32) -> bool {
    recent.mask().is_directed() && recent.key().source == source
}

impl<R> Posted<R> {
    pub fn new() -> Self {
        Posted {
            slab: Slab::new(),
            queue: Queue::new(),
            last_sequence: 0,
            table: Table::new(),
            masks: Vec::new(),
            sources: SourceCounts::default(),
            swept: Vec::new(),
            swept_source: 0,
        }
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.slab.count() + self.queue.len()
    }

    /// Linear in the queue.
    pub fn directed_count(&self, source: u32) -> u32 {
        let queued = self.queue.iter().filter(|recent| names(recent, source));
        self.sources.get(source) + queued.count() as u32
    }

    /// Adds a receive after all others.
    #[inline(always)]
    pub fn push(&mut self, want: Want, receive: R) -> Id {
        let mask = Mask::of(want);
        if self.queue.is_full() {
            self.enter_queue();
        }
        self.last_sequence += 1;
        let sequence = self.last_sequence;
        self.queue.push(mask, mask.key(want), sequence, receive);
        Id {
            index: NONE,
            sequence,
        }
    }

    /// Enters the whole queue into the table.
    #[inline(never)]
    fn enter_queue(&mut self) {
        while let Some((mask, key, sequence, receive)) = self.queue.pop_front() {
            self.enter(mask, key, sequence, receive);
        }
    }

    /// Enters a receive into the table, behind all that are there.
    fn enter(&mut self, mask: Mask, key: Key, sequence: u64, receive: R) {
        let mask_index = self.mask_index(mask);
        let mask_use = &mut self.masks[mask_index as usize];
        mask_use.posted += 1;
        if mask.is_directed() {
            self.sources.add(key.source);
        }
        let head = Head {
            key,
            mask: mask_index,
            link: Link::default(),
        };
        let index = self.slab.insert_as(sequence, head, receive);
        let hash = mask.hash(key, self.masks[mask_index as usize].salt);
        self.table.reserve();
        let place = self.probe(hash, mask_index, key);
        self.table.append(place, hash, &mut self.slab, index);
    }

    /// Where a mask lies in the list of masks; it is entered if need be.
    #[inline]
    fn mask_index(&mut self, mask: Mask) -> u32 {
        match self.masks.iter().position(|other| other.mask == mask) {
            Some(index) => index as u32,
            None => self.enter_mask(mask),
        }
    }

    #[cold]
    fn enter_mask(&mut self, mask: Mask) -> u32 {
        let unused = self.masks.iter().position(|other| other.posted == 0);
        let index = unused.unwrap_or(self.masks.len());
        let salt = (index as u64).wrapping_mul(SALT_STEP);
        let entered = MaskUse {
            mask,
            salt,
            posted: 0,
        };
        match self.masks.get_mut(index) {
            Some(place) => *place = entered,
            None => self.masks.push(entered),
        }
        index as u32
    }

    #[inline]
    fn probe(&self, hash: u32, mask_index: u32, key: Key) -> Place {
        let mask = self.masks[mask_index as usize].mask;
        self.table.probe(hash, |index| {
            let head = self.slab.head(index);
            head.mask == mask_index && mask.same(head.key, key)
        })
    }

    /// The earliest receive that a message matches.
    #[inline(always)]
    pub fn find(&mut self, key: Key) -> Option<Found> {
        if self.slab.count() > 0 {
            return self.find_behind_table(key);
        }
        if self.queue.front()?.recent.takes(key) {
            return Some(Found::Queue(0));
        }
        self.find_in_queue(key)
    }

    /// The same if it is the only list there is to look at and its front matches: most messages. `None` says nothing.
    #[inline(always)]
    pub fn find_front(&mut self, key: Key) -> Option<Front<'_, R>> {
        if self.slab.count() > 0 {
            return None;
        }
        self.queue.front().filter(|front| front.recent.takes(key))
    }

    /// The same while there are receives in the table, which are older than those in the queue.
    #[inline(never)]
    fn find_behind_table(&mut self, key: Key) -> Option<Found> {
        match self.look_up(key) {
            None => self.find_in_queue(key),
            found => found,
        }
    }

    #[inline(never)]
    fn find_in_queue(&mut self, key: Key) -> Option<Found> {
        let latest = self.queue.iter().take(LOOKED_AT);
        let behind = { latest }.position(|recent| recent.takes(key));
        if behind.is_some() {
            return behind.map(Found::Queue);
        }
        if self.queue.len() <= LOOKED_AT {
            return None;
        }
        self.enter_queue();
        self.look_up(key)
    }

    #[inline(never)]
    fn look_up(&self, key: Key) -> Option<Found> {
        let mut earliest: Option<(u32, Place)> = None;
        for (mask_index, mask_use) in (0..).zip(&self.masks) {
            if mask_use.posted == 0 {
                continue;
            }
            let hash = mask_use.mask.hash(key, mask_use.salt);
            let place = self.probe(hash, mask_index, key);
            if let Place::Found { head: index, .. } = place {
                let later = earliest.is_some_and(|(other, _)| {
                    self.slab.sequence(other) < self.slab.sequence(index)
                });
                if !later {
                    earliest = Some((index, place));
                }
            }
        }
        earliest.map(|(index, place)| Found::Table(index, place))
    }

    /// The id of a receive that `find` has just given.
    #[inline]
    pub fn id(&self, found: Found) -> Option<Id> {
        match found {
            Found::Queue(behind) => self.queue.get(behind).map(queued_id),
            Found::Table(index, _) => Some(self.slab.id(index)),
        }
    }

    #[inline(always)]
    pub fn receive_mut(&mut self, found: Found) -> Option<&mut R> {
        match found {
            Found::Queue(behind) => self.queue.get_mut(behind)?.body.as_mut(),
            Found::Table(index, _) => self.slab.body_mut(index),
        }
    }

    pub fn want(&self, found: Found) -> Option<Want> {
        match found {
            Found::Queue(behind) => {
                let recent = self.queue.get(behind)?;
                Some(recent.mask().want(recent.key()))
            }
            Found::Table(index, _) => {
                let head = self.slab.head(index);
                Some(self.masks[head.mask as usize].mask.want(head.key))
            }
        }
    }

    /// Removes a receive that `find` has just given.
    #[inline(always)]
    pub fn take(&mut self, found: Found) -> Option<R> {
        match found {
            Found::Queue(behind) => self.queue.remove(behind),
            Found::Table(index, place) => {
                if self.leave(index, place).is_directed() {
                    self.sources.subtract(self.slab.head(index).key.source);
                }
                self.slab.remove(index)
            }
        }
    }

    /// Takes a receive out of the table; answers its mask.
    #[inline(never)]
    fn leave(&mut self, index: u32, place: Place) -> Mask {
        let mask_index = self.slab.head(index).mask;
        self.table.remove(place, &mut self.slab, index);
        let mask_use = &mut self.masks[mask_index as usize];
        let mask = mask_use.mask;
        mask_use.posted -= 1;
        if mask_use.posted == 0 && self.masks.len() > MASKS_KEPT {
            self.drop_unused_masks();
        }
        mask
    }

    #[cold]
    fn drop_unused_masks(&mut self) {
        while self.masks.len() > MASKS_KEPT
            && self.masks.last().is_some_and(|last| last.posted == 0)
        {
            self.masks.pop();
        }
    }

    /// Removes the receive that `id` names; `None` when it has left. Linear if it entered the table after it was named.
    #[inline]
    pub fn remove(&mut self, id: Id) -> Option<R> {
        let found = self.find_id(id)?;
        self.take(found)
    }

    fn find_id(&self, id: Id) -> Option<Found> {
        let mut queued = self.queue.iter();
        if let Some(behind) = queued.position(|recent| recent.sequence == id.sequence) {
            return Some(Found::Queue(behind));
        }
        let index = if id.index == NONE {
            let mut all = self.slab.iter();
            all.find(|&(_, sequence, ..)| sequence == id.sequence)?.0
        } else {
            self.slab.index(id)?
        };
        let Head { key, mask, .. } = *self.slab.head(index);
        let mask_use = &self.masks[mask as usize];
        let place = self.probe(mask_use.mask.hash(key, mask_use.salt), mask, key);
        Some(Found::Table(index, place))
    }

    /// Removes the earliest receive that `select`s. Linear.
    pub fn cancel(&mut self, mut select: impl FnMut(&R) -> bool) -> Option<R> {
        let mut earliest: Option<(u64, u32)> = None;
        for (index, sequence, _, receive) in self.slab.iter() {
            if earliest.is_none_or(|(other, _)| sequence < other) && select(receive) {
                earliest = Some((sequence, index));
            }
        }
        let Some((_, index)) = earliest else {
            let selects = |recent: &Recent<R>| recent.body.as_ref().is_some_and(&mut select);
            let behind = self.queue.iter().position(selects)?;
            return self.queue.remove(behind);
        };
        self.remove(self.slab.id(index))
    }

    /// Removes the earliest receive directed at `source`. Called until there is none, it is linear in all: what one sweep has found
    /// serves the following calls, for receives posted since then are later than those.
    pub fn remove_from(&mut self, source: u32) -> Option<R> {
        if self.swept_source != source {
            self.swept.clear();
            self.swept_source = source;
        }
        while self.directed_count(source) > 0 {
            while let Some(id) = self.swept.pop() {
                if let Some(receive) = self.remove(id) {
                    return Some(receive);
                }
            }
            self.sweep(source);
        }
        self.swept = Vec::new();
        None
    }

    #[cold]
    fn sweep(&mut self, source: u32) {
        let directed = |head: &Head| {
            head.key.source == source && self.masks[head.mask as usize].mask.is_directed()
        };
        let found = self.slab.iter().filter(|&(_, _, head, _)| directed(head));
        let mut found: Vec<Id> = found
            .map(|(index, sequence, ..)| Id { index, sequence })
            .collect();
        let queued = self.queue.iter().filter(|recent| names(recent, source));
        found.extend(queued.map(queued_id));
        found.sort_unstable_by_key(|id| std::cmp::Reverse(id.sequence));
        self.swept = found;
    }
}
