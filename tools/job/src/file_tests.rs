// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Job files, right and wrong ones, as a user writes them.

use super::*;
use crate::job::When;
use crate::whole::Whole;

const FULL: &str = r#"
version: 1
name: wave-7
program: ./solve
arguments: [input.dat, --steps, 100, 010, no, ""]
folder: /scratch
ranks: 8
nodes: 2
ranks_per_node: 4
hosts: [a, "b:4"]
mpi: openmpi
transport: weft
environment: {OMP_NUM_THREADS: 1, EMPTY: ""}
shm_size: try:4g
mounts:
  - {source: s3://bucket/in, target: /data, read_only: true}
  - source: s3://bucket
    target: /out
time_limit: 1h30m
retries: 2
array: {size: 50, at_once: 5}
dependencies:
  - {job: 1234}
  - {job: 1235_7, when: failed}
"#;

fn read(text: &str) -> Result<Job, String> {
    JobFile::from_text("job.yaml", text)
        .map(|file| file.job)
        .map_err(|fault| fault.to_string())
}

#[test]
fn every_field_is_read() {
    let job = read(FULL).unwrap();
    assert_eq!(job.name.as_deref(), Some("wave-7"));
    assert_eq!(job.program, "./solve");
    let arguments = ["input.dat", "--steps", "100", "010", "no", ""];
    assert_eq!(job.arguments, arguments);
    assert_eq!(job.folder.as_deref(), Some("/scratch"));
    assert_eq!(job.ranks.map(Whole::get), Some(8));
    assert_eq!(job.nodes.map(Whole::get), Some(2));
    assert_eq!(job.ranks_per_node.map(Whole::get), Some(4));
    assert_eq!(job.hosts, ["a", "b:4"]);
    assert_eq!(job.mpi.as_deref(), Some("openmpi"));
    assert_eq!(job.transport.as_deref(), Some("weft"));
    assert_eq!(job.environment["OMP_NUM_THREADS"], "1");
    assert_eq!(job.environment["EMPTY"], "");
    assert_eq!(job.shm_size.unwrap().to_string(), "try:4g");
    assert!(job.mounts[0].read_only && !job.mounts[1].read_only);
    assert_eq!(job.time_limit.unwrap().seconds(), 5400.0);
    assert_eq!(job.retries.map(Whole::get), Some(2));
    let array = job.array.unwrap();
    assert_eq!(
        (array.size.get(), array.at_once.map(Whole::get)),
        (50, Some(5))
    );
    assert_eq!(job.dependencies[0].when, When::Succeeded);
    assert_eq!(job.dependencies[1].when, When::Failed);
}

#[test]
fn json_is_read_as_yaml_is() {
    let json = r#"{"version": 1, "program": "./solve", "ranks": 4, "environment": {"A": "1"}}"#;
    let yaml = "version: 1\nprogram: ./solve\nranks: 4\nenvironment: {A: 1}\n";
    assert_eq!(read(json).unwrap(), read(yaml).unwrap());
}

/// Each wrong line stands behind the two that are required, so in line 3.
fn assert_refused(lines: &[(&str, usize, &str)]) {
    for (line, column, said) in lines {
        let text = format!("version: 1\nprogram: ./a\n{line}\n");
        let answer = read(&text).unwrap_err();
        let place = format!("job.yaml, line 3, column {column}: ");
        assert!(
            answer.starts_with(&place) && answer.contains(said),
            "{line}: {answer}"
        );
    }
}

#[test]
fn a_wrong_name_or_number_is_refused_with_its_line_its_value_and_what_to_do() {
    assert_refused(&[
        ("rank_per_node: 4", 1, "did you mean `ranks_per_node`?"),
        ("colour: red", 1, "there are version, name, program"),
        (
            "ranks: 0",
            8,
            "ranks: 0 is not possible; it must be a whole number from 1",
        ),
        ("ranks: -4", 8, "-4 is not possible"),
        ("ranks: four", 8, "four is not possible"),
        ("ranks: 99999999999999999999", 8, "from 1 to 2147483647"),
        ("ranks: [4]", 8, "found a list"),
        ("ranks:", 6, "no value is given"),
        ("hosts: a", 8, "must be a list"),
        ("hosts: [a, 'b c']", 12, "hosts[1]: `b c` is no host"),
        ("environment: [A=1]", 14, "must be fields with values"),
        (
            r#"environment: {"A\nB": [1]}"#,
            23,
            r"environment.A\nB: found a list",
        ),
        ("environment: {'A=B': 1}", 14, "`A=B` cannot be the name"),
    ]);
}

#[test]
fn a_wrong_size_time_or_part_is_refused_with_its_line_its_value_and_what_to_do() {
    assert_refused(&[
        ("shm_size: 4096", 11, "`4096` has no unit"),
        (
            "time_limit: -5",
            13,
            "`-5` is not possible; a time is more than 0",
        ),
        ("retries: 10", 10, "from 0 to 9"),
        ("array: {size: 4, at_once: 5}", 27, "array.at_once: 5 tasks"),
        ("array: {siez: 4}", 9, "did you mean `size`?"),
        (
            "dependencies: [{job: 1, when: success}]",
            31,
            "did you mean `succeeded`?",
        ),
        (
            "dependencies: [{job: '1;x'}]",
            22,
            "`1;x` is no number of a job",
        ),
        ("mounts: [{source: s3://data}]", 10, "`target` is missing"),
        (
            "mounts: [{source: /data, target: /d}]",
            19,
            "`/data` is no bucket",
        ),
        (
            "mounts: [{source: s3://data, target: d}]",
            38,
            "`d` must be an absolute path",
        ),
        (
            "mounts: [{source: s3://data, target: /}]",
            38,
            "`/` must be an absolute path",
        ),
        (
            "mounts: [{source: s3://data, target: /a/../b}]",
            38,
            "without `.` and `..`",
        ),
        (
            "mounts: [{source: s3://data, target: /d, read_only: 1}]",
            53,
            "true or false",
        ),
        (
            "mounts: [{source: s3://data, target: /d, shared_writes: true}]",
            57,
            "version 1 of job files has no such field; write `version: 2`",
        ),
        (
            "mounts: [{source: s3://data, target: /d, read_only: true, shared_writes: true}]",
            74,
            "nobody writes",
        ),
        (
            "mounts: [{source: s3://data, target: /d, shared_write: true}]",
            42,
            "did you mean `shared_writes`?",
        ),
        ("name: '-x'", 7, "must be 1 to 128 letters"),
        ("folder: ''", 9, "folder: is empty"),
    ]);
}

#[test]
fn mount_of_version_2_may_share_its_writes_and_is_written_so() {
    let mount = "mounts: [{source: s3://data, target: /d, shared_writes: true}]";
    let job = read(&format!("version: 2\nprogram: ./a\n{mount}\n")).unwrap();
    assert!(job.mounts[0].shared_writes);
    assert_eq!(job.mounts[0].to_string(), "s3://data:/d:shared-writes");
    let written = crate::write::to_yaml(&job).unwrap();
    assert!(written.starts_with("version: 2\n") && written.contains("shared_writes: true"));
    assert_eq!(read(&written).unwrap(), job);
}

#[test]
fn ranks_nodes_and_hosts_must_agree() {
    for (lines, said) in [
        (
            "ranks: 9\nnodes: 2\nranks_per_node: 4",
            "9 ranks do not fit",
        ),
        ("ranks: 4\nnodes: 2\nranks_per_node: 4", "write `nodes: 1`"),
        ("ranks: 2\nnodes: 3", "at most 2 nodes"),
        ("nodes: 3\nhosts: [a, b, a]", "`hosts` names 2"),
    ] {
        let text = format!("version: 1\nprogram: ./a\n{lines}\n");
        let answer = read(&text).unwrap_err();
        assert!(answer.contains(said), "{lines}: {answer}");
    }
    for lines in [
        "ranks: 7\nnodes: 2\nranks_per_node: 4",
        "ranks: 8\nnodes: 2\nranks_per_node: 4\nhosts: [a, b]",
        "ranks: 3\nnodes: 3",
        "ranks: 2147483647\nnodes: 65536\nranks_per_node: 65536",
    ] {
        let text = format!("version: 1\nprogram: ./a\n{lines}\n");
        let is_last = lines.contains("2147483647");
        assert_eq!(read(&text).is_ok(), !is_last, "{lines}");
    }
}

/// Lists that are compared element by element: a long one must not take minutes.
#[test]
fn lists_that_are_too_long_are_refused_at_once() {
    let listed = |line: &str, count: usize| -> String {
        let lines = (0..count).map(|index| line.replace('#', &index.to_string()));
        lines.collect()
    };
    for (field, line, most) in [
        ("environment", "  a#: x\n", 4096),
        ("hosts", "- a#\n", 4096),
        ("mounts", "- {source: s3://abc, target: /a#}\n", 64),
        ("dependencies", "- {job: 1}\n", 256),
    ] {
        let text = |count| {
            let list = listed(line, count);
            format!("version: 1\nprogram: a\n{field}:\n{list}")
        };
        assert!(read(&text(most)).is_ok(), "{field}");
        if field == "environment" {
            // A map of more names is refused before it is known what it is.
            let answer = read(&text(most + 1)).unwrap_err();
            assert!(answer.contains("more than 4096 names"), "{answer}");
            continue;
        }
        let answer = read(&text(most + 1)).unwrap_err();
        let said = format!("{field}: {} are too many", most + 1);
        assert!(
            answer.starts_with("job.yaml, line 4, ") && answer.contains(&said),
            "{answer}"
        );
    }
    let variables = listed(r#"{"name": "n#", "value": ""},"#, 4097);
    let answer = read(&format!(
        r#"{{"jobDefinitionName": "x", "containerProperties": {{"command": ["a"],
        "environment": [{}]}}}}"#,
        variables.trim_end_matches(',')
    ));
    let said = "line 2, column 24: environment: 4097 are too many";
    assert!(answer.as_ref().unwrap_err().contains(said), "{answer:?}");
}

