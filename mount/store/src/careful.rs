// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replaces conditions that a store does not keep: it looks at the object before the request. A
//! change that somebody else makes between the two is lost. So this is used only for stores where
//! [`crate::probe`] found a condition missing. `mount/daemon` puts it in front.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Failure, StoreError};
use crate::object::{Condition, ETag, ListRequest, Metadata, ObjectInfo, Page, Range};
use crate::probe::Ability;
use crate::store::{Objects, Part, Store, Upload, Uploads};

/// A store without some abilities.
pub struct Careful {
    store: Arc<dyn Store>,
    lacks: Vec<Ability>,
}

impl Careful {
    /// In front of `store`, which lacks these.
    pub fn new(store: Arc<dyn Store>, lacks: Vec<Ability>) -> Self {
        Self { store, lacks }
    }

    /// The condition to ask for, once one that the store does not keep was looked at.
    async fn when(
        &self,
        ability: Ability,
        key: &str,
        when: &Condition,
    ) -> Result<Condition, StoreError> {
        if !self.lacks.contains(&ability) {
            return Ok(when.clone());
        }
        let holds = match when {
            Condition::Always => true,
            Condition::IfAbsent => self.store.find(key).await?.is_none(),
            Condition::IfMatch(etag) => {
                let found = self.store.find(key).await?;
                found.is_some_and(|info| info.etag == *etag)
            }
        };
        if holds {
            return Ok(Condition::Always);
        }
        let text = "the object is not as it was: somebody else wrote it or removed it";
        let operation = ability.operation();
        Err(StoreError::new(Failure::Changed, operation, key, text))
    }
}

#[async_trait]
impl Objects for Careful {
    async fn head(&self, key: &str) -> Result<ObjectInfo, StoreError> {
        self.store.head(key).await
    }

    async fn describe(&self, key: &str) -> Result<(ObjectInfo, Metadata), StoreError> {
        self.store.describe(key).await
    }

    async fn get(&self, key: &str, range: Range, etag: &ETag) -> Result<Bytes, StoreError> {
        self.store.get(key, range, etag).await
    }

    async fn list(&self, request: &ListRequest) -> Result<Page, StoreError> {
        self.store.list(request).await
    }

    async fn put_with(
        &self,
        key: &str,
        body: Bytes,
        about: &Metadata,
        when: &Condition,
    ) -> Result<ETag, StoreError> {
        let when = self.when(Ability::Puts, key, when).await?;
        self.store.put_with(key, body, about, &when).await
    }

    async fn delete(&self, key: &str, when: &Condition) -> Result<(), StoreError> {
        let when = self.when(Ability::Deletes, key, when).await?;
        self.store.delete(key, &when).await
    }

    async fn copy(
        &self,
        from: &str,
        etag: &ETag,
        to: &str,
        when: &Condition,
    ) -> Result<ETag, StoreError> {
        let when = self.when(Ability::Copies, to, when).await?;
        self.store.copy(from, etag, to, &when).await
    }
}

#[async_trait]
impl Uploads for Careful {
    async fn begin_with(&self, key: &str, about: &Metadata) -> Result<Upload, StoreError> {
        self.store.begin_with(key, about).await
    }

    async fn send(&self, upload: &Upload, number: u32, body: Bytes) -> Result<Part, StoreError> {
        self.store.send(upload, number, body).await
    }

    async fn copy_part(
        &self,
        upload: &Upload,
        number: u32,
        source: (&str, &ETag),
        range: Range,
    ) -> Result<Part, StoreError> {
        self.store.copy_part(upload, number, source, range).await
    }

    async fn complete(
        &self,
        upload: &Upload,
        parts: &[Part],
        when: &Condition,
    ) -> Result<ETag, StoreError> {
        let when = self.when(Ability::Completions, &upload.key, when).await?;
        self.store.complete(upload, parts, &when).await
    }

    async fn abort(&self, upload: &Upload) -> Result<(), StoreError> {
        self.store.abort(upload).await
    }

    async fn list_uploads(&self, prefix: &str) -> Result<Vec<Upload>, StoreError> {
        self.store.list_uploads(prefix).await
    }
}
