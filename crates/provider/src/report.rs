// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors that a user must see even without a log level: one line on stderr, with what was wrong
//! and how to fix it.
//!
//! Called by parameters and endpoint on errors that a change of the user's settings repairs.

use std::io::Write;

/// Writes one line by one write(2), because the launcher mixes the output of all ranks as it comes.
/// If stderr cannot be written to, that is no reason to fail.
pub fn line(text: &str) {
    let _ = std::io::stderr().write_all(format!("weft: {text}\n").as_bytes());
}
