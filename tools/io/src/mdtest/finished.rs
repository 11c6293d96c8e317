// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A test that ran, with its rows.
//!
//! Filled by report; printed by text and json.

use crate::ior::division::Place;
use crate::mdtest::figures::{Row, Spread, Subject};
use crate::mdtest::test::Test;

/// A test with what it brought.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The test.
    pub test: Test,
    /// Where it ran.
    pub place: Place,
    /// Items of all tasks, of one kind.
    pub items: u64,
    /// Phases with their iteration.
    pub rows: Vec<(u32, Row)>,
    /// Files that did not hold what was written.
    pub wrong_files: u64,
}

impl Finished {
    /// How many iterations brought something.
    pub fn iterations(&self) -> u32 {
        self.rows.last().map_or(0, |(last, _)| last + 1)
    }

    /// A figure of a subject over the iterations.
    pub fn spread(&self, subject: Subject, of: fn(&Row) -> f64) -> Spread {
        let own = self.rows.iter().filter(|(_, row)| row.subject == subject);
        Spread::of(&own.map(|(_, row)| of(row)).collect::<Vec<_>>())
    }
}
