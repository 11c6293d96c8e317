// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which node has a name. [`crate::nodes`] has one table for all folders.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A table by numbers of nodes.
pub type ByNumber<V> = HashMap<u64, V, NumberHashes>;

/// Hashes numbers of nodes: one multiplication by a number that nobody else knows. Numbers are
/// hashes of names without a secret, and who writes to the bucket chooses the names: taken as they
/// are, numbers could be made to fill one place of the table.
#[derive(Debug, Clone)]
pub struct NumberHashes {
    secret: u64,
}

impl Default for NumberHashes {
    fn default() -> Self {
        // The library's secret of this process, made odd, so it is never zero.
        let secret = RandomState::new().build_hasher().finish() | 1;
        Self { secret }
    }
}

impl BuildHasher for NumberHashes {
    type Hasher = NumberHasher;

    fn build_hasher(&self) -> NumberHasher {
        NumberHasher(self.secret)
    }
}

/// One number.
#[derive(Debug)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The product's upper half depends on all of the number.
        let product = u128::from(number) * u128::from(self.0);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// The numbers of nodes, by folder and name.
#[derive(Debug, Default)]
pub struct NodeNames {
    /// In each folder, so that a name is found without a copy of it.
    numbers: ByNumber<HashMap<Box<str>, u64>>,
}

impl NodeNames {
    /// The node that has a name.
    pub fn find(&self, folder: u64, name: &str) -> Option<u64> {
        self.numbers.get(&folder)?.get(name).copied()
    }

    /// A node has the name from now on.
    pub fn give(&mut self, folder: u64, name: &str, ino: u64) {
        self.names(folder).insert(name.into(), ino);
    }

    /// The same, unless another one has it.
    pub fn give_if_free(&mut self, folder: u64, name: &str, ino: u64) {
        self.names(folder).entry(name.into()).or_insert(ino);
    }

    /// No node has the name any more.
    pub fn take(&mut self, folder: u64, name: &str) {
        if let Some(names) = self.numbers.get_mut(&folder) {
            names.remove(name);
            if names.is_empty() {
                self.numbers.remove(&folder);
            }
        }
    }

    fn names(&mut self, folder: u64) -> &mut HashMap<Box<str>, u64> {
        self.numbers.entry(folder).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_the_node_that_it_was_given_last_until_it_is_taken() {
        let mut names = NodeNames::default();
        names.give(1, "a", 7);
        names.give_if_free(1, "a", 8);
        names.give_if_free(2, "a", 9);
        assert_eq!((names.find(1, "a"), names.find(2, "a")), (Some(7), Some(9)));
        names.give(1, "a", 8);
        assert_eq!(names.find(1, "a"), Some(8));
        names.take(1, "a");
        names.take(1, "b");
        assert_eq!((names.find(1, "a"), names.find(2, "a")), (None, Some(9)));
        assert_eq!(names.numbers.len(), 1, "an empty table is not kept");
    }

    /// As who knows the table's places would choose names: these numbers have one place in a table
    /// of 65,536 that takes them as they are.
    #[test]
    fn numbers_that_were_chosen_to_meet_are_spread() {
        let hashes = NumberHashes::default();
        let mut places = [0_u32; 256];
        for number in 0..4096_u64 {
            let hash = hashes.hash_one(number << 16 | 7);
            places[(hash & 255) as usize] += 1;
        }
        let fullest = places.into_iter().max();
        assert!(
            fullest < Some(256),
            "of 4096 numbers one place of 256 has {fullest:?}"
        );
    }
}
