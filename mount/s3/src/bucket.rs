// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One bucket: the trait [`Objects`] over the SDK's client. [`crate::uploads`] has the other trait.

use std::collections::HashMap;
use std::time::SystemTime;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::{ByteStream, DateTime};
use aws_sdk_s3::types::{ChecksumAlgorithm, EncodingType, StorageClass};
use bytes::Bytes;
use weft_store::{
    Buffers, Condition, ETag, Failure, ListRequest, Metadata, ObjectInfo, Objects, Page, Range,
    StoreError,
};

use crate::attempts::Attempts;
use crate::body;
use crate::encoding::copy_source;
use crate::list_answer::ListAnswer;
use crate::refusal::{Asked, is_about_credentials};

/// Chosen: the SDK does not ask again when an answer breaks off in its body, so this does.
const BODY_ATTEMPTS: u32 = 4;

/// A client of one bucket. Clones share connections.
#[derive(Debug, Clone)]
pub struct Bucket {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) checksum: Option<ChecksumAlgorithm>,
    buffers: Buffers,
}

impl Bucket {
    pub(crate) fn new(client: Client, name: &str, with_checksums: bool, buffers: Buffers) -> Self {
        Self {
            client,
            name: name.to_owned(),
            checksum: with_checksums.then_some(ChecksumAlgorithm::Crc64Nvme),
            buffers,
        }
    }

    pub(crate) fn asked<'a>(&'a self, operation: &'static str, key: &'a str) -> Asked<'a> {
        Asked {
            operation,
            key,
            bucket: &self.name,
        }
    }

    async fn describe_once(&self, key: &str) -> Result<(ObjectInfo, Metadata), StoreError> {
        let asked = self.asked("HeadObject", key);
        let request = self.client.head_object().bucket(&self.name).key(key);
        let answer = request
            .send()
            .await
            .map_err(|error| asked.refused(&error))?;
        let is_archived = matches!(
            answer.storage_class(),
            Some(StorageClass::Glacier | StorageClass::DeepArchive)
        );
        let info = info(
            answer.content_length(),
            answer.e_tag(),
            answer.last_modified(),
            is_archived && answer.restore().is_none(),
        );
        let about = answer.metadata.unwrap_or_default().into_iter().collect();
        Ok((info, about))
    }

    async fn get_once(&self, key: &str, range: Range, etag: &ETag) -> Result<Bytes, StoreError> {
        let asked = self.asked("GetObject", key);
        let answer = self
            .client
            .get_object()
            .bucket(&self.name)
            .key(key)
            .if_match(etag.as_str())
            .range(format!("bytes={}-{}", range.start, range.end - 1))
            .send()
            .await
            .map_err(|error| asked.refused(&error))?;
        // Some stores ignore the condition, and then say what they sent.
        if answer.e_tag().is_some_and(|found| found != etag.as_str()) {
            return Err(asked.failed(Failure::Changed, "the object has another content by now"));
        }
        body::collect(answer.body, range, &asked, &self.buffers).await
    }
}

/// S3 always sends these; a store that does not is taken at its least.
pub(crate) fn info(
    size: Option<i64>,
    etag: Option<&str>,
    modified: Option<&DateTime>,
    is_archived: bool,
) -> ObjectInfo {
    let modified = modified.and_then(|time| SystemTime::try_from(*time).ok());
    ObjectInfo {
        size_bytes: size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
        etag: ETag::new(etag.unwrap_or_default()),
        modified: modified.unwrap_or(SystemTime::UNIX_EPOCH),
        is_archived,
    }
}

/// What is stored with an object, as the SDK wants it.
pub(crate) fn pairs(about: &Metadata) -> Option<HashMap<String, String>> {
    let pairs = about.iter();
    let pairs = pairs.map(|(name, value)| (name.clone(), value.clone()));
    (!about.is_empty()).then(|| pairs.collect())
}

/// The words of the two headers: If-Match, If-None-Match.
pub(crate) fn headers(when: &Condition) -> (Option<String>, Option<String>) {
    match when {
        Condition::Always => (None, None),
        Condition::IfAbsent => (None, Some("*".to_owned())),
        Condition::IfMatch(etag) => (Some(etag.as_str().to_owned()), None),
    }
}

