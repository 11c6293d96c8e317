// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a command prints.
//!
//! Called by the figures that start `weft` with one of its commands.

use crate::error::Error;
use std::process::{Command, Stdio};

/// What the command printed to its standard output; it gets no input.
///
/// # Errors
/// It cannot be started, or it failed: with the last lines that it said.
pub fn by(command: &mut Command) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(Error::start(program))?;
    if !output.status.success() {
        return Err(Error::failed(output.status, &output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
