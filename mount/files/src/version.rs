// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One content of one object: what the cache of bytes is keyed by.

use sha2::{Digest, Sha256};
use weft_store::{ETag, ObjectInfo};

/// The first 128 bits of SHA-256 over key and entity tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(u128);

/// A content that does not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Names it in the cache.
    pub id: VersionId,
    /// The object's.
    pub key: String,
    /// The content's.
    pub etag: ETag,
    /// Of the content.
    pub size_bytes: u64,
}

impl Version {
    /// Of an object as a listing or a HEAD describes it.
    pub fn new(key: String, info: &ObjectInfo) -> Self {
        Self::named(key, &info.etag, info.size_bytes)
    }

    /// Of an object of which this is known.
    pub fn named(key: String, etag: &ETag, size_bytes: u64) -> Self {
        let mut digest = Sha256::new();
        digest.update(key.len().to_le_bytes());
        digest.update(&key);
        digest.update(etag.as_str());
        let digest = digest.finalize();
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        Self {
            id: VersionId(u128::from_le_bytes(first)),
            key,
            etag: etag.clone(),
            size_bytes,
        }
    }
}
