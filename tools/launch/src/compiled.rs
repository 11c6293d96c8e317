// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Small C programs and libraries that tests of this crate build.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles `source` in `folder` to the file `output` there; `options` stand behind the source.
/// Panics where cc fails.
pub(crate) fn cc(folder: &Path, output: &str, source: &str, options: &[&str]) -> PathBuf {
    let input = folder.join(format!("{output}.c"));
    std::fs::write(&input, source).unwrap();
    let output = folder.join(output);
    let status = Command::new("cc")
        .current_dir(folder)
        .arg(&input)
        .arg("-o")
        .arg(&output)
        .args(options)
        .status()
        .unwrap();
    assert!(status.success(), "cc failed for {}", output.display());
    output
}
