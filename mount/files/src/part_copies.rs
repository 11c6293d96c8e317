// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The beginning of an object as the first parts of an upload, copied inside the store. Called by
//! [`crate::changes`] for objects that are too large for one copy, and by [`crate::draft`].

use weft_store::{ETag, Part, Range, Store, StoreError, Upload};

/// S3's least size of a part that is not the last.
const LEAST_PART_BYTES: u64 = 5 << 20;

/// What is copied, and into what.
pub struct PartCopies<'a> {
    /// Where both are.
    pub store: &'a dyn Store,
    /// It has no parts yet.
    pub upload: &'a Upload,
    /// Key and content.
    pub source: (&'a str, &'a ETag),
    /// Of one part; the last may be [`LEAST_PART_BYTES`] longer.
    pub most_bytes: u64,
}

impl PartCopies<'_> {
    /// Copies so many bytes. Every part may stand before others.
    ///
    /// # Errors
    /// What the store said.
    pub async fn of(&self, size_bytes: u64) -> Result<Vec<Part>, StoreError> {
        let mut parts = Vec::new();
        let mut at = 0;
        while at < size_bytes {
            let left = size_bytes - at;
            let size = if left < self.most_bytes + LEAST_PART_BYTES {
                left
            } else {
                self.most_bytes
            };
            let (number, range) = (parts.len() as u32 + 1, Range::new(at, at + size));
            let copied = self
                .store
                .copy_part(self.upload, number, self.source, range);
            parts.push(copied.await?);
            at += size;
        }
        Ok(parts)
    }
}
