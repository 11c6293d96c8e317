// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What clap has to say in place of a run: help and the version on stdout, what is wrong on stderr.
//!
//! Called by the commands of this crate and by those above it. `clap::Error::exit` ends with 0 also
//! where the help could not be written.

use std::io::{self, ErrorKind, Write};

/// Prints it; answers the exit code, which is that of failure where help could not be written.
#[must_use]
pub fn answer(tool: &str, error: &clap::Error) -> u8 {
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    let written = error.print();
    if error.use_stderr() {
        return code;
    }
    match written {
        Err(why) if why.kind() != ErrorKind::BrokenPipe => {
            // Stderr may be what takes nothing, too.
            let _: io::Result<()> = writeln!(
                io::stderr(),
                "{tool}: writing to standard output: {why}; make room where it goes"
            );
            code.max(1)
        }
        // A reader that has gone, such as `head`, has what it wanted.
        _ => code,
    }
}
