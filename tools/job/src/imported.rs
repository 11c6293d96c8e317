// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The result of reading a file that was written for another system.
//!
//! Made by `convert`, shown by `weft import` and `weft run --spec`.

use std::fmt;

use crate::job::Job;
use crate::node::{Place, on_one_line};
use crate::places::Places;

/// A field that has no meaning in a job file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where it stands.
    pub place: Place,
    /// The field, as `containerProperties.image`.
    pub field: String,
    /// Why it was left out, or what was made of it.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, text) = (on_one_line(&self.field), on_one_line(&self.text));
        write!(f, "line {}: {field}: {text}", self.place.line)
    }
}

/// A job, what was left out, and where its fields come from.
#[derive(Debug)]
pub(crate) struct Imported {
    pub job: Job,
    pub notes: Vec<Note>,
    pub places: Places,
}
