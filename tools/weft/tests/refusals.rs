// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What each tool of `weft` says of a wrong number, of an empty name, and where its output cannot
//! be written: the reason, the value and the exit code.
//!
//! Needs no MPI.

use std::fs::File;
use std::process::{Command, Output, Stdio};

fn weft(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(words).stdin(Stdio::null());
    command
}

/// What takes no byte.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

fn assert_says(output: &Output, code: i32, words: &[&str]) {
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{talk}");
    for word in words {
        assert!(talk.contains(word), "no {word:?} in: {talk}");
    }
    assert!(!talk.contains("panicked"), "{talk}");
}

#[test]
fn a_number_below_all_that_are_possible_is_refused_as_a_number() {
    for (words, range) in [
        (&["run", "-n", "-1", "x"][..], "from 1 to 4294967295"),
        (&["run", "--ppn", "-1", "x"], "from 1 to 4294967295"),
        (&["run", "--retries", "-1", "x"], "from 0 to 9"),
        (&["exec", "--world", "-1", "x"], "1..=4294967295"),
        (&["env", "--ppn", "-1"], "1..=4294967295"),
        (&["submit", "-n", "-1", "x"], "1..=2147483647"),
        (&["submit", "-N", "-1", "x"], "1..=65536"),
        (&["doctor", "--host-timeout", "-1"], "1..=3600"),
        (&["top", "--interval", "-1"], "from 0.01 to 3600"),
        (&["top", "--interval", "-1e9"], "from 0.01 to 3600"),
        (&["soak", "--minutes", "-1"], "from 0.1 to 10000"),
        (&["soak", "--seed", "-1"], "--seed <S>"),
        (&["soak", "--ranks", "-1"], "2..=32"),
        (&["run", "--shm-size", "-1g", "x"], "--shm-size <SIZE>"),
        (&["exec", "--shm-size", "-1g", "x"], "--shm-size <SIZE>"),
        (&["submit", "--shm-size", "-1g", "x"], "--shm-size <SIZE>"),
        (&["sim", "incast", "--hosts", "-1"], "from 2 to 4096"),
        (&["sim", "incast", "--loss", "-1"], "from 0 to 100000"),
        (&["bench", "latency", "-i", "-1"], "of at most"),
        (&["bench", "latency", "-m", "-1"], "MIN:MAX"),
    ] {
        let output = weft(words).output().unwrap();
        assert_says(&output, 2, &["-1", range]);
    }
}

#[test]
fn a_number_above_all_that_are_possible_is_refused_with_the_most() {
    let output = weft(&["run", "-n", "99999999999", "x"]).output().unwrap();
    assert_says(&output, 2, &["99999999999", "from 1 to 4294967295"]);
    let output = weft(&["env", "--ppn", "0"]).output().unwrap();
    assert_says(&output, 2, &["'0'", "1..=4294967295"]);
}

#[test]
fn an_empty_program_is_wrong_usage() {
    for words in [
        &["run", "-n", "2", "--", ""][..],
        &["exec", "--", ""],
        &["env", ""],
    ] {
        let output = weft(words).output().unwrap();
        assert_says(&output, 2, &["the program's name is empty"]);
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure_with_a_reason() {
    for words in [
        &["info"][..],
        &["info", "--json"],
        &["doctor", "--quick"],
        &["doctor", "--quick", "--json"],
        &["top", "--once", "--interval", "0.01"],
        &["sim", "incast", "--hosts", "2", "--bytes", "1"],
        &["sim", "incast", "--hosts", "2", "--bytes", "1", "--json"],
        &["completions", "bash"],
    ] {
        let output = weft(words).stdout(full()).output().unwrap();
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(
            talk.contains("No space left on device"),
            "{words:?}: {talk}"
        );
        assert!(!talk.contains("panicked"), "{words:?}: {talk}");
        // The doctor says by 2 that Weft does not work here.
        let code = output.status.code();
        let doctor = words[0] == "doctor" && code == Some(2);
        assert!(code == Some(1) || doctor, "{words:?}: {code:?}");
    }
}

#[test]
fn a_verdict_that_cannot_be_written_is_still_in_the_code() {
    let doctor = |stderr: Stdio| {
        let mut doctor = weft(&["doctor", "--quick"]);
        // A wrong value is a failure: 2.
        doctor.env("FI_WEFT_ROUTE", "nonsense");
        doctor
            .stdout(full())
            .stderr(stderr)
            .status()
            .unwrap()
            .code()
    };
    assert_eq!(doctor(Stdio::null()), Some(2));
    assert_eq!(doctor(full().into()), Some(2));
}

#[test]
fn help_that_cannot_be_written_is_a_failure_and_help_that_nobody_reads_is_none() {
    let tools = [
        "run", "submit", "jobs", "import", "export", "exec", "env", "doctor", "sim", "soak", "top",
        "info",
    ];
    let helps = tools.iter().map(|tool| vec![*tool, "--help"]);
    let own = [vec!["--help"], vec!["--version"], vec!["help", "run"]];
    for words in own.into_iter().chain(helps) {
        let output = weft(&words).stdout(full()).output().unwrap();
        assert_says(&output, 1, &["No space left on device"]);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = weft(&words).stdout(writer).output().unwrap();
        assert_eq!(output.stderr, b"", "{words:?}");
        assert!(matches!(output.status.code(), None | Some(0)), "{words:?}");
    }
}

#[test]
fn an_error_that_cannot_be_written_is_still_an_error() {
    for words in [
        &["import", "/nowhere/file"][..],
        &["sim", "incast", "--plot", "/nowhere/file.svg"],
        &["doctor", "--hosts", ""],
        &["run", "-n", "0", "x"],
        &["exec", "--", "/nowhere/program"],
    ] {
        let status = weft(words).stdout(full()).stderr(full()).status().unwrap();
        let code = status.code();
        assert!(matches!(code, Some(1 | 2 | 127)), "{words:?}: {code:?}");
    }
}
