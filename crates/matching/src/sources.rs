// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many posted receives name each source.
//!
//! Used by `posted` at every directed post and match; calls nothing. Remote ids are small dense
//! numbers in practice, so the counts lie in an array; ids too large for that are counted in a map,
//! slower but bounded by the receives posted.

use std::collections::BTreeMap;

/// Sources below this are counted in the array; chosen: 4 MiB when all are in use.
const DENSE_SOURCES: u32 = 1 << 20;

/// Counts by source.
#[derive(Debug, Default)]
pub(crate) struct SourceCounts {
    dense: Vec<u32>,
    sparse: BTreeMap<u32, u32>,
}

impl SourceCounts {
    /// The count of `source`.
    #[inline]
    pub fn get(&self, source: u32) -> u32 {
        match self.dense.get(source as usize) {
            Some(&count) => count,
            None => self.sparse.get(&source).copied().unwrap_or(0),
        }
    }

    /// Counts one more. Allocates for a source larger than any before.
    #[inline]
    pub fn add(&mut self, source: u32) {
        match self.dense.get_mut(source as usize) {
            Some(count) => *count += 1,
            None => self.add_new(source),
        }
    }

    #[cold]
    fn add_new(&mut self, source: u32) {
        if source < DENSE_SOURCES {
            self.dense.resize(source as usize + 1, 0);
            self.dense[source as usize] = 1;
        } else {
            *self.sparse.entry(source).or_insert(0) += 1;
        }
    }

    /// Counts one less; the count must not be 0.
    #[inline]
    pub fn subtract(&mut self, source: u32) {
        match self.dense.get_mut(source as usize) {
            Some(count) => *count -= 1,
            None => self.subtract_sparse(source),
        }
    }

    #[cold]
    fn subtract_sparse(&mut self, source: u32) {
        if let Some(count) = self.sparse.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.sparse.remove(&source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_hold_for_the_smallest_and_the_largest_sources() {
        let mut counts = SourceCounts::default();
        for source in [0, 7, DENSE_SOURCES - 1, DENSE_SOURCES, u32::MAX] {
            assert_eq!(counts.get(source), 0);
            counts.add(source);
            counts.add(source);
            counts.subtract(source);
            assert_eq!(counts.get(source), 1);
            counts.subtract(source);
            assert_eq!(counts.get(source), 0);
        }
        assert!(counts.sparse.is_empty());
    }
}
