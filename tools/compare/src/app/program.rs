// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the rest needs to know of a program.
//!
//! Called by app and rounds; implemented by hpcc, lammps, gromacs, openfoam and npb.

use crate::error::Error;
use std::path::Path;
use weft_statistics::interval::Better;

/// How large the input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Seconds a run.
    Quick,
    /// Long enough to judge by.
    Usual,
}

/// A figure that a program reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What it is, as `PTRANS`.
    pub name: &'static str,
    /// Its unit, as `GB/s`.
    pub unit: &'static str,
    /// Whether more or less is good.
    pub better: Better,
    /// The figure.
    pub value: f64,
}

impl Measured {
    /// A duration, of which less is good.
    pub fn duration_s(name: &'static str, value: f64) -> Self {
        Self {
            name,
            unit: "s",
            better: Better::Less,
            value,
        }
    }

    /// How long ranks were in communication, as the program itself says.
    pub fn communication_s(value: f64) -> Self {
        Self::duration_s("communication", value)
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Its figures, in the same order in every run.
    pub figures: Vec<Measured>,
    /// Lines that must be the same whatever carries the messages.
    pub result: Vec<String>,
}

/// A program.
// structure: allow trait-methods because each is a fact of one program, and most are a line
pub trait Program: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// Which of a program's cases it is; empty where there is one.
    fn case(&self) -> &'static str {
        ""
    }
    /// Its name in text.
    fn title(&self) -> &'static str;
    /// Files that must be found in PATH, each with Debian's package that brings it.
    fn files(&self) -> &'static [(&'static str, &'static str)];
    /// The input in a few words.
    fn input(&self, size: Size) -> String;
    /// Writes the input into `folder`. Errors: the file or the tool.
    fn prepare(&self, folder: &Path, size: Size) -> Result<(), Error>;
    /// The program and its arguments, to run in a copy of the folder. May finish an input that
    /// depends on the ranks there.
    fn command(&self, folder: &Path, ranks: u16, size: Size) -> Result<Vec<String>, Error>;
    /// Reads what a run left in its folder. Errors: what is missing, or a check of the program's
    /// own that failed.
    fn read(&self, folder: &Path) -> Result<Outcome, Error>;
    /// What the result is called.
    fn result_name(&self) -> &'static str;
}
