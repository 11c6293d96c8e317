// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which requests of a [`MemoryStore`](super::MemoryStore) fail, and how many came.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;

use crate::error::{Failure, StoreError};

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// HeadObject.
    Head,
    /// GetObject.
    Get,
    /// ListObjectsV2.
    List,
    /// PutObject.
    Put,
    /// DeleteObject.
    Delete,
    /// CopyObject.
    Copy,
    /// CreateMultipartUpload.
    Begin,
    /// UploadPart.
    Send,
    /// UploadPartCopy.
    CopyPart,
    /// CompleteMultipartUpload.
    Complete,
    /// AbortMultipartUpload.
    Abort,
}

impl Operation {
    /// Whether it changes what objects there are; its answer can be lost.
    fn is_write(self) -> bool {
        matches!(self, Self::Put | Self::Delete | Self::Copy | Self::Complete)
    }

    /// Its name at S3.
    pub fn name(self) -> &'static str {
        match self {
            Self::Head => "HeadObject",
            Self::Get => "GetObject",
            Self::List => "ListObjectsV2",
            Self::Put => "PutObject",
            Self::Delete => "DeleteObject",
            Self::Copy => "CopyObject",
            Self::Begin => "CreateMultipartUpload",
            Self::Send => "UploadPart",
            Self::CopyPart => "UploadPartCopy",
            Self::Complete => "CompleteMultipartUpload",
            Self::Abort => "AbortMultipartUpload",
        }
    }
}

/// What comes before a request is answered.
type Before = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Which request of a kind is meant.
#[derive(Debug)]
enum Which {
    /// By its number.
    Count(u64),
    /// The next one of this key: requests that are sent side by side come in any order.
    Key(String),
}

impl Which {
    fn is(&self, count: u64, key: &str) -> bool {
        match self {
            Self::Count(at) => *at == count,
            Self::Key(own) => own == key,
        }
    }
}

#[derive(Default)]
struct Befores(Vec<(Operation, Which, Before)>);

impl fmt::Debug for Befores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests", self.0.len())
    }
}

/// The plan of failures, and the count of requests.
#[derive(Debug, Default)]
pub struct Faults {
    planned: Vec<(Operation, Which, Failure)>,
    /// Requests that are done, and whose answers are lost.
    unheard: Vec<(Operation, Which)>,
    /// Copies likewise, by the keys they make, which the client asks for once more within a call.
    repeated_copies: Vec<String>,
    /// Requests that wait until something else has happened.
    befores: Befores,
    /// After so many requests the store is away: the last one is done or not, and not answered.
    away_after: Option<(u64, bool)>,
    counts: BTreeMap<Operation, u64>,
    got_bytes: u64,
    /// As a store that knows tokens only.
    knows_no_middle: bool,
    /// Whether a copy has the entity tag of its source, as in S3 if that was uploaded in one part.
    pub copies_keep_tags: bool,
}

impl Faults {
    /// Fails the request of this kind that comes after `skipped` others of its kind.
    pub fn fail(&mut self, operation: Operation, skipped: u64, failure: Failure) {
        let at = self.count(operation) + skipped + 1;
        self.planned.push((operation, Which::Count(at), failure));
    }

    /// Fails the next request of this kind for a key.
    pub fn fail_key(&mut self, operation: Operation, key: &str, failure: Failure) {
        let which = Which::Key(key.to_owned());
        self.planned.push((operation, which, failure));
    }

    /// Does the request of this kind that comes after `skipped` others, and loses its answer:
    /// writes only.
    pub fn lose_answer(&mut self, operation: Operation, skipped: u64) {
        let at = self.count(operation) + skipped + 1;
        self.unheard.push((operation, Which::Count(at)));
    }

    /// The same of the next request of this kind for a key.
    pub fn lose_answer_key(&mut self, operation: Operation, key: &str) {
        let which = Which::Key(key.to_owned());
        self.unheard.push((operation, which));
    }

    /// Does the next copy to a key, and loses its answer; the client asks once more within the same
    /// call, as SDKs do.
    pub fn repeat_copy(&mut self, to: &str) {
        self.repeated_copies.push(to.to_owned());
    }

