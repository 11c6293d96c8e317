// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors that a user must see even without a log level: one line on stderr, with what was wrong
//! and how to fix it.
//!
//! Called by parameters and endpoint on errors that a change of the user's settings repairs.

use std::io::Write;

/// Writes one line, at once: the launcher joins what the ranks write as it comes. A stderr that
/// cannot be written to is no reason to fail.
pub fn line(text: &str) {
    let _ = std::io::stderr().write_all(format!("weft: {text}\n").as_bytes());
}
