// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The types that the traits of [`crate::store`] use to describe objects.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// An entity tag, with its quotation marks, as the store sent it. Two contents of one key have
/// different tags.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ETag(Arc<str>);

impl ETag {
    /// From the text of a header.
    pub fn new(text: &str) -> Self {
        Self(Arc::from(text))
    }

    /// The text for a header.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a listing or a HEAD says of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Of the content, in bytes.
    pub size_bytes: u64,
    /// Of the content.
    pub etag: ETag,
    /// When it was written, by the store's clock.
    pub modified: SystemTime,
    /// Whether it lies in an archive, from which it must be restored before it can be read.
    pub is_archived: bool,
}

/// What is stored with an object by whoever writes it: names in lower case, values in ASCII; 2 KB
/// in all.
pub type Metadata = BTreeMap<String, String>;

/// A range of bytes: from `start` up to and without `end`; never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first byte.
    pub start: u64,
    /// The byte behind the last.
    pub end: u64,
}

impl Range {
    /// From `start` up to and without `end`.
    ///
    /// # Panics
    /// When it is empty.
    pub fn new(start: u64, end: u64) -> Self {
        assert!(start < end, "an empty range {start}..{end}");
        Self { start, end }
    }

    /// How many bytes; at least 1.
    pub fn byte_count(&self) -> u64 {
        self.end - self.start
    }
}

/// One page of a listing is asked for. Keys come in the order of their UTF-8 bytes.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// Only keys that begin so.
    pub prefix: String,
    /// Groups the keys that have a `/` behind the prefix by what stands before it.
    pub by_folder: bool,
    /// The [`Page::next`] of the page before; empty for the first page.
    pub token: Option<String>,
    /// Only keys behind this one, where there is no token; a group counts by its keys.
    pub start_after: Option<String>,
    /// 1 to 1,000 keys and groups.
    pub limit: u16,
}

/// One page of a listing.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Objects with their whole keys.
    pub objects: Vec<(String, ObjectInfo)>,
    /// Groups: whole prefixes that end in `/`.
    pub folders: Vec<String>,
    /// For the next page, where there is one.
    pub next: Option<String>,
}

/// What must be so for a write to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Condition {
    /// Whatever is there.
    #[default]
    Always,
    /// Only if the key has no object.
    IfAbsent,
    /// Only if the object has this content.
    IfMatch(ETag),
}
