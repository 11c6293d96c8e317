// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft dev-shm`, by which processes of Weft start each other: a subcommand that users do not see.
//!
//! Its words are made here and read in `dev_shm.rs`.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use weft_job::size::ShmSize;

/// Its name.
const NAME: &str = "dev-shm";
/// Makes namespaces and becomes a program.
pub(crate) const OWN: &str = "own";
/// Enters those of the job and becomes a program.
pub(crate) const JOIN: &str = "join";
/// Makes namespaces, and ends.
pub(crate) const PROBE: &str = "probe";
/// Starts a keeper, and ends.
pub(crate) const START: &str = "start";
/// Is the keeper.
pub(crate) const KEEP: &str = "keep";

/// The words that stand before a launcher (`OWN`) or before each rank (`JOIN`).
pub(crate) fn before(weft: &Path, how: &str, size: ShmSize) -> Vec<OsString> {
    let rest = [NAME.into(), how.into(), size.to_string().into()];
    std::iter::once(weft.into()).chain(rest).collect()
}

/// This very program with such words, without input.
///
/// # Errors
/// Where its own file cannot be found.
pub(crate) fn command(words: &[&str]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(NAME).args(words).stdin(Stdio::null());
    Ok(command)
}
