// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether memory may hold shared pages: a few loads, without the table's lock, so that free(3) and
//! munmap(2) of all other memory cost nothing. Written by table under its lock; read by interpose.
//!
//! A counter for each MiB of addresses, many MiB to one counter: the shared pages there. Who frees
//! memory that is shared synchronises with whoever shared it, since he got its address; so relaxed
//! loads see the pages of a caller's own memory.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::spans::{PAGE_BYTES, Span};

/// Bytes of addresses to a counter. Chosen.
const PART_BYTES: usize = 1 << 20;

/// Counters. Chosen: 16 KiB, and memory of 4 GiB in a row has one each.
const PARTS: usize = 4096;

/// Shared pages, by MiB of addresses.
#[derive(Debug)]
pub struct Filter {
    /// Something was shared once.
    was_used: AtomicBool,
    /// Some memory is never to be shared.
    has_barred: AtomicBool,
    pages: AtomicUsize,
    parts: [AtomicU32; PARTS],
}

impl Filter {
    /// Nothing is shared.
    pub const fn new() -> Self {
        Self {
            was_used: AtomicBool::new(false),
            has_barred: AtomicBool::new(false),
            pages: AtomicUsize::new(0),
            parts: [const { AtomicU32::new(0) }; PARTS],
        }
    }

    /// Whether anything was ever shared.
    #[inline]
    pub fn was_used(&self) -> bool {
        self.was_used.load(Ordering::Relaxed)
    }

    /// Whether there is memory that is never to be shared.
    #[inline]
    pub fn has_barred(&self) -> bool {
        self.has_barred.load(Ordering::Relaxed)
    }

    /// Notes that there is some.
    pub fn note_barred(&self) {
        self.has_barred.store(true, Ordering::Relaxed);
    }

    /// Whether nothing at all is shared.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pages.load(Ordering::Relaxed) == 0
    }

    /// Whether pages of that memory may be shared. None are if this says no.
    #[inline]
    pub fn may_hold(&self, address: usize, length_bytes: usize) -> bool {
        if self.is_empty() || length_bytes == 0 {
            return false;
        }
        let (first, last) = (
            address / PART_BYTES,
            address.saturating_add(length_bytes - 1) / PART_BYTES,
        );
        last - first >= PARTS
            || (first..=last).any(|part| self.parts[part % PARTS].load(Ordering::Relaxed) != 0)
    }

    /// Counts pages that are shared now.
    pub fn add(&self, span: Span) {
        self.was_used.store(true, Ordering::Relaxed);
        self.count(span, |counter, pages| {
            counter.fetch_add(pages, Ordering::Release);
        });
        self.pages
            .fetch_add(span.bytes() / PAGE_BYTES, Ordering::Release);
    }

    /// Counts pages that are shared no longer.
    pub fn remove(&self, span: Span) {
        self.count(span, |counter, pages| {
            counter.fetch_sub(pages, Ordering::Release);
        });
        self.pages
            .fetch_sub(span.bytes() / PAGE_BYTES, Ordering::Release);
    }

    fn count(&self, span: Span, act: impl Fn(&AtomicU32, u32)) {
        let mut start = span.start;
        while start < span.end {
            let end = (start / PART_BYTES + 1)
                .saturating_mul(PART_BYTES)
                .min(span.end);
            let counter = &self.parts[start / PART_BYTES % PARTS];
            act(counter, ((end - start) / PAGE_BYTES) as u32);
            start = end;
        }
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn memory_with_shared_pages_is_found_until_the_last_of_them_is_gone() {
        let filter = Filter::new();
        assert!(!filter.may_hold(0, usize::MAX));
        let span = |start, end| Span { start, end };
        filter.add(span(10 * MIB - 4096, 12 * MIB + 4096));
        assert!(filter.may_hold(9 * MIB, 1) && filter.may_hold(MIB, 20 * MIB));
        assert!(filter.may_hold(12 * MIB, 100));
        assert!(!filter.may_hold(13 * MIB, MIB) && !filter.may_hold(MIB, 8 * MIB));
        assert!(!filter.may_hold(10 * MIB, 0));
        // In other pieces than it was added.
        filter.remove(span(10 * MIB - 4096, 11 * MIB + 8192));
        assert!(!filter.may_hold(9 * MIB, 2 * MIB));
        assert!(filter.may_hold(11 * MIB, 1));
        filter.remove(span(11 * MIB + 8192, 12 * MIB + 4096));
        assert!(filter.is_empty() && !filter.may_hold(0, usize::MAX));
    }
}
