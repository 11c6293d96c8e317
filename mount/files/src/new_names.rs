// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When names were made that this node owns: docs/job-cache.md, clause 6. Nodes that know a name as
//! missing ask whether that is older. [`crate::job_store`] has one of these.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Chosen: names that are remembered; some tens of megabytes.
const NAMES: usize = 100_000;

struct Table {
    made: HashMap<String, Instant>,
    /// What was made before that is not remembered one by one.
    since: Instant,
}

/// The names that this node owns.
pub struct NewNames {
    limit: usize,
    table: Mutex<Table>,
}

impl Default for NewNames {
    fn default() -> Self {
        Self::with_limit(NAMES)
    }
}

impl NewNames {
    /// Of a mount that begins now, and remembers so many.
    fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            table: Mutex::new(Table {
                made: HashMap::new(),
                since: Instant::now(),
            }),
        }
    }

    /// A name is there from now on.
    pub fn note(&self, key: &str) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if table.made.len() >= self.limit {
            table.made.clear();
            table.since = now;
        }
        table.made.insert(key.to_owned(), now);
    }

    /// Since when nobody has made a name, as far as this node knows.
    pub fn made_at(&self, key: &str) -> Instant {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.made.get(key).copied().unwrap_or(table.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_was_forgotten_counts_as_made_when_it_was_forgotten() {
        let names = NewNames::with_limit(2);
        let began = names.made_at("a");
        names.note("a");
        let made = names.made_at("a");
        assert!(made >= began && names.made_at("b") == began);
        names.note("b");
        assert_eq!(names.made_at("a"), made);
        names.note("c");
        assert!(names.made_at("a") > made && names.made_at("d") > made);
        assert!(names.made_at("c") >= names.made_at("a"));
    }
}
