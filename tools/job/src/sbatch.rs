// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A job as a batch script for Slurm's sbatch, which a person can read and change.
//!
//! Called by `weft submit` and by whatever else writes such scripts. Pure: it looks at no machine.
//! What the script writes about itself is specified in docs/slurm.md, "Records". Sources:
//! sbatch(1), srun(1) of Slurm 22.05.

mod body;
mod directives;
mod script;

use crate::fault::Fault;

pub use script::{KEY, Script, Start};

/// The text of a script.
///
/// # Errors
/// A field that no script can do, with what to do instead.
pub fn text(script: &Script<'_>) -> Result<String, Fault> {
    script.check()?;
    let mut lines = vec!["#!/bin/bash".to_owned()];
    for option in directives::of(script)? {
        lines.push(format!("#SBATCH {option}"));
    }
    lines.extend(body::lines(script));
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
#[path = "sbatch_tests.rs"]
mod tests;
