// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A test that ran, with its rows and its summary.
//!
//! Filled by report; printed by text and json.

use crate::ior::division::Place;
use crate::ior::figures::{Access, Row, Spread};
use crate::ior::test::Test;

/// Bytes in a MiB, for rates.
pub const MIB: f64 = 1_048_576.0;
/// All repetitions of one kind of access.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// Bytes per second.
    pub bandwidth: Spread,
    /// Transfers per second of the whole time.
    pub transfers: Spread,
    /// Mean of the whole times.
    pub mean_s: f64,
    /// Mean of the bytes moved.
    pub moved_bytes: f64,
}

/// A test with what it brought.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The test.
    pub test: Test,
    /// Where it ran.
    pub place: Place,
    /// When it began.
    pub started: String,
    /// Rank 0's file.
    pub path: String,
    /// Rows with their repetition.
    pub rows: Vec<(Access, Row, u32)>,
}

impl Finished {
    /// Which accesses were measured, in order; checks are none.
    pub fn accesses(&self) -> Vec<Access> {
        let measured = [Access::Write, Access::Read];
        let has = |access: &Access| self.rows.iter().any(|row| row.0 == *access);
        measured.into_iter().filter(has).collect()
    }

    /// All repetitions of an access; `None` without any.
    pub fn summary(&self, access: Access) -> Option<Summary> {
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.0 == access)
            .map(|row| &row.1)
            .collect();
        if rows.is_empty() {
            return None;
        }
        let transfer_bytes = self.test.sizes.transfer_bytes as f64;
        let mean =
            |of: fn(&Row) -> f64| rows.iter().map(|row| of(row)).sum::<f64>() / rows.len() as f64;
        Some(Summary {
            bandwidth: Spread::of(rows.iter().map(|row| row.bytes_per_s)),
            transfers: Spread::of(rows.iter().map(|row| row.bytes_per_s / transfer_bytes)),
            mean_s: mean(|row| row.total_s),
            moved_bytes: mean(|row| row.moved_bytes),
        })
    }
}
