// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The matcher: posted receives on one side, unexpected messages on the other.
//!
//! Called by the endpoint when a message arrives and when a receive is posted; calls `posted` and
//! `unexpected`. The two sides are independent: the endpoint looks at one before it adds to the
//! other.

use std::fmt;
use std::marker::PhantomData;

use weft_contract::RemoteId;

use crate::posted::{Found, Posted};
use crate::recent::Front;
use crate::slab::Id;
use crate::unexpected::Unexpected;
use crate::want::{Key, Want};

/// Names a posted receive until it is removed; names nothing afterwards.
#[derive(Clone, Copy, Debug)]
pub struct PostedId(Id);

// Where it lies may change while it waits, and with it the index.
impl PartialEq for PostedId {
    fn eq(&self, other: &Self) -> bool {
        self.0.sequence == other.0.sequence
    }
}

impl Eq for PostedId {}

/// Names an unexpected message until it is removed; names nothing afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnexpectedId(Id);

/// Posted receives, each with an `R` of the owner, and unexpected messages, each with a `U`.
///
/// Not synchronised; no method blocks. Nothing is allocated while the number of entries, of
/// different tags and of different masks stays below what it was before.
pub struct Matcher<R, U> {
    posted: Posted<R>,
    unexpected: Unexpected<U>,
}

impl<R, U> Matcher<R, U> {
    /// A matcher with nothing posted and nothing arrived. Setup.
    pub fn new() -> Self {
        Matcher {
            posted: Posted::new(),
            unexpected: Unexpected::new(),
        }
    }

    /// The earliest posted receive that a message from `source` with `tag` matches; it stays posted
    /// until `take`n.
    ///
    /// Fast path: constant time for each mask (ignore bits, and source given or not) with which
    /// receives are posted now.
    #[inline(always)]
    pub fn find_posted(&mut self, source: RemoteId, tag: u64) -> Option<PostedMut<'_, R, U>> {
        let found = self.posted.find(Key {
            source: source.0,
            tag,
        })?;
        Some(PostedMut {
            posted: &mut self.posted,
            found,
            messages: PhantomData,
        })
    }

    /// The same for most messages, in fewer steps: those that match the earliest receive of all.
    /// `None` says only that `find_posted` must be asked. Fast path.
    #[inline(always)]
    pub fn find_first_posted(&mut self, source: RemoteId, tag: u64) -> Option<FirstPosted<'_, R>> {
        let key = Key {
            source: source.0,
            tag,
        };
        let front = self.posted.find_front(key)?;
        Some(FirstPosted { front })
    }

    /// Keeps a message that no posted receive matches, after all earlier ones. Fast path.
    #[inline(always)]
    pub fn push_unexpected(&mut self, source: RemoteId, tag: u64, message: U) -> UnexpectedId {
        UnexpectedId(self.unexpected.push(
            Key {
                source: source.0,
                tag,
            },
            message,
        ))
    }

    /// The earliest arrived unexpected message that satisfies `want`.
    ///
    /// Fast path: constant time, except that the first call with a mask may be linear in the
    /// messages that wait, and that masks in turn beyond eight are linear.
    #[inline(always)]
    pub fn find_unexpected(&mut self, want: Want) -> Option<UnexpectedId> {
        self.unexpected.find(want).map(UnexpectedId)
    }

    /// Content of an unexpected message; `None` when `id` is stale. Fast path.
    #[inline(always)]
    pub fn unexpected(&self, id: UnexpectedId) -> Option<&U> {
        self.unexpected.get(id.0)
    }

    /// The same, to be changed. Fast path.
    #[inline(always)]
    pub fn unexpected_mut(&mut self, id: UnexpectedId) -> Option<&mut U> {
        self.unexpected.get_mut(id.0)
    }

    /// Removes an unexpected message and gives its content; `None` when `id` is stale. Fast path.
    #[inline(always)]
    pub fn remove_unexpected(&mut self, id: UnexpectedId) -> Option<U> {
        self.unexpected.remove(id.0)
    }

    /// Removes an unexpected message, which must not be stale, and drops it where it lies. Fast
    /// path.
    #[inline(always)]
    pub fn discard_unexpected(&mut self, id: UnexpectedId) {
        self.unexpected.discard(id.0);
    }

    /// Posts a receive after all earlier ones. The caller has found no unexpected message that
    /// satisfies `want`. Fast path.
    #[inline(always)]
    pub fn post(&mut self, want: Want, receive: R) -> PostedId {
        PostedId(self.posted.push(want, receive))
    }

    /// Removes a posted receive; `None` when `id` is stale. Slow path: linear if it is not among
    /// the latest and was named while it was.
    #[inline(always)]
    pub fn remove_posted(&mut self, id: PostedId) -> Option<R> {
        self.posted.remove(id.0)
    }

    /// Removes the earliest posted receive that `select`s; `select` sees receives in no particular
    /// order. Slow path: linear.
    pub fn cancel(&mut self, select: impl FnMut(&R) -> bool) -> Option<R> {
        self.posted.cancel(select)
    }

    /// Removes the earliest posted receive that names `source`; call until `None` when a remote is
    /// lost. Slow path: one linear sweep serves the calls that follow it.
    pub fn remove_posted_from(&mut self, source: RemoteId) -> Option<R> {
        self.posted.remove_from(source.0)
    }

    /// The earliest unexpected message from `source` that `select`s; `select` sees messages in
    /// order of arrival. Slow path: linear.
    pub fn find_unexpected_from(
        &self,
        source: RemoteId,
        select: impl FnMut(&U) -> bool,
    ) -> Option<UnexpectedId> {
        self.unexpected
            .find_from(source.0, select)
            .map(UnexpectedId)
    }

    /// Removes the earliest unexpected message from `source` that `select`s; `select` sees messages
    /// in order of arrival. Slow path: linear.
    pub fn remove_unexpected_from(
        &mut self,
        source: RemoteId,
        select: impl FnMut(&U) -> bool,
    ) -> Option<U> {
        let id = self.find_unexpected_from(source, select)?;
        self.remove_unexpected(id)
    }

    /// How many posted receives name `source`. Slow path: looks at the latest.
    pub fn directed_count(&self, source: RemoteId) -> u32 {
        self.posted.directed_count(source.0)
    }

    /// How many receives are posted. Fast path.
    #[inline(always)]
    pub fn posted_count(&self) -> usize {
        self.posted.count()
    }

    /// How many unexpected messages wait. Fast path.
    #[inline(always)]
    pub fn unexpected_count(&self) -> usize {
        self.unexpected.count()
    }
}

