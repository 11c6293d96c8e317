// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The traits, for the store in memory.

use std::ops::Bound;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};

use super::{MemoryStore, OpenUpload, Operation};
use crate::error::{Failure, StoreError};
use crate::object::{Condition, ETag, ListRequest, Metadata, ObjectInfo, Page, Range};
use crate::store::{Objects, Part, Upload, Uploads};

/// S3's, of a part that is not the last.
const LEAST_PART_BYTES: usize = 5 << 20;

#[async_trait]
impl Objects for MemoryStore {
    async fn head(&self, key: &str) -> Result<ObjectInfo, StoreError> {
        self.meet(Operation::Head, key).await?;
        let inner = self.inner();
        Ok(inner.find(Operation::Head, key)?.info.clone())
    }

    async fn describe(&self, key: &str) -> Result<(ObjectInfo, Metadata), StoreError> {
        self.meet(Operation::Head, key).await?;
        let inner = self.inner();
        let object = inner.find(Operation::Head, key)?;
        Ok((object.info.clone(), object.about.clone()))
    }

    async fn get(&self, key: &str, range: Range, etag: &ETag) -> Result<Bytes, StoreError> {
        self.meet(Operation::Get, key).await?;
        let body = {
            let inner = self.inner();
            inner.find_same(Operation::Get, key, etag)?.body.clone()
        };
        if range.end > body.len() as u64 {
            let message = format!("range {range:?} of {} bytes", body.len());
            return Err(StoreError::new(
                Failure::Refused,
                Operation::Get.name(),
                key,
                &message,
            ));
        }
        self.faults().add_got(range.byte_count());
        Ok(body.slice(range.start as usize..range.end as usize))
    }

    async fn list(&self, request: &ListRequest) -> Result<Page, StoreError> {
        self.meet(Operation::List, &request.prefix).await?;
        let knows_middles = !self.faults().knows_no_middle();
        let inner = self.inner();
        let mut page = Page::default();
        let mut count = 0;
        let mut last = String::new();
        let start_after = request.start_after.as_ref();
        let start_after = start_after.filter(|_| knows_middles);
        let from = request.token.as_ref().or(start_after);
        let from = from.filter(|from| **from >= request.prefix).cloned();
        let from = from.map_or(Bound::Included(request.prefix.clone()), Bound::Excluded);
        let passed = request.token.as_ref().filter(|token| token.ends_with('/'));
        let mut passed_folder = passed.filter(|_| request.by_folder).cloned();
        for (key, object) in inner.objects.range((from, Bound::Unbounded)) {
            let Some(rest) = key.strip_prefix(&request.prefix) else {
                break;
            };
            if passed_folder.as_ref().is_some_and(|f| key.starts_with(f)) {
                continue;
            }
            let folder = rest.find('/').filter(|_| request.by_folder);
            if count == request.limit {
                page.next = Some(last);
                break;
            }
            count += 1;
            if let Some(end) = folder {
                let name = key[..request.prefix.len() + end + 1].to_owned();
                passed_folder = Some(name.clone());
                last.clone_from(&name);
                page.folders.push(name);
            } else {
                last.clone_from(key);
                page.objects.push((key.clone(), object.info.clone()));
            }
        }
        Ok(page)
    }

    async fn put_with(
        &self,
        key: &str,
        body: Bytes,
        about: &Metadata,
        when: &Condition,
    ) -> Result<ETag, StoreError> {
        self.meet(Operation::Put, key).await?;
        let etag = {
            let mut inner = self.inner();
            inner.hold(Operation::Put, key, when)?;
            inner.write(key, body, about.clone())
        };
        self.faults().meet_after(Operation::Put, key)?;
        Ok(etag)
    }

    async fn delete(&self, key: &str, when: &Condition) -> Result<(), StoreError> {
        self.meet(Operation::Delete, key).await?;
        let mut inner = self.inner();
        inner.hold(Operation::Delete, key, when)?;
        inner.objects.remove(key);
        drop(inner);
        self.faults().meet_after(Operation::Delete, key)
    }

    async fn copy(
        &self,
        from: &str,
        etag: &ETag,
        to: &str,
        when: &Condition,
    ) -> Result<ETag, StoreError> {
        self.meet(Operation::Copy, to).await?;
        let is_repeated = self.faults().take_repeat(to);
        let copied = self.copy_once(from, etag, to, when);
        if !is_repeated {
            return copied;
        }
        // The second attempt finds what the first one made.
        let copied = copied.and_then(|_| self.copy_once(from, etag, to, when));
        copied.map_err(StoreError::repeated)
    }
}

