// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `NAME=VALUE` pairs. scontrol prints them on one line; records have one pair per line.
//!
//! Used by `partition.rs` and `record.rs`.

/// The pairs of a text.
#[derive(Debug)]
pub struct Fields<'a> {
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Fields<'a> {
    /// Reads words of one line; a word without `=` is passed over.
    #[must_use]
    pub fn of(line: &'a str) -> Self {
        let pairs = line
            .split_whitespace()
            .filter_map(|word| word.split_once('='));
        Self {
            pairs: pairs.collect(),
        }
    }

    /// Reads whole lines, whose values may hold spaces.
    #[must_use]
    pub fn of_lines(text: &'a str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Self {
            pairs: pairs.collect(),
        }
    }

    /// The value of this name, the last one if it stands there twice.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let mut found = self.pairs.iter().rev().filter(|(own, _)| *own == name);
        found.next().map(|(_, value)| *value)
    }

    /// The number of this name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }
}