#[async_trait]
impl Objects for Bucket {
    async fn head(&self, key: &str) -> Result<ObjectInfo, StoreError> {
        Ok(self.describe(key).await?.0)
    }

    async fn describe(&self, key: &str) -> Result<(ObjectInfo, Metadata), StoreError> {
        let described = self.describe_once(key).await;
        let is_refused = |error: &StoreError| {
            matches!(
                error.failure,
                Failure::Refused | Failure::Denied | Failure::Skewed
            )
        };
        if !described.as_ref().is_err_and(is_refused) {
            return described;
        }
        // No words come with this refusal. If the credentials have ended, this request hears so.
        let ask_why = self.client.list_objects_v2().bucket(&self.name).prefix(key);
        match ask_why.max_keys(1).send().await {
            Ok(_) => self.describe_once(key).await,
            Err(error) if is_about_credentials(&error) => {
                Err(self.asked("ListObjectsV2", key).refused(&error))
            }
            // What else keeps from listing says nothing of the object.
            Err(_) => described,
        }
    }

    async fn get(&self, key: &str, range: Range, etag: &ETag) -> Result<Bytes, StoreError> {
        let mut attempt = 1;
        loop {
            match self.get_once(key, range, etag).await {
                Err(error) if error.failure == Failure::Corrupt && attempt < BODY_ATTEMPTS => {
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }

    async fn list(&self, request: &ListRequest) -> Result<Page, StoreError> {
        let asked = self.asked("ListObjectsV2", &request.prefix);
        let answer = ListAnswer::default();
        self.client
            .list_objects_v2()
            .bucket(&self.name)
            .prefix(&request.prefix)
            .set_delimiter(request.by_folder.then(|| "/".to_owned()))
            .set_continuation_token(request.token.clone())
            .set_start_after(request.start_after.clone())
            .max_keys(i32::from(request.limit))
            .encoding_type(EncodingType::Url)
            .customize()
            .interceptor(answer.clone())
            .send()
            .await
            .map_err(|error| asked.refused(&error))?;
        // Empty would say that there is nothing.
        let page = answer.take();
        page.ok_or_else(|| asked.failed(Failure::Refused, "the answer was not read"))
    }

    async fn put_with(
        &self,
        key: &str,
        body: Bytes,
        about: &Metadata,
        when: &Condition,
    ) -> Result<ETag, StoreError> {
        let asked = self.asked("PutObject", key);
        let (if_match, if_none_match) = headers(when);
        let answer = self
            .client
            .put_object()
            .bucket(&self.name)
            .key(key)
            .set_metadata(pairs(about))
            .set_checksum_algorithm(self.checksum.clone())
            .set_if_match(if_match)
            .set_if_none_match(if_none_match)
            .body(ByteStream::from(body))
            .send()
            .await
            .map_err(|error| asked.refused(&error))?;
        Ok(ETag::new(answer.e_tag().unwrap_or_default()))
    }

    async fn delete(&self, key: &str, when: &Condition) -> Result<(), StoreError> {
        let asked = self.asked("DeleteObject", key);
        let request = self.client.delete_object().bucket(&self.name).key(key);
        let sent = request.set_if_match(headers(when).0).send().await;
        match sent.map_err(|error| asked.refused(&error)) {
            Err(error) if error.failure == Failure::Missing && *when == Condition::Always => Ok(()),
            answer => answer.map(drop),
        }
    }

    async fn copy(
        &self,
        from: &str,
        etag: &ETag,
        to: &str,
        when: &Condition,
    ) -> Result<ETag, StoreError> {
        let asked = self.asked("CopyObject", to);
        let attempts = Attempts::default();
        let (if_match, if_none_match) = headers(when);
        let answer = self
            .client
            .copy_object()
            .bucket(&self.name)
            .key(to)
            .copy_source(copy_source(&self.name, from))
            .copy_source_if_match(etag.as_str())
            .set_if_match(if_match)
            .set_if_none_match(if_none_match)
            .customize()
            .interceptor(attempts.clone())
            .send()
            .await
            .map_err(|error| attempts.said(asked.refused(&error)))?;
        let copied = answer
            .copy_object_result()
            .and_then(|result| result.e_tag());
        Ok(ETag::new(copied.unwrap_or_default()))
    }
}
