// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a comparison ends before anything runs.

use weft_ranks::{EXIT_OK, EXIT_USAGE};

/// Prints what clap has to say instead of running, help among it; returns the exit code.
pub(crate) fn refuse(error: &clap::Error) -> u8 {
    let _ = error.print();
    if error.use_stderr() {
        EXIT_USAGE
    } else {
        EXIT_OK
    }
}
