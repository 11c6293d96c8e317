// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Posted receives: the earliest that matches an arriving message, in constant time per mask in use.
//!
//! Called by `matcher`; calls `slab` (the receives), `recent`, `table` (mask and key to the list of receives with that mask and key, in order of
//! posting), `sources`. An arriving message looks once for each mask that has receives posted, and the earliest of the heads it finds is
//! the match, because all receives of one list match the same messages. Programs use one to four masks.
//!
//! Most programs receive nearly in the order in which they post. So a receive first waits in a short queue of the latest ones, whose
//! front is looked at before anything is hashed; the queue enters the table when a message matches none of its first few, or when it
//! has grown long. All receives in the table are older than those in the queue.

use crate::chain::{Link, Links};
use crate::recent::{Queue, Recent};
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

/// The mask index of a receive that waits in the queue.
const QUEUED: u32 = u32::MAX;

/// Where a receive waits.
#[derive(Clone, Copy, Debug)]
enum Spot {
    /// In the queue, so many behind its front.
    Queue(usize),
    /// In the table.
    Table(Place),
}

/// A posted receive that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub index: u32,
    spot: Spot,
}

/// All posted receives.
#[derive(Debug)]
pub(crate) struct Posted<R> {
    slab: Slab<Head, R>,
    /// The latest receives, in order of posting.
    queue: Queue,
    table: Table,
    masks: Vec<MaskUse>,
    sources: SourceCounts,
    /// Receives directed at `swept_source`, latest first, as of some earlier call of `remove_from`.
    swept: Vec<Id>,
    swept_source: u32,
}

impl<R> Posted<R> {
    pub fn new() -> Self {
        Posted {
            slab: Slab::new(),
            queue: Queue::new(),
            table: Table::new(),
            masks: Vec::new(),
            sources: SourceCounts::default(),
            swept: Vec::new(),
            swept_source: 0,
        }
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.slab.count()
    }

    #[inline]
    pub fn directed_count(&self, source: u32) -> u32 {
        self.sources.get(source)
    }

    /// Adds a receive after all others.
    #[inline(always)]
    pub fn push(&mut self, want: Want, receive: R) -> Id {
        let mask = Mask::of(want);
        let key = mask.key(want);
        if mask.is_directed() {
            self.sources.add(key.source);
        }
        let head = Head {
            key,
            mask: QUEUED,
            ..Head::default()
        };
        let id = self.slab.insert_named(head, receive);
        if self.queue.is_full() {
            self.enter_queue();
        }
        let index = id.index();
        self.queue.push(Recent { key, mask, index });
        id
    }

    /// Enters the whole queue into the table.
    #[inline(never)]
    fn enter_queue(&mut self) {
        while let Some(recent) = self.queue.pop_front() {
            self.enter(recent.index, recent.mask);
        }
    }

    /// Enters a receive into the table, behind all that are there.
    fn enter(&mut self, index: u32, mask: Mask) {
        let mask_index = self.mask_index(mask);
        let mask_use = &mut self.masks[mask_index as usize];
        mask_use.posted += 1;
        let head = self.slab.head_mut(index);
        head.mask = mask_index;
        let key = head.key;
        let hash = mask.hash(key, mask_use.salt);
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
        if self.slab.count() > self.queue.len() {
            return self.find_behind_table(key);
        }
        let front = self.queue.front()?;
        if front.mask.same(front.key, key) {
            let (index, spot) = (front.index, Spot::Queue(0));
            return Some(Found { index, spot });
        }
        self.find_in_queue(key)
    }

    /// The same if it is the only list there is to look at and its front matches: most messages. `None` says nothing.
    #[inline(always)]
    pub fn find_front(&self, key: Key) -> Option<Recent> {
        if self.slab.count() != self.queue.len() {
            return None;
        }
        let front = *self.queue.front()?;
        front.mask.same(front.key, key).then_some(front)
    }

    /// Drops the receive that `find_front` has just given, where it lies.
    #[inline(always)]
    pub fn discard_front(&mut self, front: Recent) {
        self.queue.pop_front();
        if front.mask.is_directed() {
            self.sources.subtract(front.key.source);
        }
        self.slab.discard(front.index);
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
        for (behind, recent) in self.queue.iter().take(LOOKED_AT).enumerate() {
            if recent.mask.same(recent.key, key) {
                let (index, spot) = (recent.index, Spot::Queue(behind));
                return Some(Found { index, spot });
            }
        }
        if self.queue.len() <= LOOKED_AT {
            return None;
        }
        self.enter_queue();
        self.look_up(key)
    }

