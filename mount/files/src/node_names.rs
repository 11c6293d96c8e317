// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which node has a name. [`crate::nodes`] has one table for all folders.

use std::collections::HashMap;

/// The numbers of nodes, by folder and name.
#[derive(Debug, Default)]
pub struct NodeNames {
    /// In each folder, so that a name is found without a copy of it.
    numbers: HashMap<u64, HashMap<Box<str>, u64>>,
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
}
