// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects that the store copies whole: in one request, or, if they are too large for one, in parts
//! that are copied in parallel. Called by [`crate::changes`], [`crate::renames`] and
//! [`crate::hidden`].

use std::sync::Arc;

use tokio::task::JoinSet;
use weft_store::{Condition, ETag, Failure, ObjectInfo, Part, Range, StoreError, Upload};

use crate::fault::mount_ends;
use crate::staging::ways::Ways;

/// S3's largest copy in one request; more is copied in parts.
const COPY_BYTES: u64 = 5 << 30;
/// Chosen: the parts of a larger one.
const COPY_PART_BYTES: u64 = 1 << 30;
/// S3's least size of a part that is not the last.
const LEAST_PART_BYTES: u64 = 5 << 20;
/// Chosen: parts that are copied side by side.
const SIDE_BY_SIDE: usize = 16;
/// Chosen: the bytes of each of two objects that are compared at once.
const COMPARED_BYTES: u64 = 2 << 20;

/// An object that is copied.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// Its own.
    pub key: &'a str,
    /// Its content.
    pub info: &'a ObjectInfo,
}

impl<'a> Source<'a> {
    /// Of this key, with this content.
    pub fn new(key: &'a str, info: &'a ObjectInfo) -> Self {
        Self { key, info }
    }
}

/// The same as [`copy_object`], but where the answer to an attempt was lost, and the next one was
/// refused since the first was done, the object that is there counts as the copy if it has the
/// bytes of the source. No bytes are lost then, whoever wrote it; but two who want one name may
/// both get it, and metadata that only the source has go with it.
///
/// # Errors
/// As [`copy_object`].
pub async fn copy_by_content(
    ways: &Ways,
    from: Source<'_>,
    to: &str,
    when: &Condition,
) -> Result<ETag, StoreError> {
    let refused = match copy_object(ways, from, to, when).await {
        Err(error) if error.is_repeated && is_otherwise(&error) => error,
        answer => return answer,
    };
    let Some(info) = ways.store.find(to).await? else {
        return Err(refused);
    };
    if !info.etag.as_str().is_empty() && info.etag == from.info.etag {
        return Ok(info.etag);
    }
    match has_same_content(ways, from, Source::new(to, &info)).await {
        Ok(true) => Ok(info.etag),
        Ok(false) => Err(refused),
        // One of the two changed meanwhile.
        Err(error) if is_otherwise(&error) => Err(refused),
        Err(error) => Err(error),
    }
}

/// Whether a request failed because somebody changed or removed something, or may have.
pub fn is_otherwise(error: &StoreError) -> bool {
    matches!(error.failure, Failure::Changed | Failure::Missing)
}

/// Whether two objects have the same bytes: both are read.
///
/// # Errors
/// `Changed` and `Missing` where one of them is another one by now; what the store said.
pub async fn has_same_content(
    ways: &Ways,
    one: Source<'_>,
    other: Source<'_>,
) -> Result<bool, StoreError> {
    let size_bytes = one.info.size_bytes;
    if size_bytes != other.info.size_bytes || other.info.is_archived {
        return Ok(false);
    }
    let mut at = 0;
    while at < size_bytes {
        let range = Range::new(at, size_bytes.min(at + COMPARED_BYTES));
        let get = |source: Source<'_>| {
            let (store, key) = (Arc::clone(&ways.store), source.key.to_owned());
            let etag = source.info.etag.clone();
            async move { store.get(&key, range, &etag).await }
        };
        // Of the memory for parts: a folder's rename compares many pairs side by side.
        let _room = ways.room_for(Range::new(0, range.byte_count() * 2)).await;
        // Given up with this.
        let mut others = JoinSet::new();
        others.spawn_on(get(other), &ways.runtime);
        let bytes = get(one).await?;
        let others = match others.join_next().await {
            Some(Ok(others)) => others?,
            _ => return Err(mount_ends("GetObject", other.key)),
        };
        if bytes != others {
            return Ok(false);
        }
        at = range.end;
    }
    Ok(true)
}

