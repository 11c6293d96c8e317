// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Passes the git commit to the program, so that each result names the build it was measured with.
//! Without git, or outside a checkout, the program names no commit.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(path) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={path}");
    }
    if let Some(commit) = git(&[
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--exclude=*",
    ]) {
        println!("cargo::rustc-env=WEFT_COMMIT={commit}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
