// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which bytes of a file lie where: a map from ranges to sources. Bytes in no range are zeros.
//! [`crate::staging::content`] holds two: one says where to read, the other what the store has
//! already.

use std::collections::BTreeMap;
use std::sync::Arc;

use weft_store::Range;

use crate::version::Version;

/// Where bytes lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// In the staged data, from this place on.
    Staged(u64),
    /// In an object, from this place on.
    Object(Arc<Version>, u64),
}

impl Source {
    /// `byte_count` further on.
    fn behind(&self, byte_count: u64) -> Self {
        match self {
            Self::Staged(at) => Self::Staged(at + byte_count),
            Self::Object(version, at) => Self::Object(Arc::clone(version), at + byte_count),
        }
    }
}

/// A stretch of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// In the file.
    pub range: Range,
    /// `None` for zeros.
    pub source: Option<Source>,
}

#[derive(Debug, Clone)]
struct Extent {
    end: u64,
    source: Source,
}

/// Ranges that do not overlap. Each call costs the logarithm of their number.
#[derive(Debug, Clone, Default)]
pub struct Extents {
    by_start: BTreeMap<u64, Extent>,
}

impl Extents {
    /// All of one object.
    pub fn of(version: &Arc<Version>, byte_count: u64) -> Self {
        let mut extents = Self::default();
        if byte_count > 0 {
            let source = Source::Object(Arc::clone(version), 0);
            extents.put(Range::new(0, byte_count), source);
        }
        extents
    }

    /// How many ranges.
    pub fn count(&self) -> usize {
        self.by_start.len()
    }

    /// A range lies elsewhere from now on.
    pub fn put(&mut self, range: Range, source: Source) {
        self.remove(range);
        let before = self.by_start.range_mut(..range.start).next_back();
        if let Some((start, left)) = before
            && left.end == range.start
            && left.source.behind(range.start - start) == source
        {
            left.end = range.end;
            return;
        }
        let end = range.end;
        self.by_start.insert(range.start, Extent { end, source });
    }

    /// A range is zeros from now on.
    pub fn remove(&mut self, range: Range) {
        let before = self.by_start.range_mut(..range.start).next_back();
        if let Some((start, left)) = before
            && left.end > range.start
        {
            let end = left.end;
            left.end = range.start;
            if end > range.end {
                let source = left.source.behind(range.end - start);
                self.by_start.insert(range.end, Extent { end, source });
            }
        }
        let inside = self.by_start.range(range.start..range.end);
        let starts: Vec<u64> = inside.map(|(start, _)| *start).collect();
        for start in starts {
            let Some(extent) = self.by_start.remove(&start) else {
                continue;
            };
            if extent.end > range.end {
                let source = extent.source.behind(range.end - start);
                let end = extent.end;
                self.by_start.insert(range.end, Extent { end, source });
            }
        }
    }

    /// Nothing lies behind `size_bytes`.
    pub fn cut(&mut self, size_bytes: u64) {
        if size_bytes < u64::MAX {
            self.remove(Range::new(size_bytes, u64::MAX));
        }
    }

    /// All of a range, stretch by stretch.
    pub fn stretches(&self, range: Range) -> Vec<Stretch> {
        let mut found = Vec::new();
        let mut at = range.start;
        let from = self.by_start.range(..=range.start).next_back();
        let from = from.map_or(range.start, |(start, _)| *start);
        for (start, extent) in self.by_start.range(from..range.end) {
            let (low, high) = ((*start).max(range.start), extent.end.min(range.end));
            if low >= high {
                continue;
            }
            if at < low {
                found.push(zeros(at, low));
            }
            found.push(Stretch {
                range: Range::new(low, high),
                source: Some(extent.source.behind(low - start)),
            });
            at = high;
        }
        if at < range.end {
            found.push(zeros(at, range.end));
        }
        found
    }

    /// All ranges that are not zeros, in order.
    pub fn all(&self) -> impl Iterator<Item = (Range, &Source)> {
        let all = self.by_start.iter();
        all.map(|(start, extent)| (Range::new(*start, extent.end), &extent.source))
    }

    /// How many bytes lie in the staged data.
    pub fn staged_bytes(&self) -> u64 {
        let staged = self
            .all()
            .filter(|(_, source)| matches!(source, Source::Staged(_)));
        staged.map(|(range, _)| range.byte_count()).sum()
    }
}

fn zeros(start: u64, end: u64) -> Stretch {
    Stretch {
        range: Range::new(start, end),
        source: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_an_array(
            steps in prop::collection::vec((0..60u64, 1..30u64, 0..3u8), 1..60)
        ) {
            let mut extents = Extents::default();
            let mut model = [None; 100];
            for (step, (start, length, kind)) in steps.into_iter().enumerate() {
                let range = Range::new(start, start + length);
                // Neighbours in the source are neighbours in the file, so that ranges join.
                let base = if kind == 0 { 0 } else { 1000 * step as u64 };
                match kind {
                    2 => extents.remove(range),
                    _ => extents.put(range, Source::Staged(base + start)),
                }
                for at in range.start..range.end {
                    model[at as usize] = (kind != 2).then_some(base + at);
                }
            }
            let mut at = 0;
            for stretch in extents.stretches(Range::new(0, 100)) {
                prop_assert_eq!(stretch.range.start, at);
                for place in stretch.range.start..stretch.range.end {
                    let source = stretch.source.as_ref();
                    let source = source.map(|one| one.behind(place - stretch.range.start));
                    prop_assert_eq!(source, model[place as usize].map(Source::Staged));
                }
                at = stretch.range.end;
            }
            prop_assert_eq!(at, 100);
            let staged = model.iter().flatten().count() as u64;
            prop_assert_eq!(extents.staged_bytes(), staged);
        }
    }
}
