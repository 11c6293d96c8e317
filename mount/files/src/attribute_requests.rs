// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The requests that read and write an attribute object's content. [`crate::attribute_sync`] and
//! [`crate::renames`] send them.

use bytes::Bytes;
use weft_store::{Condition, ETag, Failure, ObjectInfo, Range, Store, StoreError};

use crate::attribute_object::{self, Names, Unreadable};
use crate::names;

/// What the object of this content says, or why this mount cannot read it.
///
/// # Errors
/// What the store said.
pub async fn get(
    store: &dyn Store,
    key: &str,
    info: &ObjectInfo,
) -> Result<Result<Names, Unreadable>, StoreError> {
    if info.size_bytes > attribute_object::MOST_BYTES {
        return Ok(Err(Unreadable::TooLarge(info.size_bytes)));
    }
    if info.size_bytes == 0 {
        return Ok(Err(Unreadable::NoJson("it is empty".to_owned())));
    }
    let range = Range::new(0, info.size_bytes);
    let body = store.get(key, range, &info.etag).await?;
    let is_name = |name: &str| names::check(name).is_ok();
    Ok(attribute_object::read(&body, is_name))
}

/// Writes the object, in any case where the store knows no such condition.
///
/// # Errors
/// What the store said.
pub async fn put(
    store: &dyn Store,
    key: &str,
    body: Bytes,
    when: &Condition,
) -> Result<ETag, StoreError> {
    match store.put(key, body.clone(), when).await {
        Err(error) if error.failure == Failure::Unsupported => {
            store.put(key, body, &Condition::Always).await
        }
        put => put,
    }
}
