// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets of whole pages, sorted and merged, in memory of their own: which pages are shared, and
//! which are never to be. Used by table under its lock; pure, and allocates nothing, since free(3)
//! asks.

/// Page size in bytes. Specified: the base page of all supported machines.
pub const PAGE_BYTES: usize = 4096;

/// Addresses from here on are not the program's. Specified: x86-64 with four levels of page tables.
pub const ADDRESS_LIMIT: usize = 1 << 47;

/// Whole pages in a row: addresses of the first byte and of the one behind the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// A multiple of [`PAGE_BYTES`].
    pub start: usize,
    /// Likewise, and greater.
    pub end: usize,
}

impl Span {
    /// The whole pages inside a stretch of memory, if there are any.
    #[inline]
    pub fn inside(address: usize, length_bytes: usize) -> Option<Self> {
        let end = address.checked_add(length_bytes)?;
        let start = address.checked_next_multiple_of(PAGE_BYTES)?;
        let end = end / PAGE_BYTES * PAGE_BYTES;
        (start < end && end <= ADDRESS_LIMIT).then_some(Self { start, end })
    }

    /// All pages that a stretch of memory touches, if there are any.
    #[inline]
    pub fn around(address: usize, length_bytes: usize) -> Option<Self> {
        let end = address.saturating_add(length_bytes).min(ADDRESS_LIMIT);
        let start = address / PAGE_BYTES * PAGE_BYTES;
        let end = end.next_multiple_of(PAGE_BYTES);
        (length_bytes > 0 && start < end).then_some(Self { start, end })
    }

    /// Its length.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.end - self.start
    }

    /// What it has in common with another.
    pub fn common(&self, other: &Self) -> Option<Self> {
        let start = self.start.max(other.start);
        let end = self.end.min(other.end);
        (start < end).then_some(Self { start, end })
    }

    /// Its beginning, of at most so many bytes.
    pub fn beginning(&self, most_bytes: usize) -> Self {
        let end = self.end.min(self.start.saturating_add(most_bytes));
        Self { end, ..*self }
    }
}

/// A set of pages, of at most `N` spans.
#[derive(Debug)]
pub struct Spans<const N: usize> {
    held: [Span; N],
    count: usize,
}

impl<const N: usize> Spans<N> {
    /// The empty set.
    pub const fn new() -> Self {
        Self {
            held: [Span { start: 0, end: 0 }; N],
            count: 0,
        }
    }

    /// The spans, by address; no two of them touch.
    pub fn as_slice(&self) -> &[Span] {
        &self.held[..self.count]
    }

    /// Index of the first span that ends behind an address.
    fn first_behind(&self, address: usize) -> usize {
        self.as_slice().partition_point(|held| held.end <= address)
    }

    /// Whether all pages of a span are in the set.
    #[inline]
    pub fn holds(&self, span: Span) -> bool {
        let found = self.as_slice().get(self.first_behind(span.start));
        found.is_some_and(|held| held.start <= span.start && span.end <= held.end)
    }

    /// The first pages of a span that are in the set, as long as they are in a row.
    pub fn first_common(&self, span: Span) -> Option<Span> {
        let found = self.as_slice().get(self.first_behind(span.start))?;
        found.common(&span)
    }

    /// The first pages of a span that are not in the set, as long as they are in a row.
    pub fn first_gap(&self, span: Span) -> Option<Span> {
        let index = self.first_behind(span.start);
        let rest = &self.as_slice()[index..];
        let start = match rest.first() {
            Some(first) if first.start <= span.start => first.end,
            _ => span.start,
        };
        let next = rest.iter().find(|held| held.start > start);
        let end = next.map_or(span.end, |held| held.start.min(span.end));
        (start < end).then_some(Span { start, end })
    }

    /// Whether half of the room is left: the other half is for spans that are cut in two.
    pub fn has_room(&self) -> bool {
        self.count < N / 2
    }

    /// Puts pages into the set that are not in it, or some of them; false if there is no room.
    pub fn add(&mut self, span: Span) -> bool {
        let from = self
            .as_slice()
            .partition_point(|held| held.end < span.start);
        let to = self
            .as_slice()
            .partition_point(|held| held.start <= span.end);
        if from == to {
            if self.count == N {
                return false;
            }
            self.held.copy_within(from..self.count, from + 1);
            (self.held[from], self.count) = (span, self.count + 1);
            return true;
        }
        self.held[from] = Span {
            start: span.start.min(self.held[from].start),
            end: span.end.max(self.held[to - 1].end),
        };
        self.held.copy_within(to..self.count, from + 1);
        self.count -= to - from - 1;
        true
    }

    /// The same where more may be in the set than was put into it: where there is no room, the two
    /// spans that lie nearest to each other become one.
    pub fn add_coarsely(&mut self, span: Span) {
        while !self.add(span) {
            let gap = |pair: &[Span]| pair[1].start - pair[0].end;
            let pairs = self.as_slice().windows(2);
            let Some(near) = pairs.min_by_key(|&pair| gap(pair)) else {
                return;
            };
            let joined = Span {
                start: near[0].start,
                end: near[1].end,
            };
            self.add(joined);
        }
    }

    /// Takes pages out of the set.
    ///
    /// # Errors
    /// If there is no room for both sides of a span that is cut: the pages behind `span` were taken
    /// out, too.
    pub fn remove(&mut self, span: Span) -> Result<(), Span> {
        let from = self.first_behind(span.start);
        let to = self
            .as_slice()
            .partition_point(|held| held.start < span.end);
        if from >= to {
            return Ok(());
        }
        let left = Span {
            end: span.start,
            ..self.held[from]
        };
        let right = Span {
            start: span.end,
            ..self.held[to - 1]
        };
        let mut kept = [left, right]
            .into_iter()
            .filter(|part| part.start < part.end);
        let kept = [kept.next(), kept.next()];
        let mut kept_count = kept.iter().flatten().count();
        let mut lost = None;
        if self.count - (to - from) + kept_count > N {
            (lost, kept_count) = (kept[1], 1);
        }
        self.held
            .copy_within(to..self.count, from + kept_count.min(to - from));
        if kept_count > to - from {
            let end = self.count;
            self.held.copy_within(from + 1..end, from + 2);
        }
        for (index, part) in kept.into_iter().flatten().take(kept_count).enumerate() {
            self.held[from + index] = part;
        }
        self.count = self.count - (to - from) + kept_count;
        lost.map_or(Ok(()), Err)
    }

    /// Takes all pages out of the set.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// All pages' bytes.
    pub fn bytes(&self) -> usize {
        self.as_slice().iter().map(Span::bytes).sum()
    }
}

impl<const N: usize> Default for Spans<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "spans_tests.rs"]
mod tests;
