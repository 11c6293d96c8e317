// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starting this test binary again with the library preloaded.

use std::path::PathBuf;
use std::process::{Command, Output};

/// The library as cargo built it for this test.
fn library() -> PathBuf {
    let own = std::env::current_exe().expect("own path");
    let folder = own.parent().expect("deps");
    let places = [
        folder.to_owned(),
        folder.parent().expect("profile").to_owned(),
    ];
    let built = places.map(|place| place.join("libweft_heap.so"));
    let built = built.into_iter().find(|file| file.is_file());
    // Under the name by which it is installed, which it knows itself by.
    let named = folder.join("libweft-heap.so");
    let _ = std::os::unix::fs::symlink(built.expect("cargo built the library"), &named);
    named
}

/// Runs one child test with the library preloaded.
pub fn preloaded(child: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command
        .args([
            child,
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("LD_PRELOAD", library())
        .env("WEFT_HEAP", "patient")
        .envs(variables.iter().copied());
    command.output().expect("the child starts")
}

/// Runs one child test, which must pass.
pub fn passes(child: &str, variables: &[(&str, &str)]) {
    let output = preloaded(child, variables);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{child}: {}\n{out}\n{err}",
        output.status
    );
}
