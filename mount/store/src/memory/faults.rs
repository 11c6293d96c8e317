// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which requests of a [`MemoryStore`](super::MemoryStore) fail, and how many came.

use std::collections::{BTreeMap, VecDeque};

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

/// The plan of failures, and the count of requests.
#[derive(Debug, Default)]
pub struct Faults {
    planned: VecDeque<(Operation, u64, Failure)>,
    /// Requests that are done, and whose answers are lost.
    unheard: VecDeque<(Operation, u64)>,
    counts: BTreeMap<Operation, u64>,
    got_bytes: u64,
}

impl Faults {
    /// Fails the request of this kind that comes after `skipped` others of its kind.
    pub fn fail(&mut self, operation: Operation, skipped: u64, failure: Failure) {
        let at = self.count(operation) + skipped + 1;
        self.planned.push_back((operation, at, failure));
    }

    /// Does the request of this kind that comes after `skipped` others, and loses its answer:
    /// writes only.
    pub fn lose_answer(&mut self, operation: Operation, skipped: u64) {
        let at = self.count(operation) + skipped + 1;
        self.unheard.push_back((operation, at));
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
        let hit =
            |planned: &&(Operation, u64, Failure)| (planned.0, planned.1) == (operation, count);
        match self.planned.iter().find(hit) {
            Some((_, _, failure)) => Err(StoreError::new(
                *failure,
                operation.name(),
                key,
                "as the test wants",
            )),
            None => Ok(()),
        }
    }

    /// A request is done; its answer may have to be lost.
    pub(super) fn meet_after(&mut self, operation: Operation, key: &str) -> Result<(), StoreError> {
        if !self.unheard.contains(&(operation, self.count(operation))) {
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
