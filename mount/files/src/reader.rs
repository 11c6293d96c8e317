// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One open file that is read. It detects whether reads are sequential, and decides how far to
//! fetch ahead. Reads that are not sequential fetch only the bytes that they ask for.
//!
//! The distance adapts to the reader: it doubles whenever a sequential reader had to wait, up to
//! the reader's share of the cache. If a reader never waits, bytes already come as fast as it
//! reads.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use weft_store::{ETag, Range, StoreError};

use crate::pieces::Pieces;
use crate::version::Version;

/// Chosen: the kernel asks for pages ahead out of order, by as many requests of one size as this.
const SLACK_REQUESTS: u64 = 8;
/// Chosen: so many reads that follow each other are no accident of reads here and there.
const ORDERLY_READS: u32 = 3;
/// Chosen: the first distance, once that many reads followed each other.
const FIRST_DISTANCE_BYTES: u64 = 4 << 20;
/// Chosen: 12 connections of 90 MB/s and their first bytes fit in; more is memory for nothing.
const LARGEST_DISTANCE_BYTES: u64 = 192 << 20;
/// Chosen: what is fetched at once: large enough that the first byte's delay counts little.
const LARGEST_PART_BYTES: u64 = 8 << 20;
/// Chosen: and small enough that the first of them come soon.
const SMALLEST_PART_BYTES: u64 = 1 << 20;
/// Chosen: a file up to this size is fetched whole.
const SMALL_FILE_BYTES: u64 = 1 << 20;

#[derive(Debug, Default)]
struct Progress {
    /// Behind the last byte that a read in order asked for.
    next: u64,
    /// How many reads followed each other.
    streak: u32,
    distance_bytes: u64,
    /// Up to where fetches were begun.
    ahead: u64,
}

/// A content that is being read by one who opened it.
pub struct Reader {
    version: Arc<Version>,
    progress: Mutex<Progress>,
}

impl Reader {
    /// Begins before the first read.
    pub fn new(version: Arc<Version>) -> Self {
        Self {
            version,
            progress: Mutex::default(),
        }
    }

    /// Up to `size` bytes from `offset` on; fewer only at the end of the file.
    ///
    /// # Errors
    /// What the store said.
    pub async fn read(&self, pieces: &Pieces, offset: u64, size: u64) -> Result<Bytes, StoreError> {
        let end = offset.saturating_add(size).min(self.version.size_bytes);
        if offset >= end {
            return Ok(Bytes::new());
        }
        if self.version.size_bytes <= SMALL_FILE_BYTES {
            let whole = Range::new(0, self.version.size_bytes);
            let (bytes, _) = pieces.read(&self.version, whole).await?;
            return Ok(bytes.slice(offset as usize..end as usize));
        }
        let range = Range::new(offset, end);
        let in_order = self.note(range);
        if in_order {
            self.fetch_ahead(pieces, range);
        }
        let (bytes, had_to_wait) = pieces.read(&self.version, range).await?;
        if in_order && had_to_wait {
            self.widen(pieces);
        }
        Ok(bytes)
    }

    /// The same where all the bytes are here; never waits.
    pub fn read_now(&self, pieces: &Pieces, offset: u64, size: u64) -> Option<Bytes> {
        let end = offset.saturating_add(size).min(self.version.size_bytes);
        if offset >= end {
            return Some(Bytes::new());
        }
        let range = Range::new(offset, end);
        let bytes = pieces.here(&self.version, range)?;
        if self.version.size_bytes > SMALL_FILE_BYTES && self.note(range) {
            self.fetch_ahead(pieces, range);
        }
        Some(bytes)
    }

    /// The content that is read.
    pub fn etag(&self) -> &ETag {
        &self.version.etag
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a read into account. Whether it follows those before.
    fn note(&self, range: Range) -> bool {
        let mut progress = self.progress();
        let slack = SLACK_REQUESTS * range.byte_count();
        let from = progress.next.saturating_sub(slack);
        let follows = (from..=progress.next + slack).contains(&range.start);
        // A file's beginning is where readers in order begin, and others too.
        let may_be_first = progress.next == 0;
        if follows && !(may_be_first && range.start > 0) {
            progress.next = progress.next.max(range.end);
            progress.streak += 1;
        } else {
            *progress = Progress {
                next: range.end,
                streak: 1,
                distance_bytes: 0,
                ahead: range.end,
            };
        }
        if progress.streak >= ORDERLY_READS && progress.distance_bytes == 0 {
            progress.distance_bytes = FIRST_DISTANCE_BYTES;
        }
        progress.streak >= ORDERLY_READS
    }

    fn fetch_ahead(&self, pieces: &Pieces, range: Range) {
        let size = self.version.size_bytes;
        let mut progress = self.progress();
        let goal = (progress.next + progress.distance_bytes).min(size);
        let part = progress.distance_bytes / 8;
        let part = part.clamp(SMALLEST_PART_BYTES, LARGEST_PART_BYTES);
        progress.ahead = progress.ahead.max(range.start);
        // Whole parts, and the file's rest.
        while progress.ahead + part <= goal || (goal == size && progress.ahead < size) {
            let end = (progress.ahead / part * part + part).min(size);
            if !pieces.fetch_ahead(&self.version, Range::new(progress.ahead, end)) {
                break;
            }
            progress.ahead = end;
        }
    }

    fn widen(&self, pieces: &Pieces) {
        let mut progress = self.progress();
        let largest = LARGEST_DISTANCE_BYTES.min(pieces.ahead_limit_bytes());
        progress.distance_bytes = (progress.distance_bytes * 2).min(largest);
    }
}
