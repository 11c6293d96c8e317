// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft import` as a user sees it: whole files as AWS documents them, with values of our own
//! (`definitions`), and what is refused.

use std::path::PathBuf;
use std::process::{Command, Output};

fn definition(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/definitions");
    path.join(name).to_str().unwrap().to_owned()
}

fn import(words: &[&str]) -> Output {
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.arg("import").args(words).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The job file that was printed, and for each line on stderr the line and the field that it names.
fn made(words: &[&str]) -> (String, Vec<String>) {
    let output = import(words);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let begin = format!("weft import: {}, line ", words[0]);
    let field = |line: &str| {
        let rest = line.strip_prefix(&begin).expect(line);
        let (place, rest) = rest.split_once(": ").unwrap();
        format!("{place} {}", rest.split_once(": ").unwrap().0)
    };
    let notes = said(&output).lines().map(field).collect();
    (String::from_utf8(output.stdout).unwrap(), notes)
}

#[test]
fn a_definition_for_one_node_becomes_a_job_file() {
    let (text, notes) = made(&[&definition("one-node.json")]);
    let wanted = "\
version: 1
name: wave-solver
program: /opt/wave/solve
arguments:
  - \"--case=s3://wave-cases/harbour.dat\"
  - \"--steps\"
  - \"2000\"
ranks: 8
environment:
  OMP_NUM_THREADS: \"1\"
  WAVE_LOG: info
shm_size: \"4g\"
time_limit: 5400
retries: 2
";
    assert_eq!(text, wanted);
    let container = [
        "9 containerProperties.image",
        "14 containerProperties.jobRoleArn",
        "20 containerProperties.resourceRequirements[0] (VCPU)",
        "21 containerProperties.resourceRequirements[1] (MEMORY)",
        "25 containerProperties.linuxParameters.initProcessEnabled",
        "27 containerProperties.ulimits",
        "28 containerProperties.logConfiguration",
        "32 retryStrategy.evaluateOnExit",
        "35 propagateTags",
        "36 tags",
    ];
    assert_eq!(notes, container);
}

#[test]
fn a_parameter_of_the_command_line_replaces_that_of_the_definition() {
    let (text, _) = made(&[&definition("one-node.json"), "--parameter", "steps=5"]);
    assert!(
        text.contains("  - \"5\"\n") && !text.contains("2000"),
        "{text}"
    );
}

#[test]
fn a_definition_for_several_nodes_becomes_a_job_file() {
    let (text, notes) = made(&[&definition("several-nodes.json")]);
    let wanted = "\
version: 1
name: osu-two-nodes
program: osu_latency
arguments:
  - \"-m\"
  - \"8\"
nodes: 2
ranks_per_node: 1
shm_size: \"8g\"
";
    assert_eq!(text, wanted);
    let range = "nodeProperties.nodeRangeProperties[0]";
    let wanted = [
        format!("10 {range}.instanceTypes"),
        format!("12 {range}.container.image"),
        format!("15 {range}.container.resourceRequirements[0] (VCPU)"),
        format!("16 {range}.container.resourceRequirements[1] (MEMORY)"),
        format!("19 {range}.container.linuxParameters.devices"),
        format!("27 {range}.container.linuxParameters.tmpfs[0].mountOptions"),
        format!("28 {range}.container.linuxParameters.tmpfs[1]"),
        format!("31 {range}.container.privileged"),
    ];
    assert_eq!(notes, wanted);
}

#[test]
fn the_container_of_an_ecs_task_is_read_and_what_is_null_is_not_there() {
    let (text, notes) = made(&[&definition("ecs-task.json")]);
    let wanted = "\
version: 1
name: ring
program: ./ring
arguments:
  - \"--quiet\"
  - \"yes\"
ranks_per_node: 1
";
    assert_eq!(text, wanted);
    assert_eq!(notes.len(), 5, "{notes:?}");
    assert!(notes[4].ends_with("containers[0].secrets"), "{notes:?}");
}

#[test]
fn a_queue_of_a_cluster_becomes_a_job_file() {
    let cluster = definition("cluster.yaml");
    let (text, notes) = made(&[&cluster, "--queue", "wide", "--", "./solve", "a b"]);
    let wanted = "\
version: 1
program: ./solve
arguments:
  - \"a b\"
nodes: 14
mounts:
  - source: \"s3://wave-cases/harbour\"
    target: /mnt/wave-cases/harbour
    read_only: true
  - source: \"s3://wave-results\"
    target: /mnt/wave-results
";
    assert_eq!(text, wanted);
    for field in [
        "1 Region",
        "12 Scheduling.SlurmSettings",
        "25 Scheduling.SlurmQueues[0].ComputeResources[0].Efa",
        "37 Scheduling.SlurmQueues[1]",
        "45 SharedStorage",
    ] {
        assert!(notes.iter().any(|note| note == field), "{field}: {notes:?}");
    }
}

#[test]
fn an_output_is_written_once_and_never_over_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let job = folder.path().join("job.yaml");
    let words = [
        &definition("several-nodes.json"),
        "--output",
        job.to_str().unwrap(),
    ];
    let output = import(&words);
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
    let text = std::fs::read_to_string(&job).unwrap();
    assert!(text.starts_with("version: 1\n"), "{text}");
    let output = import(&words);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        said(&output).contains("job.yaml: this file exists"),
        "{output:?}"
    );
    assert_eq!(std::fs::read_to_string(&job).unwrap(), text);
}