impl MemoryStore {
    fn copy_once(
        &self,
        from: &str,
        etag: &ETag,
        to: &str,
        when: &Condition,
    ) -> Result<ETag, StoreError> {
        let mut inner = self.inner();
        let source = inner.find_same(Operation::Copy, from, etag)?.clone();
        if source.info.is_archived {
            let message = "the object is in an archive";
            let name = Operation::Copy.name();
            return Err(StoreError::new(Failure::Archived, name, from, message));
        }
        inner.hold(Operation::Copy, to, when)?;
        let made = inner.write(to, source.body, source.about);
        let kept = self.faults().copies_keep_tags.then(|| etag.clone());
        if let (Some(kept), Some(copy)) = (&kept, inner.objects.get_mut(to)) {
            copy.info.etag = kept.clone();
        }
        let etag = kept.unwrap_or(made);
        drop(inner);
        self.faults().meet_after(Operation::Copy, to)?;
        Ok(etag)
    }

    /// Counts one request, which may have to wait, or to fail.
    async fn meet(&self, operation: Operation, key: &str) -> Result<(), StoreError> {
        let (met, before) = {
            let mut faults = self.faults();
            (
                faults.meet(operation, key),
                faults.take_before(operation, key),
            )
        };
        if let Some(before) = before {
            before.await;
        }
        met
    }

    fn add_part(
        &self,
        operation: Operation,
        upload: &Upload,
        number: u32,
        body: Bytes,
    ) -> Result<Part, StoreError> {
        let mut inner = self.inner();
        let etag = ETag::new(&format!("\"part-{number}-{}\"", body.len()));
        let open = inner.uploads.get_mut(&upload.id).ok_or_else(|| {
            StoreError::new(
                Failure::Missing,
                operation.name(),
                &upload.key,
                "no such upload",
            )
        })?;
        open.parts.insert(number, body);
        Ok(Part {
            number,
            etag,
            crc64: None,
        })
    }
}

#[async_trait]
impl Uploads for MemoryStore {
    async fn begin_with(&self, key: &str, about: &Metadata) -> Result<Upload, StoreError> {
        self.meet(Operation::Begin, key).await?;
        let mut inner = self.inner();
        inner.writes += 1;
        let id = format!("upload-{}", inner.writes);
        let open = OpenUpload {
            key: key.to_owned(),
            about: about.clone(),
            ..OpenUpload::default()
        };
        inner.uploads.insert(id.clone(), open);
        Ok(Upload {
            key: key.to_owned(),
            id,
        })
    }

    async fn send(&self, upload: &Upload, number: u32, body: Bytes) -> Result<Part, StoreError> {
        self.meet(Operation::Send, &upload.key).await?;
        self.add_part(Operation::Send, upload, number, body)
    }

    async fn copy_part(
        &self,
        upload: &Upload,
        number: u32,
        source: (&str, &ETag),
        range: Range,
    ) -> Result<Part, StoreError> {
        self.meet(Operation::CopyPart, &upload.key).await?;
        let body = {
            let inner = self.inner();
            let object = inner.find_same(Operation::CopyPart, source.0, source.1)?;
            object.body.slice(range.start as usize..range.end as usize)
        };
        self.add_part(Operation::CopyPart, upload, number, body)
    }

    async fn complete(
        &self,
        upload: &Upload,
        parts: &[Part],
        when: &Condition,
    ) -> Result<ETag, StoreError> {
        self.meet(Operation::Complete, &upload.key).await?;
        let mut inner = self.inner();
        inner.hold(Operation::Complete, &upload.key, when)?;
        let refuse = |message: &str| {
            StoreError::new(
                Failure::Refused,
                Operation::Complete.name(),
                &upload.key,
                message,
            )
        };
        let sent = inner.uploads.get(&upload.id).ok_or_else(|| StoreError {
            failure: Failure::Missing,
            ..refuse("no such upload")
        })?;
        if parts.is_empty() {
            return Err(refuse("an upload has at least one part"));
        }
        let mut body = BytesMut::new();
        for part in parts {
            let bytes = sent
                .parts
                .get(&part.number)
                .ok_or_else(|| refuse("a part is missing"))?;
            if part != &parts[parts.len() - 1] && bytes.len() < LEAST_PART_BYTES {
                return Err(refuse("a part is too small"));
            }
            body.extend_from_slice(bytes);
        }
        let about = sent.about.clone();
        inner.uploads.remove(&upload.id);
        let etag = inner.write(&upload.key, body.freeze(), about);
        drop(inner);
        self.faults().meet_after(Operation::Complete, &upload.key)?;
        Ok(etag)
    }

    async fn abort(&self, upload: &Upload) -> Result<(), StoreError> {
        self.meet(Operation::Abort, &upload.key).await?;
        self.inner().uploads.remove(&upload.id);
        Ok(())
    }

    async fn list_uploads(&self, prefix: &str) -> Result<Vec<Upload>, StoreError> {
        let inner = self.inner();
        let uploads = inner.uploads.iter();
        let named = uploads.map(|(id, open)| Upload {
            key: open.key.clone(),
            id: id.clone(),
        });
        Ok(named.filter(|one| one.key.starts_with(prefix)).collect())
    }
}