/// Copies an object under a condition on the target.
///
/// # Errors
/// `Changed` where the source is another one, or the condition does not hold; what the store said.
pub async fn copy_object(
    ways: &Ways,
    from: Source<'_>,
    to: &str,
    when: &Condition,
) -> Result<ETag, StoreError> {
    if from.info.size_bytes <= COPY_BYTES {
        return ways.store.copy(from.key, &from.info.etag, to, when).await;
    }
    let upload = ways.store.begin(to).await?;
    let done = copy_parts(ways, from, &upload, when).await;
    if done.is_err() {
        // What the abort leaves is found by whoever lists the bucket's uploads.
        let _ = ways.store.abort(&upload).await;
    }
    done
}

/// Removes an object that still has this content; whether none of this content is left. Where the
/// store refuses the condition, the object is looked at before.
///
/// # Errors
/// What the store said.
pub async fn delete_same(ways: &Ways, key: &str, etag: &ETag) -> Result<bool, StoreError> {
    match ways
        .store
        .delete(key, &Condition::IfMatch(etag.clone()))
        .await
    {
        Ok(()) => Ok(true),
        Err(error) if error.failure == Failure::Missing => Ok(true),
        Err(error) if error.failure == Failure::Changed => Ok(false),
        Err(error) if error.failure == Failure::Unsupported => match ways.store.find(key).await? {
            Some(info) if info.etag == *etag => {
                ways.store.delete(key, &Condition::Always).await?;
                Ok(true)
            }
            Some(_) => Ok(false),
            None => Ok(true),
        },
        Err(error) => Err(error),
    }
}

async fn copy_parts(
    ways: &Ways,
    from: Source<'_>,
    upload: &Upload,
    when: &Condition,
) -> Result<ETag, StoreError> {
    let mut tasks: JoinSet<Result<Part, StoreError>> = JoinSet::new();
    let mut parts = Vec::new();
    for (index, range) in ranges(from.info.size_bytes).into_iter().enumerate() {
        if tasks.len() >= SIDE_BY_SIDE {
            parts.extend(take(&mut tasks).await?);
        }
        let (store, upload) = (Arc::clone(&ways.store), upload.clone());
        let (key, etag) = (from.key.to_owned(), from.info.etag.clone());
        let number = index as u32 + 1;
        let copy = async move { store.copy_part(&upload, number, (&key, &etag), range).await };
        tasks.spawn_on(copy, &ways.runtime);
    }
    while !tasks.is_empty() {
        parts.extend(take(&mut tasks).await?);
    }
    parts.sort_by_key(|part| part.number);
    ways.store.complete(upload, &parts, when).await
}

async fn take(tasks: &mut JoinSet<Result<Part, StoreError>>) -> Result<Option<Part>, StoreError> {
    match tasks.join_next().await {
        Some(Ok(part)) => part.map(Some),
        Some(Err(_)) => Err(mount_ends("UploadPartCopy", "")),
        None => Ok(None),
    }
}

/// The parts: every one may stand before others.
fn ranges(size_bytes: u64) -> Vec<Range> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < size_bytes {
        let left = size_bytes - at;
        let size = if left < COPY_PART_BYTES + LEAST_PART_BYTES {
            left
        } else {
            COPY_PART_BYTES
        };
        ranges.push(Range::new(at, at + size));
        at += size;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_an_object_and_none_is_too_small() {
        for size in [6 << 30, (6 << 30) + 1, (6 << 30) - 1, 48 << 40 >> 10] {
            let ranges = ranges(size);
            assert_eq!(ranges.iter().map(Range::byte_count).sum::<u64>(), size);
            assert!(
                ranges
                    .iter()
                    .all(|range| range.byte_count() >= LEAST_PART_BYTES)
            );
            assert!(ranges.len() <= 10_000);
        }
    }
}
