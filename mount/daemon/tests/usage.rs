// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wrong usage, which needs no FUSE and no store. That this test needs the program makes
//! `cargo test` build it; the suites in `tests/` use it too, and so nothing is built again.

use std::process::{Command, Output};

fn weft_mount(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft-mount"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_is_wrong() {
    for (arguments, words) in [
        (&[][..], "Usage"),
        (&["data", "/mnt", "--no-such-option"], "--no-such-option"),
        (&["A B", "/mnt"], "not the name of a bucket"),
    ] {
        let output = weft_mount(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn log_that_cannot_be_written_is_named_before_anything_is_mounted() {
    let folder = "/no/such/folder";
    let output = weft_mount(&["data", "/mnt", "--log-directory", folder]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for words in ["/no/such/folder/weft-mount.log", "--log-directory"] {
        assert!(said.contains(words), "{said}");
    }
}
