// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The folder of a run: the files that are written there, the tools that work in it, the files that
//! a run left.
//!
//! Called by the programs, job and rounds.

use crate::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a program that prepares or reads something, to its end.
///
/// # Errors
/// The last lines that it said when it failed.
pub fn helper(folder: &Path, words: &[&str], typed: Option<&Path>) -> Result<(), Error> {
    let stdin = match typed {
        Some(path) => std::fs::File::open(path)
            .map_err(Error::file("read", path))?
            .into(),
        None => Stdio::null(),
    };
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(folder)
        .stdin(stdin)
        .output()
        .map_err(Error::start(words[0]))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::failed(output.status, &output.stderr).about(words.join(" ")))
}

/// Writes a file.
///
/// # Errors
/// The path and the system's reason.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(Error::file("write", path))
}

/// Reads a file that a run should have left.
///
/// # Errors
/// The path and the system's reason.
pub fn left(path: &Path) -> Result<String, Error> {
    let bytes = std::fs::read(path).map_err(Error::file_with(
        "read",
        path,
        ", which the run should have left",
    ))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Copies a folder with all that is in it.
///
/// # Errors
/// The path and the system's reason.
pub fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    copy_all(from, to).map_err(Error::file("copy to", to))
}

fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helper_that_fails_is_quoted() {
        let here = Path::new("/");
        let reason = helper(here, &["sh", "-c", "echo broken >&2; exit 4"], None)
            .unwrap_err()
            .to_string();
        assert!(
            reason.contains("broken") && reason.contains('4'),
            "{reason}"
        );
    }
}
