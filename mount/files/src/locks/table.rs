// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The locks of one file: who holds which bytes, and who waits for them. A pure table, with no
//! clock and no messages; [`crate::locks::keeper`] has one for each file that is locked.
//!
//! Ranges of one holder split and merge as fcntl(2) says. Waiters are served in the order in which
//! they came: one that could be served at once may overtake a waiter, but only [`OVERTAKINGS`] of
//! them, so that readers do not starve a writer.

use std::collections::HashMap;

/// Chosen: so many pass a waiter that they do not conflict with now.
const OVERTAKINGS: u32 = 16;

/// Who holds a lock: a program on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    /// The node of its mount.
    pub node: u64,
    /// The kernel's number there: of a process's open files, or of one open file.
    pub owner: u64,
}

/// Bytes of a file, the last one included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub first: u64,
    /// The last byte; all to the end of the file is the largest number that the kernel has.
    pub last: u64,
}

/// A lock that is held, or asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    /// Whose.
    pub holder: Holder,
    /// Of which bytes.
    pub span: Span,
    /// Nobody else may hold any lock on these bytes; else others may hold shared ones.
    pub is_exclusive: bool,
    /// Of the holder; shown by F_GETLK.
    pub process: u32,
}

/// Names one who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// Who asked.
    pub node: u64,
    /// That node uses it once.
    pub number: u64,
}

/// What becomes of who is ready to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// It holds the lock.
    Granted,
    /// It waits.
    Waits,
    /// It would wait for somebody who waits for it.
    Deadlock,
}

#[derive(Debug, Clone)]
struct Waiter {
    ticket: Ticket,
    lock: Lock,
    overtaken: u32,
}

/// Of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Locks that are held.
    pub ranges: usize,
    /// Programs that wait.
    pub waiting: usize,
}

/// The locks of one file.
#[derive(Debug, Clone, Default)]
pub struct Table {
    held: Vec<Lock>,
    waiters: Vec<Waiter>,
}

impl Span {
    /// Whether both have a byte.
    pub fn meets(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Whether both together are one range.
    fn joins(self, other: Self) -> bool {
        self.meets(other)
            || self.last.checked_add(1) == Some(other.first)
            || other.last.checked_add(1) == Some(self.first)
    }

    /// What of it lies outside of another: before it, and behind it.
    fn without(self, cut: Self) -> impl Iterator<Item = Self> {
        let before = cut.first.checked_sub(1).map(|last| Self {
            first: self.first,
            last: last.min(self.last),
        });
        let behind = cut.last.checked_add(1).map(|first| Self {
            first: first.max(self.first),
            last: self.last,
        });
        let parts = [before, behind].into_iter().flatten();
        parts.filter(|part| part.first <= part.last)
    }
}

impl Lock {
    /// Whether both cannot be held at once.
    pub fn conflicts(&self, other: &Self) -> bool {
        self.holder != other.holder
            && (self.is_exclusive || other.is_exclusive)
            && self.span.meets(other.span)
    }
}

impl Table {
    /// Whether nobody holds anything or waits.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.waiters.is_empty()
    }

    /// What is held, in no order.
    pub fn held(&self) -> &[Lock] {
        &self.held
    }

    /// How many ranges each node holds, and how many of its programs wait.
    pub fn count(&self) -> HashMap<u64, Count> {
        let mut counts: HashMap<u64, Count> = HashMap::new();
        for held in &self.held {
            counts.entry(held.holder.node).or_default().ranges += 1;
        }
        for waiter in &self.waiters {
            counts.entry(waiter.ticket.node).or_default().waiting += 1;
        }
        counts
    }

    /// Whether a holder has a lock on both sides of a range, and would have one more without it.
    pub fn is_within(&self, holder: Holder, span: Span) -> bool {
        let mut own = self.held.iter().filter(|held| held.holder == holder);
        own.any(|held| held.span.first < span.first && span.last < held.span.last)
    }

    /// Whether a holder has any lock.
    pub fn has(&self, holder: Holder) -> bool {
        self.held.iter().any(|held| held.holder == holder)
    }

    /// The first lock that is in the way of `lock`.
    pub fn in_the_way(&self, lock: &Lock) -> Option<Lock> {
        let all = self.held.iter().filter(|held| held.conflicts(lock));
        all.min_by_key(|held| held.span.first).copied()
    }

    /// Takes a lock, or says what is in its way. The second part of success: who waited, and has
    /// a lock now, since the holder gave up part of its own.
    pub fn take(&mut self, lock: Lock) -> Result<Vec<Ticket>, Lock> {
        match self.in_the_way(&lock) {
            Some(other) => Err(other),
            None => {
                self.put(lock);
                Ok(self.serve())
            }
        }
    }