/// A definition with one thing wrong: the command, the fields of the container, those around it.
fn refusal(container: &str, around: &str, words: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("definition.json");
    let text = format!(
        "{{\"jobDefinitionName\": \"x\",\n \"containerProperties\": {{{container}}}{around}}}"
    );
    std::fs::write(&path, text).unwrap();
    let output = import(&[&[path.to_str().unwrap()], words].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let text = said(&output);
    let begin = format!("weft import: {}", path.display());
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix(&begin).expect(&text).to_owned()
}

#[test]
fn a_wrong_definition_is_refused_with_the_field_and_its_line() {
    let command = r#""command": ["a"]"#;
    for (container, around, words) in [
        (
            r#""image": "x""#,
            "",
            "containerProperties: `command` is missing",
        ),
        (
            r#""comand": ["a"]"#,
            "",
            "comand: this field is not known; did you mean `command`?",
        ),
        (
            r#""command": []"#,
            "",
            "containerProperties.command: the command is empty",
        ),
        (r#""command": "a""#, "", "found `a`; it must be a list"),
        (
            r#""command": ["Ref::x"]"#,
            "",
            "command[0]: Ref::x has no value",
        ),
        (
            r#""command": ["mpirun", "-np", "0", "a"]"#,
            "",
            "-np: 0 is not possible",
        ),
        (
            command,
            r#", "retryStrategy": {"attempts": 11}"#,
            "attempts: found `11`",
        ),
        (
            command,
            r#", "timeout": {"attemptDurationSeconds": 5}"#,
            "number from 60 to 315360000",
        ),
        (
            command,
            r#", "type": "multinode""#,
            "is one of type container",
        ),
        (
            command,
            r#", "retryStrategie": {}"#,
            "did you mean `retryStrategy`?",
        ),
        (
            command,
            r#", "eksProperties": {}"#,
            "eksProperties describe a pod",
        ),
    ] {
        let text = refusal(container, around, &[]);
        assert!(
            text.starts_with(", line ") && text.contains(words),
            "{words}: {text}"
        );
    }
}

#[test]
fn wrong_shared_memory_is_refused_with_the_field_and_its_line() {
    let command = r#""command": ["a"]"#;
    for (linux, words) in [
        (
            r#"{"sharedMemorySize": "4g"}"#,
            "sharedMemorySize: found `4g`",
        ),
        (r#"{"sharedMemorySize": 0}"#, "a whole number from 1 to"),
        (
            r#"{"sharedMemorysize": 4096}"#,
            "did you mean `sharedMemorySize`?",
        ),
        (
            r#"{"sharedMemorySize": 1, "tmpfs": [{"containerPath": "/dev/shm", "size": 2}]}"#,
            "make them agree",
        ),
    ] {
        let text = refusal(&format!("{command}, \"linuxParameters\": {linux}"), "", &[]);
        assert!(
            text.starts_with(", line 2, ") && text.contains(words),
            "{linux}: {text}"
        );
    }
}

#[test]
fn words_for_the_other_kind_of_file_are_refused() {
    let command = r#""command": ["a"]"#;
    assert!(refusal(command, "", &["--queue", "q"]).contains("--queue is for"));
    assert!(refusal(command, "", &["--", "./a"]).contains("write none after --"));
    assert!(refusal(command, "", &["--parameter", "x=1"]).contains("no Ref::x in"));
    let longer = r#""command": ["a", "Ref::input"]"#;
    assert!(refusal(longer, "", &["--parameter", "in=1"]).contains("no Ref::in in"));
    let cluster = definition("cluster.yaml");
    for (words, told) in [
        (
            &["--queue", "wide"][..],
            "write it last, as in: weft import cluster.yaml -- ./code",
        ),
        (&["--", "./a"], "choose one by --queue: wide, cheap"),
        (
            &["--queue", "none", "--", "./a"],
            "there is no such queue; there are wide, cheap",
        ),
        (
            &["--parameter", "x=1", "--", "./a"],
            "--parameter is for files of AWS Batch",
        ),
    ] {
        let output = import(&[&[cluster.as_str()], words].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(said(&output).contains(told), "{output:?}");
    }
}