impl<R, U> Default for Matcher<R, U> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R, U> fmt::Debug for Matcher<R, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Matcher");
        out.field("posted", &self.posted_count())
            .field("unexpected", &self.unexpected_count())
            .finish()
    }
}

/// A posted receive that a message matches, still posted.
pub struct PostedMut<'a, R, U> {
    posted: &'a mut Posted<R>,
    found: Found,
    messages: PhantomData<fn() -> U>,
}

impl<R, U> PostedMut<'_, R, U> {
    /// What the owner keeps with the receive. Fast path.
    #[inline(always)]
    pub fn receive(&mut self) -> &mut R {
        present(self.posted.receive_mut(self.found))
    }

    /// What the receive asks for.
    pub fn want(&self) -> Want {
        present(self.posted.want(self.found))
    }

    /// Names the receive for later. Fast path.
    #[inline(always)]
    pub fn id(&self) -> PostedId {
        PostedId(present(self.posted.id(self.found)))
    }

    /// Removes the receive. Fast path.
    #[inline(always)]
    pub fn take(self) -> R {
        present(self.posted.take(self.found))
    }
}

/// The earliest posted receive, which a message matches, still posted.
pub struct FirstPosted<'a, R> {
    front: Front<'a, R>,
}

impl<R> FirstPosted<'_, R> {
    /// What the owner keeps with the receive. Fast path.
    #[inline(always)]
    pub fn receive(&mut self) -> &mut R {
        present(self.front.recent.body.as_mut())
    }

    /// Removes the receive without dropping it: for one that owns nothing. Fast path.
    #[inline(always)]
    pub fn forget(self) {
        self.front.forget();
    }
}

/// A found receive is present: `PostedMut` borrows the matcher from the moment it was found.
#[inline(always)]
fn present<T>(found: Option<T>) -> T {
    match found {
        Some(value) => value,
        None => unreachable!("a posted receive left while it was borrowed"),
    }
}
