// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs, arguments, folders and variables whose bytes are not UTF-8: they reach the ranks as
//! they are, also through the node agents of other hosts; where text must be, the refusal shows
//! them.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::fake::Fake;

fn odd(text: &str) -> OsString {
    OsString::from_vec([text.as_bytes(), b"caf\xe9"].concat())
}

/// A job whose program, in a folder with such a name, says its name, its argument, a variable and
/// the folder that it runs in.
fn run(fake: &Fake, options: &[&str]) -> Output {
    fake.program(r#"printf '%s|' "$0" "$1" "$K" "$(pwd)""#);
    let folder = odd(&fake.path(""));
    std::fs::create_dir(&folder).unwrap();
    std::fs::rename(fake.path("program"), Path::new(&folder).join(odd(""))).unwrap();
    let words = ["--quiet", "--transport", "native", "--mpi"].map(OsString::from);
    let mut words = words.to_vec();
    words.push(fake.path("bin/mpiexec").into());
    words.extend(options.iter().map(OsString::from));
    let option = |name: &str, value: &OsStr| [OsStr::new(name), value].join(OsStr::new("="));
    words.extend([option("--wdir", &folder), "-x".into(), odd("K=")]);
    words.extend(["-np".into(), "2".into(), "--".into(), odd("./"), odd("a")]);
    fake.weft(&words)
}

fn assert_said(fake: &Fake, output: &Output) {
    let folder = odd(&fake.path(""));
    let all = [odd("./"), odd("a"), odd(""), folder].join(OsStr::new("|"));
    let said = OsStr::from_bytes(&output.stdout);
    assert_eq!(
        said,
        [&all, OsStr::new("|")].join(OsStr::new("")),
        "{output:?}"
    );
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn names_of_any_bytes_reach_the_ranks() {
    let fake = Fake::new();
    let output = run(&fake, &[]);
    assert_said(&fake, &output);
}

#[test]
fn names_of_any_bytes_reach_other_hosts() {
    let fake = Fake::new();
    // Every host is this machine.
    fake.executable("agent", "#!/bin/sh\nexec sh -c \"$2\"\n");
    let agent = fake.path("agent");
    let output = run(&fake, &["--hosts", "a,b", "--launcher", &agent]);
    assert_said(&fake, &output);
}

#[test]
fn a_file_that_a_host_lacks_is_named() {
    let fake = Fake::new();
    fake.executable(
        "agent",
        "#!/bin/sh\nrm -f \"${0%/*}\"/*/caf*; exec sh -c \"$2\"\n",
    );
    let agent = fake.path("agent");
    let output = run(&fake, &["--hosts", "a,b", "--launcher", &agent]);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{talk}");
    assert!(
        talk.contains("host a has no /") && talk.contains("/caf\u{fffd};"),
        "{talk}"
    );
}

/// Puts the MPI below a folder with such a name.
fn odd_mpi(fake: &Fake) -> PathBuf {
    let prefix = PathBuf::from(odd(&fake.path("")));
    std::fs::create_dir(&prefix).unwrap();
    std::fs::rename(fake.path("bin"), prefix.join("bin")).unwrap();
    prefix
}

#[test]
fn the_record_names_an_mpi_of_any_bytes() {
    let fake = Fake::new();
    fake.program("exit 3");
    let mpi = odd_mpi(&fake).join("bin/mpiexec");
    let record = fake.path("record.json");
    let words = [
        "--quiet",
        "--transport",
        "native",
        "--json",
        &record,
        "--mpi",
    ];
    let mut words: Vec<OsString> = words.iter().map(Into::into).collect();
    words.push(mpi.into());
    words.extend(["-n".into(), "1".into(), fake.path("program").into()]);
    let output = fake.weft(&words);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let text = std::fs::read_to_string(record).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let shown = record["mpi"]["mpiexec"].as_str().unwrap();
    assert!(shown.ends_with("/caf\u{fffd}/bin/mpiexec"), "{shown}");
}

#[test]
fn weft_info_lists_an_mpi_of_any_bytes() {
    let fake = Fake::new();
    let prefix = odd_mpi(&fake);
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command
        .args(["info", "--json"])
        .env("WEFT_MPI_PATH", &prefix);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("/caf\u{fffd}/bin/mpiexec\""), "{text}");
}

#[test]
fn a_greeting_of_any_bytes_does_not_hide_a_host() {
    let fake = Fake::new();
    let greeting = r"printf 'Gr\374\337\n'; printf 'Gr\374\337\n' >&2";
    fake.executable(
        "agent",
        &format!("#!/bin/sh\n{greeting}\nexec sh -c \"$2\"\n"),
    );
    let agent = fake.path("agent");
    let output = run(&fake, &["--hosts", "a,b", "--launcher", &agent]);
    assert_said(&fake, &output);
}

#[test]
fn a_node_agent_that_cannot_read_its_orders_says_of_what_version_it_is() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.arg("node-agent").stdin(Stdio::piped());
    let mut agent = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut orders = agent.stdin.take().unwrap();
    orders
        .write_all(b"{\"begin\":{\"of\":\"tomorrow\"}}\n")
        .unwrap();
    drop(orders);
    let output = agent.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with(r#"{"ready":{"weft":""#), "{said}");
    assert!(said.contains("of another build"), "{said}");
}

#[test]
fn a_word_that_must_be_text_is_shown_with_its_bytes() {
    let words = ["--hosts".into(), odd("a,"), odd("./"), odd("b")];
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    let output = command
        .arg0(odd("/weft"))
        .arg("run")
        .args(words)
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{talk}");
    assert!(
        talk.starts_with("weft run: not UTF-8: \"a,caf\\xE9\". Only")
            && !talk.contains("caf\u{fffd}"),
        "{talk}"
    );
}

#[test]
fn a_job_file_cannot_hold_such_names_and_says_where_they_belong() {
    let fake = Fake::new();
    let file = fake.path("job.yaml");
    std::fs::write(&file, b"version: 1\nprogram: ./caf\xe9\n").unwrap();
    let output = fake.weft(&["--spec", &file]);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{talk}");
    assert!(talk.contains("byte 25 is the first that is not"), "{talk}");
    assert!(talk.contains("command line, after --spec FILE"), "{talk}");
    // Not so for files that others write.
    let mut import = Command::new(env!("CARGO_BIN_EXE_weft"));
    let output = import.args(["import", &file]).output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{talk}");
    assert!(
        talk.ends_with("byte 25 is the first that is not\n"),
        "{talk}"
    );
}
