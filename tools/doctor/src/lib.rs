// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft doctor` and `weft info`.
#![forbid(unsafe_code)]

use std::ffi::OsString;

/// Runs `weft doctor`.
#[must_use]
pub fn doctor(_arguments: Vec<OsString>) -> u8 {
    eprintln!("weft doctor: not in this build");
    1
}

/// Runs `weft info`.
#[must_use]
pub fn info(_arguments: Vec<OsString>) -> u8 {
    eprintln!("weft info: not in this build");
    1
}