#[test]
fn a_file_that_is_no_job_says_what_one_begins_with() {
    for (text, said) in [
        ("[1, 2]", "is no job file; one begins with `version: 1`"),
        ("version: 3\nprogram: a\n", "`3` is no version"),
        ("version: 0\nprogram: a\n", "it reads versions 1 to 2"),
        ("version: 1\n", "`program` is missing"),
        ("program: a\n", "`version` is missing"),
        ("version: 1\nprogram: ''\n", "program: is empty"),
    ] {
        let answer = read(text).unwrap_err();
        assert!(answer.contains(said), "{text:?}: {answer}");
    }
}

#[test]
fn a_size_beyond_the_memory_is_refused_and_a_wish_is_not() {
    let file = |size: &str| {
        let text = format!("version: 1\nprogram: a\nshm_size: {size}\n");
        JobFile::from_text("job.yaml", &text).unwrap()
    };
    assert!(file("1g").check_memory(1 << 30).is_ok());
    assert!(file("try:2g").check_memory(1 << 30).is_ok());
    let said = file("2g").check_memory(1 << 30).unwrap_err().to_string();
    assert!(
        said.contains("line 3") && said.contains("1024m at most"),
        "{said}"
    );
}

#[test]
fn a_file_that_is_missing_too_long_or_no_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.yaml");
    let said = |path: &Path| JobFile::read(path).unwrap_err().to_string();
    assert!(said(&path).contains("No such file"));
    assert!(said(folder.path()).contains("directory"));
    std::fs::write(&path, b"program: \xff\n").unwrap();
    assert!(said(&path).contains("byte 9"));
    std::fs::write(&path, vec![b' '; BYTES_MOST + 10]).unwrap();
    assert!(said(&path).contains("at most 1048576"));
}
