// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wrong usage. That this test needs the program makes `cargo test` build it; the suites in
//! `tests/` use it too, and so nothing is built again.

use std::process::Command;

#[test]
fn wrong_usage_ends_with_2_and_says_what_is_wrong() {
    for (arguments, words) in [
        (&["--no-such-option"][..], "--no-such-option"),
        (&["--faults", r#"{"first_byte": 30}"#], "unknown field"),
        (&["--least-part", "many"], "many"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_weft-bucket-server"))
            .args(arguments)
            .output()
            .expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
