// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which build's `weft` starts which run, where two builds are compared (`--before`).
//!
//! Called by plan and launches.

use super::configuration::{BEFORE, Configuration};
use std::path::Path;

/// The builds that are measured.
#[derive(Clone, Copy)]
pub struct Builds<'a> {
    /// This one: its `weft` holds the benchmarks, for all configurations.
    pub this: &'a Path,
    /// The `weft` of the other one, where one was named.
    pub before: Option<&'a Path>,
}

impl<'a> Builds<'a> {
    /// The `weft` whose `run` starts a configuration, with the libraries beside it.
    pub fn launcher(&self, configuration: &Configuration) -> &'a Path {
        match self.before {
            Some(before) if configuration.variant() == Some(BEFORE) => before,
            _ => self.this,
        }
    }
}
