// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the object of an open file may lie whose folder is getting another name, and who follows
//! it. [`crate::renames`] knows the folders; [`crate::following`] knows what is open.

use async_trait::async_trait;
use weft_store::{ETag, ObjectInfo};

use crate::fault::Fault;
use crate::renames::copies::{Copies, IsCopy};
use crate::renames::record::Record;

/// Two places, in one of which the object of a file is. Both are keys below the mount's prefix.
#[derive(Clone)]
pub struct Trail {
    /// Before the rename.
    pub old: String,
    /// Afterwards.
    pub new: String,
    /// The content at the old place.
    pub etag: ETag,
    /// Its size, where that is known.
    size_bytes: Option<u64>,
    /// What is known of its copy.
    copies: Copies,
    /// How these name it.
    key: String,
}

impl Trail {
    /// Of a file of whose copy nothing is known.
    pub fn new(old: String, new: String, etag: ETag) -> Self {
        Self {
            old,
            new,
            etag,
            size_bytes: None,
            copies: Copies::of_other(),
            key: String::new(),
        }
    }

    /// Of a file, by its path, that the record of a rename names.
    pub fn of_record(record: &Record, copies: &Copies, path: &str) -> Option<Self> {
        let key = path.strip_prefix(&*record.from)?;
        let object = record.objects.iter().find(|object| object.key == key)?;
        Some(Self {
            old: path.to_owned(),
            new: format!("{}{key}", record.to),
            etag: ETag::new(&object.etag),
            size_bytes: Some(object.size_bytes),
            copies: copies.clone(),
            key: key.to_owned(),
        })
    }

    /// Whether an object at the new place is the copy, when the old place has not its source.
    pub fn is_copy(&self, found: &ObjectInfo) -> bool {
        let has_size = |size| size == found.size_bytes;
        found.etag == self.etag
            || match self.copies.is_copy(&self.key, &found.etag) {
                IsCopy::Yes => true,
                IsCopy::No => false,
                IsCopy::Unknown => self.size_bytes.is_none_or(has_size),
            }
    }
}

/// Knows the files that are open.
#[async_trait]
pub trait Follow: Send + Sync {
    /// A folder has its new name: what is open in it goes with it. With `is_whole` all that the
    /// record names was moved.
    async fn follow_folder(&self, record: &Record, copies: &Copies, is_whole: bool);

    /// Has a file that is about to be published the name that its object has.
    ///
    /// # Errors
    /// What the store said.
    async fn follow(&self, ino: u64) -> Result<(), Fault>;
}
