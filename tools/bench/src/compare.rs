// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bench compare`.

/// Runs it.
pub fn run(_arguments: Vec<std::ffi::OsString>) -> u8 {
    crate::EXIT_USAGE
}
