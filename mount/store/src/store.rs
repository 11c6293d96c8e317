// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The operations of a store. Each future ends after the store's own attempts and time limits.
//! Dropping a future gives the request up; a write may still take effect.

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Failure, StoreError};
use crate::object::{Condition, ETag, ListRequest, Metadata, ObjectInfo, Page, Range};

/// Objects one by one, and their listings.
#[async_trait]
pub trait Objects: Send + Sync + 'static {
    /// What is known of an object.
    ///
    /// # Errors
    /// `Missing` where there is none.
    async fn head(&self, key: &str) -> Result<ObjectInfo, StoreError>;

    /// The same, and what was stored with the object.
    ///
    /// # Errors
    /// `Missing` where there is none.
    async fn describe(&self, key: &str) -> Result<(ObjectInfo, Metadata), StoreError>;

    /// The bytes of `range`, of the content that `etag` names: exactly as many as asked for.
    ///
    /// # Errors
    /// `Changed` where the object has another content, `Missing` where it is gone.
    async fn get(&self, key: &str, range: Range, etag: &ETag) -> Result<Bytes, StoreError>;

    /// One page of a listing.
    ///
    /// # Errors
    /// `NoBucket`, `Denied`.
    async fn list(&self, request: &ListRequest) -> Result<Page, StoreError>;

    /// Writes an object whole; up to 5 GiB.
    ///
    /// # Errors
    /// `Changed` where the condition does not hold.
    async fn put(&self, key: &str, body: Bytes, when: &Condition) -> Result<ETag, StoreError> {
        self.put_with(key, body, &Metadata::new(), when).await
    }

    /// The same, with something said about it.
    ///
    /// # Errors
    /// `Changed` where the condition does not hold.
    async fn put_with(
        &self,
        key: &str,
        body: Bytes,
        about: &Metadata,
        when: &Condition,
    ) -> Result<ETag, StoreError>;

    /// Removes an object. It is no error if there is none.
    ///
    /// # Errors
    /// `Changed` where the condition does not hold.
    async fn delete(&self, key: &str, when: &Condition) -> Result<(), StoreError>;

    /// Copies the content that `etag` names inside the store; up to 5 GiB.
    ///
    /// # Errors
    /// `Changed` where `from` has another content or the condition on `to` does not hold;
    /// `Unsupported` where the store cannot hold the condition.
    async fn copy(
        &self,
        from: &str,
        etag: &ETag,
        to: &str,
        when: &Condition,
    ) -> Result<ETag, StoreError>;
}

/// An upload of several parts that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The object to be.
    pub key: String,
    /// The store's name for the upload.
    pub id: String,
}

/// A part that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// From 1 to 10,000; they are put together in this order.
    pub number: u32,
    /// What the store answered.
    pub etag: ETag,
    /// The checksum by which the store knew the part whole, in base64, where it has one.
    pub crc64: Option<String>,
}

/// Objects in parts: each of 5 MiB or more but the last.
#[async_trait]
pub trait Uploads: Send + Sync + 'static {
    /// Begins an upload; nobody sees an object before [`Uploads::complete`].
    ///
    /// # Errors
    /// `Denied`, `NoBucket`.
    async fn begin(&self, key: &str) -> Result<Upload, StoreError> {
        self.begin_with(key, &Metadata::new()).await
    }

    /// The same, with something said about the object to be.
    ///
    /// # Errors
    /// `Denied`, `NoBucket`.
    async fn begin_with(&self, key: &str, about: &Metadata) -> Result<Upload, StoreError>;

    /// Sends one part. A number that was sent before is replaced.
    ///
    /// # Errors
    /// `Missing` where the upload was aborted.
    async fn send(&self, upload: &Upload, number: u32, body: Bytes) -> Result<Part, StoreError>;

    /// Makes a part of a range of an object, inside the store; up to 5 GiB.
    ///
    /// # Errors
    /// `Changed` where the object has another content than `source` names.
    async fn copy_part(
        &self,
        upload: &Upload,
        number: u32,
        source: (&str, &ETag),
        range: Range,
    ) -> Result<Part, StoreError>;

    /// Makes the object of its parts, which are in order of their numbers.
    ///
    /// # Errors
    /// `Changed` where the condition does not hold.
    async fn complete(
        &self,
        upload: &Upload,
        parts: &[Part],
        when: &Condition,
    ) -> Result<ETag, StoreError>;

    /// Gives an upload up, and its parts. It is no error if there is none.
    ///
    /// # Errors
    /// `Unreachable`, and then the parts stay and cost.
    async fn abort(&self, upload: &Upload) -> Result<(), StoreError>;

    /// The uploads of keys that begin so, which were neither completed nor aborted; up to 1,000.
    ///
    /// # Errors
    /// `Denied`; `Unsupported`.
    async fn list_uploads(&self, prefix: &str) -> Result<Vec<Upload>, StoreError>;
}

/// All that the mount asks for.
pub trait Store: Objects + Uploads {}

impl<T: Objects + Uploads> Store for T {}

impl dyn Store {
    /// What is known of an object, if there is one.
    ///
    /// # Errors
    /// As for [`Objects::head`], but for `Missing`.
    pub async fn find(&self, key: &str) -> Result<Option<ObjectInfo>, StoreError> {
        match self.head(key).await {
            Err(error) if error.failure == Failure::Missing => Ok(None),
            answer => answer.map(Some),
        }
    }
}
