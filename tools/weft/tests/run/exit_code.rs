// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The exit code of `weft run` where the program or the launcher ends by itself.

use crate::fake::Fake;

#[test]
fn the_exit_code_of_the_program_is_returned() {
    let fake = Fake::new();
    for code in [0, 1, 7, 255] {
        let output = fake.run(&["--quiet", "-n", "2"], &format!("exit {code}"));
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn a_launcher_killed_by_a_signal_gives_128_and_its_number() {
    let output = Fake::new().run(&["-n", "1"], "kill -KILL $$");
    assert_eq!(output.status.code(), Some(128 + 9), "{output:?}");
}
