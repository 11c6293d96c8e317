// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The exit codes of `weft bench`, and what ends it before anything runs.

/// Exit code of success.
pub const EXIT_OK: u8 = 0;
/// Exit code when a run failed or validation found wrong bytes.
pub const EXIT_FAILED: u8 = 1;
/// Exit code of bad usage.
pub const EXIT_USAGE: u8 = 2;

/// Prints what clap has to say instead of running, help among it; returns the exit code.
pub(crate) fn refuse(error: &clap::Error) -> u8 {
    let _ = error.print();
    if error.use_stderr() {
        EXIT_USAGE
    } else {
        EXIT_OK
    }
}