    /// Takes a lock as soon as nothing is in its way. Who waited and has a lock now comes second.
    pub fn wait(&mut self, ticket: Ticket, lock: Lock) -> (Waiting, Vec<Ticket>) {
        let last = self.waiters.len();
        if self.may_take(&lock, last) {
            self.put(lock);
            return (Waiting::Granted, self.serve());
        }
        if self.is_deadlock(&lock) {
            return (Waiting::Deadlock, Vec::new());
        }
        self.waiters.push(Waiter {
            ticket,
            lock,
            overtaken: 0,
        });
        (Waiting::Waits, Vec::new())
    }

    /// Gives up what a holder has of a range; who has a lock now.
    pub fn release(&mut self, holder: Holder, span: Span) -> Vec<Ticket> {
        self.cut(holder, span);
        self.serve()
    }

    /// Somebody waits no more; whether it waited, and who has a lock now.
    pub fn cancel(&mut self, ticket: Ticket) -> (bool, Vec<Ticket>) {
        let before = self.waiters.len();
        self.waiters.retain(|waiter| waiter.ticket != ticket);
        (self.waiters.len() < before, self.serve())
    }

    /// A node is gone, with all that it held and waited for; who has a lock now.
    pub fn drop_node(&mut self, node: u64) -> Vec<Ticket> {
        self.held.retain(|held| held.holder.node != node);
        self.waiters
            .retain(|waiter| waiter.lock.holder.node != node);
        self.serve()
    }

    /// Removes a range of a holder's locks; what lies around it stays.
    fn cut(&mut self, holder: Holder, span: Span) {
        let mut kept = Vec::with_capacity(self.held.len() + 1);
        for held in self.held.drain(..) {
            if held.holder != holder || !held.span.meets(span) {
                kept.push(held);
                continue;
            }
            let parts = held.span.without(span);
            kept.extend(parts.map(|span| Lock { span, ..held }));
        }
        self.held = kept;
    }

    /// Has the lock, which nothing is in the way of. It joins those of the same kind beside it.
    fn put(&mut self, mut lock: Lock) {
        self.cut(lock.holder, lock.span);
        self.held.retain(|held| {
            let is_alike = held.holder == lock.holder && held.is_exclusive == lock.is_exclusive;
            let joins = is_alike && held.span.joins(lock.span);
            if joins {
                lock.span.first = lock.span.first.min(held.span.first);
                lock.span.last = lock.span.last.max(held.span.last);
            }
            !joins
        });
        self.held.push(lock);
    }

    /// Whether who comes behind `ahead` waiters may take a lock now. Who holds something already
    /// overtakes all: others may wait for what it holds.
    fn may_take(&mut self, lock: &Lock, ahead: usize) -> bool {
        if self.in_the_way(lock).is_some() {
            return false;
        }
        let has_some = self.has(lock.holder);
        let mut passed = Vec::new();
        for (at, waiter) in self.waiters[..ahead].iter().enumerate() {
            if waiter.lock.conflicts(lock) {
                passed.push(at);
            }
        }
        let is_full = |at: &usize| self.waiters[*at].overtaken >= OVERTAKINGS;
        if !has_some && passed.iter().any(is_full) {
            return false;
        }
        for at in passed {
            self.waiters[at].overtaken += 1;
        }
        true
    }

    /// Serves all waiters that can be served.
    fn serve(&mut self) -> Vec<Ticket> {
        let mut served = Vec::new();
        let mut at = 0;
        while at < self.waiters.len() {
            let lock = self.waiters[at].lock;
            if self.may_take(&lock, at) {
                self.put(lock);
                served.push(self.waiters.remove(at).ticket);
                // It may have given up something by that, as a part that was exclusive.
                at = 0;
            } else {
                at += 1;
            }
        }
        served
    }

    /// Whether somebody that is in the way waits, over any number of others, for the holder.
    fn is_deadlock(&self, lock: &Lock) -> bool {
        let in_the_way = |lock: &Lock| {
            let all = self.held.iter().filter(|held| held.conflicts(lock));
            all.map(|held| held.holder).collect::<Vec<_>>()
        };
        let mut seen = Vec::new();
        let mut next = in_the_way(lock);
        while let Some(holder) = next.pop() {
            if holder == lock.holder {
                return true;
            }
            if seen.contains(&holder) {
                continue;
            }
            seen.push(holder);
            let wants = self.waiters.iter().filter(|one| one.lock.holder == holder);
            next.extend(wants.flat_map(|one| in_the_way(&one.lock)));
        }
        false
    }
}