    #[inline(never)]
    fn look_up(&self, key: Key) -> Option<Found> {
        let mut earliest: Option<Found> = None;
        for (mask_index, mask_use) in (0..).zip(&self.masks) {
            if mask_use.posted == 0 {
                continue;
            }
            let hash = mask_use.mask.hash(key, mask_use.salt);
            let place = self.probe(hash, mask_index, key);
            if let Place::Found { head: index, .. } = place {
                let later = earliest.is_some_and(|other| {
                    self.slab.sequence(other.index) < self.slab.sequence(index)
                });
                if !later {
                    let spot = Spot::Table(place);
                    earliest = Some(Found { index, spot });
                }
            }
        }
        earliest
    }

    #[inline]
    pub fn id(&self, index: u32) -> Id {
        self.slab.id(index)
    }

    #[inline]
    pub fn receive_mut(&mut self, index: u32) -> Option<&mut R> {
        self.slab.body_mut(index)
    }

    /// Linear in the queue for a receive that waits there.
    fn mask(&self, index: u32) -> Mask {
        match self.slab.head(index).mask {
            QUEUED => {
                let mut queued = self.queue.iter();
                let recent = queued.find(|recent| recent.index == index);
                recent.map_or(Mask::default(), |recent| recent.mask)
            }
            mask => self.masks[mask as usize].mask,
        }
    }

    /// How far behind the front of the queue a receive waits.
    fn queued(&self, index: u32) -> Option<usize> {
        self.queue.iter().position(|recent| recent.index == index)
    }

    pub fn want(&self, index: u32) -> Want {
        self.mask(index).want(self.slab.head(index).key)
    }

    /// Removes a receive that `find` has just given.
    #[inline(always)]
    pub fn take(&mut self, found: Found) -> Option<R> {
        let mask = match found.spot {
            Spot::Queue(0) => self.queue.pop_front().map(|recent| recent.mask),
            Spot::Queue(behind) => self.queue.remove(behind).map(|recent| recent.mask),
            Spot::Table(place) => Some(self.leave(found.index, place)),
        };
        if mask.is_some_and(Mask::is_directed) {
            self.sources
                .subtract(self.slab.head(found.index).key.source);
        }
        self.slab.remove(found.index)
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

    /// Removes the receive that `id` names; `None` when it has left.
    #[inline]
    pub fn remove(&mut self, id: Id) -> Option<R> {
        let index = self.slab.index(id)?;
        let Head { key, mask, .. } = *self.slab.head(index);
        if mask == QUEUED {
            let spot = Spot::Queue(self.queued(index)?);
            return self.take(Found { index, spot });
        }
        let mask_use = &self.masks[mask as usize];
        let place = self.probe(mask_use.mask.hash(key, mask_use.salt), mask, key);
        let spot = Spot::Table(place);
        self.take(Found { index, spot })
    }

    /// Removes the earliest receive that `select`s. Linear.
    pub fn cancel(&mut self, mut select: impl FnMut(&R) -> bool) -> Option<R> {
        let mut earliest: Option<(u64, u32)> = None;
        for (index, sequence, _, receive) in self.slab.iter() {
            if earliest.is_none_or(|(other, _)| sequence < other) && select(receive) {
                earliest = Some((sequence, index));
            }
        }
        let (_, index) = earliest?;
        self.remove(self.slab.id(index))
    }

    /// Removes the earliest receive directed at `source`. Called until there is none, it is linear in all: what one sweep has found
    /// serves the following calls, for receives posted since then are later than those.
    pub fn remove_from(&mut self, source: u32) -> Option<R> {
        if self.swept_source != source {
            self.swept.clear();
            self.swept_source = source;
        }
        while self.sources.get(source) > 0 {
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
        let directed =
            |index, head: &Head| head.key.source == source && self.mask(index).is_directed();
        let found = self
            .slab
            .iter()
            .filter(|&(index, _, head, _)| directed(index, head));
        let mut found: Vec<(u64, Id)> = found
            .map(|(index, sequence, _, _)| (sequence, self.slab.id(index)))
            .collect();
        found.sort_unstable_by_key(|&(sequence, _)| std::cmp::Reverse(sequence));
        self.swept = found.into_iter().map(|(_, id)| id).collect();
    }
}
