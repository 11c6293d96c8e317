// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The places of one staged file's bytes: where each is read, which of them the store already has,
//! and which were dropped after they were sent. [`crate::staging::content`] holds one.
//!
//! Bytes that were written here and then published are still read from this host's disk. The next
//! upload copies them inside the store.

use std::sync::Arc;

use weft_store::Range;

use crate::staging::extents::{Extents, Source, Stretch};
use crate::version::Version;

/// Of one file.
#[derive(Debug, Default)]
pub struct Places {
    size: u64,
    read: Extents,
    stored: Extents,
    dropped: Extents,
}

impl Places {
    /// All of it is an object, or it is empty.
    pub fn new(version: Option<&Arc<Version>>) -> Self {
        let read = version.map(|version| Extents::of(version, version.size_bytes));
        let read = read.unwrap_or_default();
        Self {
            size: version.map_or(0, |version| version.size_bytes),
            stored: read.clone(),
            read,
            dropped: Extents::default(),
        }
    }

    /// Of the file, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The file has this length now.
    pub fn resize(&mut self, size: u64) {
        for extents in [&mut self.read, &mut self.stored, &mut self.dropped] {
            extents.cut(size);
        }
        self.size = size;
    }

    /// A range was written, and lies at this place of the data.
    pub fn wrote(&mut self, range: Range, at: u64) {
        self.read.put(range, Source::Staged(at));
        self.stored.remove(range);
        self.dropped.remove(range);
        self.size = self.size.max(range.end);
    }

    /// A range is that of an object.
    pub fn copied(&mut self, range: Range, version: &Arc<Version>, at: u64) {
        let source = Source::Object(Arc::clone(version), at);
        self.read.put(range, source.clone());
        self.stored.put(range, source);
        self.dropped.remove(range);
        self.size = self.size.max(range.end);
    }

    /// All of it is this object now; what lies here is read here on.
    pub fn published(&mut self, version: &Arc<Version>) {
        self.stored = Extents::of(version, self.size);
        // What was copied of other objects is read of this one: they may go.
        for (range, source) in self.all() {
            if matches!(source, Source::Object(..)) {
                self.read
                    .put(range, Source::Object(Arc::clone(version), range.start));
            }
        }
    }

    /// Nothing lies here any more: all is read of the store.
    pub fn left(&mut self) {
        self.read = self.stored.clone();
        self.dropped = Extents::default();
    }

    /// Where the bytes of a range are read.
    pub fn stretches(&self, range: Range) -> Vec<Stretch> {
        self.read.stretches(range)
    }

    /// Which bytes of a range the store has.
    pub fn stored(&self, range: Range) -> Vec<Stretch> {
        self.stored.stretches(range)
    }

    /// Whether the store has nothing of it.
    pub fn is_new(&self) -> bool {
        self.stored.count() == 0
    }

    /// All ranges that are not zeros, and where they are read.
    pub fn all(&self) -> Vec<(Range, Source)> {
        let all = self.read.all();
        all.map(|(range, source)| (range, source.clone())).collect()
    }

    /// How many ranges they are.
    pub fn count(&self) -> usize {
        self.read.count()
    }

    /// How many bytes lie here.
    pub fn staged_bytes(&self) -> u64 {
        self.read.staged_bytes()
    }

    /// Whether all of a range can be read.
    pub fn has(&self, range: Range) -> bool {
        let found = self.dropped.stretches(range);
        found.iter().all(|stretch| stretch.source.is_none())
    }

    /// Whether anything was let go.
    pub fn has_dropped(&self) -> bool {
        self.dropped.count() > 0
    }

    /// Lets go what lies here of a range, which was sent; where that is in the data.
    pub fn drop_sent(&mut self, range: Range) -> Vec<Range> {
        let mut places = Vec::new();
        for stretch in self.read.stretches(range) {
            if let Some(Source::Staged(at)) = stretch.source {
                places.push(Range::new(at, at + stretch.range.byte_count()));
                self.dropped.put(stretch.range, Source::Staged(at));
            }
        }
        places
    }

    /// Objects that it was made of lie elsewhere now. `to` also hears whether the bytes have the
    /// same place in the object as in the file.
    pub fn moved(&mut self, to: impl Fn(&Arc<Version>, bool) -> Option<Arc<Version>>) {
        for extents in [&mut self.read, &mut self.stored] {
            let all: Vec<(Range, Source)> = extents
                .all()
                .map(|(range, source)| (range, source.clone()))
                .collect();
            for (range, source) in all {
                if let Source::Object(version, at) = source
                    && let Some(version) = to(&version, at == range.start)
                {
                    extents.put(range, Source::Object(version, at));
                }
            }
        }
    }

    /// The staged bytes lie elsewhere in the data now.
    pub fn read_at(&mut self, range: Range, at: u64) {
        self.read.put(range, Source::Staged(at));
    }
}
