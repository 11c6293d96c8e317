// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft completions`: what a shell completes behind `weft`. It is made from the definitions that
//! parse the command line, so it knows every tool, option, benchmark and variable.

use std::io::{self, Write};

use clap::Command;
use clap_complete::{Shell, generate};

use crate::command_line::whole;

/// Prints it; answers the exit code.
pub(crate) fn print(shell: Shell, command: &Command) -> u8 {
    let mut script = Vec::new();
    generate(shell, &mut whole(command), "weft", &mut script);
    let printed = io::stdout().write_all(&script);
    match printed {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("weft completions: cannot write to standard output: {error}");
            1
        }
    }
}
