// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A store in memory, for tests. It keeps conditions as S3 does, counts requests, and fails those
//! that a test picks.

mod faults;
mod operations;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;

pub use faults::{Faults, Operation};

use crate::error::{Failure, StoreError};
use crate::object::{Condition, ETag, Metadata, ObjectInfo};

/// One bucket in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
    faults: Mutex<Faults>,
}

#[derive(Debug, Default)]
struct Inner {
    objects: BTreeMap<String, Object>,
    uploads: BTreeMap<String, OpenUpload>,
    /// Counts writes: each gets a tag and a time of its own.
    writes: u64,
    /// Equal contents have equal tags, as at S3 where nothing is encrypted.
    has_tags_of_contents: bool,
}

#[derive(Debug, Clone)]
struct Object {
    body: Bytes,
    info: ObjectInfo,
    about: Metadata,
}

#[derive(Debug, Default)]
struct OpenUpload {
    key: String,
    about: Metadata,
    parts: BTreeMap<u32, Bytes>,
}

impl MemoryStore {
    /// An empty bucket.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on equal contents get equal tags, as at S3.
    pub fn tag_contents(&self) {
        self.inner().has_tags_of_contents = true;
    }

    /// Writes an object beside the trait, uncounted and without faults: somebody else's write.
    pub fn plant(&self, key: &str, body: impl Into<Bytes>) {
        self.inner().write(key, body.into(), Metadata::new());
    }

    /// Puts an object into an archive.
    pub fn archive(&self, key: &str) {
        if let Some(object) = self.inner().objects.get_mut(key) {
            object.info.is_archived = true;
        }
    }

    /// Removes an object likewise.
    pub fn uproot(&self, key: &str) {
        self.inner().objects.remove(key);
    }

    /// What an object holds.
    pub fn content(&self, key: &str) -> Option<Bytes> {
        let inner = self.inner();
        inner.objects.get(key).map(|object| object.body.clone())
    }

    /// What was said about an object when it was written.
    pub fn about(&self, key: &str) -> Option<Metadata> {
        let inner = self.inner();
        inner.objects.get(key).map(|object| object.about.clone())
    }

    /// All keys, in order.
    pub fn keys(&self) -> Vec<String> {
        self.inner().objects.keys().cloned().collect()
    }

    /// How many uploads are neither complete nor aborted.
    pub fn open_upload_count(&self) -> usize {
        self.inner().uploads.len()
    }

    /// Which requests fail, and how many of each kind came.
    pub fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn write(&mut self, key: &str, body: Bytes, about: Metadata) -> ETag {
        self.writes += 1;
        let mut number = self.writes;
        if self.has_tags_of_contents {
            let mut hasher = DefaultHasher::new();
            body.hash(&mut hasher);
            number = hasher.finish();
        }
        let etag = ETag::new(&format!("\"{number:08x}\""));
        let info = ObjectInfo {
            size_bytes: body.len() as u64,
            etag: etag.clone(),
            modified: UNIX_EPOCH + Duration::from_secs(1_000_000 + self.writes),
            is_archived: false,
        };
        self.objects
            .insert(key.to_owned(), Object { body, info, about });
        etag
    }

    fn find(&self, operation: Operation, key: &str) -> Result<&Object, StoreError> {
        let missing = || missing(operation, key);
        self.objects.get(key).ok_or_else(missing)
    }

    /// The object, if it has the content that `etag` names.
    fn find_same(
        &self,
        operation: Operation,
        key: &str,
        etag: &ETag,
    ) -> Result<&Object, StoreError> {
        let object = self.find(operation, key)?;
        if object.info.etag == *etag {
            Ok(object)
        } else {
            Err(changed(operation, key))
        }
    }

    fn hold(&self, operation: Operation, key: &str, when: &Condition) -> Result<(), StoreError> {
        let object = self.objects.get(key);
        let holds = match when {
            Condition::Always => true,
            Condition::IfAbsent => object.is_none(),
            Condition::IfMatch(etag) => object.is_some_and(|object| object.info.etag == *etag),
        };
        match when {
            _ if holds => Ok(()),
            // As S3 does.
            Condition::IfMatch(_) if object.is_none() => Err(missing(operation, key)),
            _ => Err(changed(operation, key)),
        }
    }
}

fn missing(operation: Operation, key: &str) -> StoreError {
    StoreError::new(Failure::Missing, operation.name(), key, "no such key")
}

fn changed(operation: Operation, key: &str) -> StoreError {
    StoreError::new(
        Failure::Changed,
        operation.name(),
        key,
        "a condition did not hold",
    )
}