    /// Whether a copy is asked for once more.
    pub(super) fn take_repeat(&mut self, to: &str) -> bool {
        let at = self.repeated_copies.iter().position(|key| key == to);
        at.is_some_and(|at| self.repeated_copies.swap_remove(at) == to)
    }

    /// The request of this kind that comes after `skipped` others waits for `before`: a pause, or
    /// what somebody else does in between.
    pub fn before(
        &mut self,
        operation: Operation,
        skipped: u64,
        before: impl Future<Output = ()> + Send + 'static,
    ) {
        let which = Which::Count(self.count(operation) + skipped + 1);
        self.befores.0.push((operation, which, Box::pin(before)));
    }

    /// The same of the next request of this kind for a key; of a copy, the one it makes.
    pub fn before_key(
        &mut self,
        operation: Operation,
        key: &str,
        before: impl Future<Output = ()> + Send + 'static,
    ) {
        let which = Which::Key(key.to_owned());
        self.befores.0.push((operation, which, Box::pin(before)));
    }

    /// What the request that was just counted waits for.
    pub(super) fn take_before(&mut self, operation: Operation, key: &str) -> Option<Before> {
        let count = self.count(operation);
        let is_due = |planned: &(Operation, Which, Before)| {
            planned.0 == operation && planned.1.is(count, key)
        };
        let at = self.befores.0.iter().position(is_due)?;
        Some(self.befores.0.swap_remove(at).2)
    }

    /// The store answers `count` requests more, then none: as if the client were killed. Of the
    /// next request, if it is a write, the store does what it asks, or not.
    pub fn away_after(&mut self, count: u64, is_next_done: bool) {
        self.away_after = Some((self.total() + count, is_next_done));
    }

    /// Listings heed no key to begin behind, as those of some stores.
    pub fn forget_middles(&mut self) {
        self.knows_no_middle = true;
    }

    /// Whether listings heed no key to begin behind.
    pub fn knows_no_middle(&self) -> bool {
        self.knows_no_middle
    }

    /// The store is back, and nothing is planned.
    pub fn clear(&mut self) {
        self.away_after = None;
        self.planned.clear();
        self.unheard.clear();
        self.repeated_copies.clear();
        self.befores.0.clear();
    }

    /// How many requests came in all.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// How many requests of this kind came, those that failed too.
    pub fn count(&self, operation: Operation) -> u64 {
        self.counts.get(&operation).copied().unwrap_or_default()
    }

    /// How many bytes GetObject handed out.
    pub fn got_bytes(&self) -> u64 {
        self.got_bytes
    }

    /// Counts one request, which may have to fail.
    pub(super) fn meet(&mut self, operation: Operation, key: &str) -> Result<(), StoreError> {
        *self.counts.entry(operation).or_default() += 1;
        let count = self.count(operation);
        if let Some((last, is_next_done)) = self.away_after {
            let is_next = self.total() == last + 1 && is_next_done;
            if self.total() > last && !(is_next && operation.is_write()) {
                let text = "the store is away, as the test wants";
                return Err(StoreError::new(
                    Failure::Unreachable,
                    operation.name(),
                    key,
                    text,
                ));
            }
        }
        let is_due = |planned: &(Operation, Which, Failure)| {
            planned.0 == operation && planned.1.is(count, key)
        };
        let Some(at) = self.planned.iter().position(is_due) else {
            return Ok(());
        };
        let (_, _, failure) = self.planned.swap_remove(at);
        let text = "as the test wants";
        Err(StoreError::new(failure, operation.name(), key, text))
    }

    /// A request is done; its answer may have to be lost.
    pub(super) fn meet_after(&mut self, operation: Operation, key: &str) -> Result<(), StoreError> {
        let is_away = self.away_after.is_some_and(|(last, _)| self.total() > last);
        let count = self.count(operation);
        let is_due =
            |planned: &(Operation, Which)| planned.0 == operation && planned.1.is(count, key);
        let due = self.unheard.iter().position(is_due);
        if let Some(at) = due {
            self.unheard.swap_remove(at);
        } else if !is_away {
            return Ok(());
        }
        let name = operation.name();
        let text = "done, and the answer is lost as the test wants";
        Err(StoreError::new(Failure::Unreachable, name, key, text))
    }

    pub(super) fn add_got(&mut self, byte_count: u64) {
        self.got_bytes += byte_count;
    }
}
