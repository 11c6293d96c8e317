// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Posted receives: the latest in a queue, all before them in a hash table.
//!
//! Called by `matcher`; calls `recent` (the queue) and `hashed` (the table).
//!
//! Most programs receive nearly in the order in which they post. So a receive first waits in a
//! short queue of the latest ones, whose front is looked at before anything is hashed; the queue
//! enters the table when a message matches none of its first few, or when it has grown long. All
//! receives in the table are older than those in the queue.

use crate::chain::NONE;
use crate::hashed::{Hashed, Spot};
use crate::recent::{Front, Queue, Recent};
use crate::slab::Id;
use crate::want::{Key, Mask, Want};

/// Receives of the queue that are looked at before it enters the table; chosen: as many as cost
/// less than one lookup.
const LOOKED_AT: usize = 4;

/// A posted receive that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    /// In the queue, so many behind its front.
    Queue(usize),
    /// In the table.
    Table(Spot),
}

/// All posted receives.
#[derive(Debug)]
pub(crate) struct Posted<R> {
    hashed: Hashed<R>,
    /// The latest receives, in order of posting.
    queue: Queue<R>,
    /// Receives ever posted: the order of the latest one.
    last_sequence: u64,
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
            hashed: Hashed::new(),
            queue: Queue::new(),
            last_sequence: 0,
            swept: Vec::new(),
            swept_source: 0,
        }
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.hashed.count() + self.queue.len()
    }

    /// Linear in the queue.
    pub fn directed_count(&self, source: u32) -> u32 {
        let queued = self.queue.iter().filter(|recent| names(recent, source));
        self.hashed.directed_count(source) + queued.count() as u32
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
            self.hashed.push(mask, key, sequence, receive);
        }
    }

    /// The earliest receive that a message matches.
    #[inline(always)]
    pub fn find(&mut self, key: Key) -> Option<Found> {
        if self.hashed.count() > 0 {
            return self.find_behind_table(key);
        }
        if self.queue.front()?.recent.takes(key) {
            return Some(Found::Queue(0));
        }
        self.find_in_queue(key)
    }

    /// The same if it is the only list there is to look at and its front matches: most messages.
    /// `None` says nothing.
    #[inline(always)]
    pub fn find_front(&mut self, key: Key) -> Option<Front<'_, R>> {
        if self.hashed.count() > 0 {
            return None;
        }
        // That it is there is asked here, where it costs least: all that follows knows it.
        let fits = |front: &Front<'_, R>| front.recent.takes(key) && front.recent.body.is_some();
        self.queue.front().filter(fits)
    }

    /// The same while there are receives in the table, which are older than those in the queue.
    #[inline(never)]
    fn find_behind_table(&mut self, key: Key) -> Option<Found> {
        match self.hashed.find(key) {
            None => self.find_in_queue(key),
            Some(spot) => Some(Found::Table(spot)),
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
        self.hashed.find(key).map(Found::Table)
    }

    /// The id of a receive that `find` has just given.
    #[inline]
    pub fn id(&self, found: Found) -> Option<Id> {
        match found {
            Found::Queue(behind) => self.queue.get(behind).map(queued_id),
            Found::Table(spot) => Some(self.hashed.id(spot)),
        }
    }

    #[inline(always)]
    pub fn receive_mut(&mut self, found: Found) -> Option<&mut R> {
        match found {
            Found::Queue(behind) => self.queue.get_mut(behind)?.body.as_mut(),
            Found::Table(spot) => self.hashed.receive_mut(spot),
        }
    }

    pub fn want(&self, found: Found) -> Option<Want> {
        match found {
            Found::Queue(behind) => {
                let recent = self.queue.get(behind)?;
                Some(recent.mask().want(recent.key()))
            }
            Found::Table(spot) => Some(self.hashed.want(spot)),
        }
    }

    /// Removes a receive that `find` has just given.
    #[inline(always)]
    pub fn take(&mut self, found: Found) -> Option<R> {
        match found {
            Found::Queue(behind) => self.queue.remove(behind),
            Found::Table(spot) => self.hashed.take(spot),
        }
    }

    /// Removes the receive that `id` names; `None` when it has left. Linear if it entered the table
    /// after it was named.
    #[inline]
    pub fn remove(&mut self, id: Id) -> Option<R> {
        let queued = self.queue.iter();
        let behind = { queued }.position(|recent| recent.sequence == id.sequence);
        match behind {
            Some(behind) => self.queue.remove(behind),
            None => self.hashed.take(self.hashed.find_id(id)?),
        }
    }

    /// Removes the earliest receive that `select`s. Linear.
    pub fn cancel(&mut self, mut select: impl FnMut(&R) -> bool) -> Option<R> {
        if let Some(id) = self.hashed.find_where(&mut select) {
            return self.remove(id);
        }
        let selects = |recent: &Recent<R>| recent.body.as_ref().is_some_and(&mut select);
        let behind = self.queue.iter().position(selects)?;
        self.queue.remove(behind)
    }

    /// Removes the earliest receive directed at `source`. Called until there is none, it is linear
    /// in all: what one sweep has found serves the following calls, for receives posted since then
    /// are later than those.
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
        let queued = self.queue.iter().filter(|recent| names(recent, source));
        let all = self.hashed.directed(source).chain(queued.map(queued_id));
        let mut found: Vec<Id> = all.collect();
        found.sort_unstable_by_key(|id| std::cmp::Reverse(id.sequence));
        self.swept = found;
    }
}
