// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The buckets with their objects and unfinished uploads, in memory. A call locks the whole store
//! while it looks up or replaces, but never while bytes move.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use hyper::HeaderMap;
use time::OffsetDateTime;

use crate::checksum::{Algorithm, Sum};
use crate::condition::Conditions;
use crate::content::Content;
use crate::error::{Code, Result, S3Error};
use crate::object::Object;

/// All buckets by name.
#[derive(Debug, Default)]
pub struct Store {
    buckets: BTreeMap<String, Bucket>,
    /// Counts uploads, so that none has the identifier of another.
    uploads: u64,
}

/// One bucket.
#[derive(Debug)]
pub struct Bucket {
    /// By key, in the order in which they are listed.
    pub objects: BTreeMap<String, Arc<Object>>,
    /// By key and identifier, in the order in which they are listed.
    pub uploads: BTreeMap<(String, String), Upload>,
    /// When it was made.
    pub created: OffsetDateTime,
}

/// A multipart upload that is neither complete nor aborted.
#[derive(Clone, Debug)]
pub struct Upload {
    /// When it was begun.
    pub created: OffsetDateTime,
    /// What the object will carry.
    pub headers: HeaderMap,
    /// The checksum of its parts, where it was named; else each brings its own.
    pub algorithm: Option<Algorithm>,
    /// Whether the whole gets a checksum over its bytes rather than over its parts' checksums.
    pub full: bool,
    /// By number.
    pub parts: BTreeMap<u16, Part>,
}

/// One part that has arrived.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its bytes.
    pub content: Content,
    /// Without quotes.
    pub etag: String,
    /// Its checksum.
    pub sum: Option<Sum>,
    /// When it arrived.
    pub modified: OffsetDateTime,
}

impl Store {
    /// Makes a bucket; true where there was none.
    pub fn make_bucket(&mut self, name: &str) -> bool {
        let is_new = !self.buckets.contains_key(name);
        self.buckets
            .entry(name.to_owned())
            .or_insert_with(|| Bucket {
                objects: BTreeMap::new(),
                uploads: BTreeMap::new(),
                created: crate::object::now(),
            });
        is_new
    }

    /// Removes an empty bucket.
    ///
    /// # Errors
    /// `NoSuchBucket`, `BucketNotEmpty`.
    pub fn remove_bucket(&mut self, name: &str) -> Result<()> {
        if !self.bucket(name)?.objects.is_empty() {
            let text = "The bucket you tried to delete is not empty.";
            return Err(S3Error::new(Code::BucketNotEmpty, text));
        }
        self.buckets.remove(name);
        Ok(())
    }

    /// The buckets in order.
    pub fn buckets(&self) -> impl Iterator<Item = (&String, &Bucket)> {
        self.buckets.iter()
    }

    /// The bucket of that name.
    ///
    /// # Errors
    /// `NoSuchBucket`.
    pub fn bucket(&self, name: &str) -> Result<&Bucket> {
        self.buckets.get(name).ok_or_else(no_such_bucket)
    }

    /// The same, to change it.
    ///
    /// # Errors
    /// `NoSuchBucket`.
    pub fn bucket_mut(&mut self, name: &str) -> Result<&mut Bucket> {
        self.buckets.get_mut(name).ok_or_else(no_such_bucket)
    }

    /// An identifier for an upload that no other one has.
    pub fn new_upload_id(&mut self) -> String {
        self.uploads += 1;
        let mixed = self.uploads.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{mixed:016x}{:08x}", self.uploads)
    }
}

impl Bucket {
    /// The object at a key.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn object(&self, key: &str) -> Result<&Arc<Object>> {
        self.objects.get(key).ok_or_else(S3Error::no_such_key)
    }

    /// Puts an object in place of what is there, where the conditions hold.
    ///
    /// # Errors
    /// Those of [`Conditions::check_write`].
    pub fn put(&mut self, key: &str, object: Object, conditions: &Conditions) -> Result<()> {
        let there = self.objects.get(key).map(|object| &**object);
        conditions.check_write(there)?;
        self.objects.insert(key.to_owned(), Arc::new(object));
        Ok(())
    }

    /// Removes what is at a key, where the conditions hold; that nothing is there is no error.
    ///
    /// # Errors
    /// Those of [`Conditions::check_write`].
    pub fn delete(&mut self, key: &str, conditions: &Conditions) -> Result<()> {
        let there = self.objects.get(key).map(|object| &**object);
        conditions.check_write(there)?;
        self.objects.remove(key);
        Ok(())
    }

    /// The upload of that key and identifier.
    ///
    /// # Errors
    /// `NoSuchUpload`.
    pub fn upload_mut(&mut self, key: &str, id: &str) -> Result<&mut Upload> {
        self.uploads
            .get_mut(&(key.to_owned(), id.to_owned()))
            .ok_or_else(no_such_upload)
    }

    /// The keys from `from` on, with their objects.
    pub fn from(&self, from: Bound<&str>) -> impl Iterator<Item = (&String, &Arc<Object>)> {
        self.objects.range::<str, _>((from, Bound::Unbounded))
    }
}

fn no_such_bucket() -> S3Error {
    S3Error::new(Code::NoSuchBucket, "The specified bucket does not exist")
}

/// There is no such upload, or no longer.
pub fn no_such_upload() -> S3Error {
    let text = "The specified upload does not exist. The upload ID may be invalid, or the upload \
        may have been aborted or completed.";
    S3Error::new(Code::NoSuchUpload, text)
}
