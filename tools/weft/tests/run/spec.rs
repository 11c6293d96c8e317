// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft run --spec` as a user sees it, with a launcher that is only a shell script.
//!
//! Needs no MPI. tests/mpi/suites/spec.sh tests job files with real MPIs.

use std::process::Output;

use crate::fake::{Fake, signal, wait_for};

/// A job file for the fake launcher; `lines` stand behind the two that are required.
fn job_file(fake: &Fake, script: &str, lines: &str) -> String {
    fake.program(script);
    let (program, mpi) = (fake.path("program"), fake.path("bin/mpiexec"));
    let path = fake.path("job.yaml");
    let text = format!("version: 1\nprogram: {program}\n{lines}\nmpi: {mpi}\ntransport: native\n");
    std::fs::write(&path, text).unwrap();
    path
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_job_file_is_run_as_it_says() {
    let fake = Fake::new();
    let script = r#"echo "$RANKS $PWD $A" "$@""#;
    let folder = fake.path("bin");
    let lines =
        format!("arguments: [two words, 010]\nranks: 3\nfolder: {folder}\nenvironment: {{A: no}}");
    let path = job_file(&fake, script, &lines);
    let output = fake.weft(&["--spec", &path, "--quiet"]);
    assert_eq!(
        printed(&output),
        format!("3 {folder} no two words 010\n"),
        "{output:?}"
    );
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn options_win_over_the_file() {
    let fake = Fake::new();
    let script = r#"echo "$RANKS $A $B $C" "$@""#;
    let lines = "arguments: [x]\nranks: 3\nenvironment: {A: 1, B: 2}\ntime_limit: 0.1";
    let path = job_file(&fake, script, lines);
    let words = [
        "--spec",
        &path,
        "-n",
        "2",
        "--env",
        "B=3",
        "--env",
        "C=4",
        "--timeout",
        "60",
    ];
    let output = fake.weft(&words);
    assert_eq!(printed(&output), "2 1 3 4 x\n", "{output:?}");
    let program = fake.path("program");
    let words = ["--spec", &path, "--timeout", "60", "--", &program, "y", "z"];
    let output = fake.weft(&words);
    assert_eq!(printed(&output), "3 1 2  y z\n", "{output:?}");
}

#[test]
fn a_dry_run_of_a_job_file_prints_the_command() {
    let fake = Fake::new();
    let path = job_file(&fake, "exit 1", "arguments: [a b]\nranks: 5\nretries: 3");
    let output = fake.weft(&["--spec", &path, "--dry-run"]);
    let line = printed(&output);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        line.contains("-n 5") && line.contains("/program 'a b'"),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1, "{line}");
}

#[test]
fn a_job_that_fails_is_run_again_as_often_as_it_may() {
    let script = r#"echo x >>"$0.runs"; test "$(wc -l <"$0.runs")" -ge 3 || exit 7"#;
    for (retries, code, runs) in [("retries: 1", 7, 2), ("retries: 5", 0, 3), ("", 7, 1)] {
        let fake = Fake::new();
        let path = job_file(&fake, script, &format!("{retries}\nranks: 1"));
        let output = fake.weft(&["--spec", &path]);
        let count = std::fs::read_to_string(fake.path("program.runs")).unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(count.lines().count(), runs, "{retries}: {output:?}");
        let told = said(&output)
            .matches("failed with exit code 7; it is run")
            .count();
        assert_eq!(told, runs - 1, "{output:?}");
    }
}

#[test]
fn a_job_that_met_its_time_limit_is_not_run_again() {
    let fake = Fake::new();
    let lines = "ranks: 1\ntime_limit: 0.2\nretries: 3";
    let path = job_file(&fake, r#"echo x >>"$0.runs"; exec sleep 600"#, lines);
    let output = fake.weft(&["--spec", &path]);
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    let runs = std::fs::read_to_string(fake.path("program.runs")).unwrap();
    assert_eq!(runs, "x\n");
}

#[test]
fn a_job_that_somebody_ended_is_not_run_again() {
    let fake = Fake::new();
    let script = r#"echo x >>"$0.runs"; touch "$0.ready"; while :; do sleep 0.02; done"#;
    let child = fake.start(&["-n", "1", "--retries", "3"], script);
    wait_for(&fake.path("program.ready"));
    signal(child.id(), "TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{output:?}");
    let runs = std::fs::read_to_string(fake.path("program.runs")).unwrap();
    assert_eq!(runs, "x\n");
}

#[test]
fn what_a_job_file_cannot_mean_is_refused_before_anything_starts() {
    for (lines, words) in [
        (
            "rank_per_node: 4",
            "job.yaml, line 3, column 1: `rank_per_node` is not a field",
        ),
        ("ranks: 0", "line 3, column 8: ranks: 0 is not possible"),
        ("time_limit: -1", "time_limit: `-1` is not possible"),
        ("mpi: openmp", "`mpi` is given twice"),
        ("shm_size: 1000t", "is more than the memory here"),
        ("shm_size: 4096", "shm_size: `4096` has no unit"),
        (
            "mounts: [{source: data, target: /data}]",
            "mounts[0].source: `data` is no bucket",
        ),
        (
            "array: {size: 50}",
            "array: weft run starts one job, and not 50",
        ),
        (
            "dependencies: [{job: 12}]",
            "dependencies: weft run starts at once",
        ),
        (
            "nodes: 2",
            "nodes: weft run cannot choose 2 nodes itself; name them in `hosts`",
        ),
        ("hosts: ['a:0']", "line 3, column 9: hosts[0]: `a:0`"),
        (
            "hosts: ['-oProxyCommand=x']",
            "hosts[0]: `-oProxyCommand=x` is not a host name",
        ),
        (
            "ranks: 3\nranks_per_node: 2",
            "ranks_per_node: 3 ranks, 2 on each node, need 2 nodes",
        ),
    ] {
        let fake = Fake::new();
        let path = job_file(&fake, r#"touch "$0.ran""#, lines);
        let output = fake.weft(&["--spec", &path]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{lines}: {output:?}");
        assert!(
            text.starts_with("weft run: ") && text.contains(words),
            "{lines}: {text}"
        );
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            !std::path::Path::new(&fake.path("program.ran")).exists(),
            "{lines}"
        );
    }
}

#[test]
fn a_wrong_mpi_or_transport_is_refused_with_its_line() {
    let fake = Fake::new();
    let path = fake.path("job.yaml");
    for (line, words) in [
        (
            "mpi: openmp",
            "line 3, column 6: mpi: `openmp` is none of auto",
        ),
        ("transport: tpc", "line 3, column 12: transport: "),
    ] {
        std::fs::write(&path, format!("version: 1\nprogram: sh\n{line}\n")).unwrap();
        let output = fake.weft(&["--spec", &path]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(said(&output).contains(words), "{output:?}");
    }
}

#[test]
fn a_spec_that_is_not_there_and_no_spec_and_no_program_are_refused() {
    let fake = Fake::new();
    let output = fake.weft(&["--spec", &fake.path("none.yaml")]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        said(&output).contains("none.yaml cannot be read: No such file"),
        "{output:?}"
    );
    let output = fake.weft(&["-n", "2"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(said(&output).contains("no PROGRAM was named"), "{output:?}");
}

/// A job definition of AWS Batch in the place of a job file: a command without a launcher is one
/// rank on each node.
#[test]
fn a_definition_of_batch_is_run_as_it_stands() {
    let fake = Fake::new();
    fake.program(r#"echo "$RANKS $A" "$@""#);
    let (program, path) = (fake.path("program"), fake.path("definition.json"));
    let text = format!(
        r#"{{"jobDefinitionName": "small", "type": "container",
            "containerProperties": {{"image": "img", "command": ["{program}", "Ref::in"],
                "environment": [{{"name": "A", "value": "7"}}]}},
            "parameters": {{"in": "x y"}}, "timeout": {{"attemptDurationSeconds": 60}}}}"#
    );
    std::fs::write(&path, text).unwrap();
    let mpi = fake.path("bin/mpiexec");
    let output = fake.weft(&["--spec", &path, "--mpi", &mpi, "--transport", "native"]);
    assert_eq!(printed(&output), "1 7 x y\n", "{output:?}");
    let note = "definition.json, line 2: containerProperties.image: a job file starts a program";
    assert!(said(&output).contains(note), "{output:?}");
}
