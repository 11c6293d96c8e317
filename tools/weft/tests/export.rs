// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft export` as a user sees it: each target's text and notes, and what is refused.
//! tests/exports checks whether the other systems accept the texts.

use std::path::PathBuf;
use std::process::{Command, Output};

const FULL: &str = "\
version: 1
name: wave.solver
program: ./solve
arguments: [input.dat, \"$(HOME)\"]
folder: /work
ranks: 8
nodes: 2
ranks_per_node: 4
hosts: [a, b]
mpi: mpich
transport: weft
environment: {OMP_NUM_THREADS: 1}
shm_size: try:1500k
mounts: [{source: s3://abc/d/e, target: /data, read_only: true}]
time_limit: 30.5
retries: 2
array: {size: 5, at_once: 2}
dependencies: [{job: 17}]
";

/// What each target's own options must say.
const TARGETS: [&[&str]; 6] = [
    &["batch", "--image", "i", "--no-mounts"],
    &["batch-submit", "--job-queue", "q"],
    &["parallelcluster", "--instance-type", "t", "--subnet", "s"],
    &["trainjob", "--image", "i", "--no-mounts"],
    &["mpijob", "--image", "i", "--no-mounts"],
    &["slurm-shm", "--slurm", "26.05"],
];

fn export(job: &str, words: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("job.yaml"), job).unwrap();
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.arg("export").args(words).arg("job.yaml");
    weft.current_dir(folder.path()).output().unwrap()
}

fn printed(job: &str, words: &[&str]) -> String {
    let output = export(job, words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The fields that the notes name, with their lines.
fn noted(output: &Output) -> Vec<String> {
    let field = |line: &str| {
        let rest = line
            .strip_prefix("weft export: job.yaml, line ")
            .expect(line);
        let (line, rest) = rest.split_once(", column ").unwrap();
        let (_, rest) = rest.split_once(": ").unwrap();
        format!("{line} {}", rest.split_once(": ").unwrap().0)
    };
    said(output).lines().map(field).collect()
}

#[test]
fn each_field_is_in_the_text_or_among_the_notes() {
    let single = FULL
        .replace("nodes: 2\n", "")
        .replace("ranks: 8\n", "ranks: 4\n");
    let single = single.replace("hosts: [a, b]\n", "");
    let found = |words, job: &str| noted(&export(job, words));
    let batch = [
        "2 name",
        "14 mounts",
        "13 shm_size",
        "13 shm_size",
        "6 ranks",
        "15 time_limit",
        "9 hosts",
        "17 array",
        "18 dependencies",
        "7 nodes",
    ];
    assert_eq!(found(TARGETS[0], FULL), batch);
    assert_eq!(found(TARGETS[1], &single), ["2 name", "15 array.at_once"]);
    let pods = [
        "2 name",
        "14 mounts",
        "15 time_limit",
        "13 shm_size",
        "9 hosts",
        "17 array",
        "18 dependencies",
    ];
    assert_eq!(found(TARGETS[3], FULL), pods);
    assert_eq!(found(TARGETS[4], FULL), pods);
    let cluster = found(TARGETS[2], FULL);
    let nodes_alone = cluster.iter().all(|note| !note.ends_with(" nodes"));
    assert!(cluster.len() == 16 && nodes_alone, "{cluster:?}");
}

#[test]
fn a_definition_of_batch_starts_weft_run_on_its_hosts() {
    let text = printed(FULL, TARGETS[0]);
    let definition: serde_json::Value = serde_json::from_str(&text).unwrap();
    let range = &definition["nodeProperties"]["nodeRangeProperties"][0];
    let words = "weft run --hostfile /run/weft/hosts -n 8 --ppn 4 --mpi mpich --transport weft \
                 --wdir /work --env OMP_NUM_THREADS=1 -- ./solve input.dat $(HOME)";
    let words: Vec<&str> = words.split(' ').collect();
    assert_eq!(range["container"]["command"], serde_json::json!(words));
    // 1500 KiB become 2 MiB.
    let linux = &range["container"]["linuxParameters"];
    assert_eq!(linux["sharedMemorySize"], 2);
    assert_eq!(definition["timeout"]["attemptDurationSeconds"], 60);
    assert_eq!(definition["retryStrategy"]["attempts"], 3);
}

#[test]
fn containers_that_mount_are_privileged() {
    let mut words = TARGETS[0].to_vec();
    *words.last_mut().unwrap() = "--privileged";
    let definition: serde_json::Value = serde_json::from_str(&printed(FULL, &words)).unwrap();
    let container = &definition["nodeProperties"]["nodeRangeProperties"][0]["container"];
    assert_eq!(container["privileged"], true);
    let command = container["command"].as_array().unwrap();
    assert!(
        command.iter().any(|word| word == "s3://abc/d/e:/data:ro"),
        "{command:?}"
    );
}

#[test]
fn buckets_need_a_word_and_the_word_needs_buckets() {
    let refused = |job: &str, words: &[&str]| {
        let output = export(job, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(output.stdout.is_empty());
        said(&output)
    };
    let why = refused(FULL, &["batch", "--image", "i"]);
    assert!(
        why.contains("only a privileged container may mount a bucket"),
        "{why}"
    );
    let none = "version: 1\nprogram: ./a\n";
    let why = refused(none, &["mpijob", "--image", "i", "--privileged"]);
    assert!(why.contains("this one mounts none"), "{why}");
}

#[test]
fn pods_have_a_dev_shm_of_the_size_and_no_variables_of_kubernetes() {
    for target in [TARGETS[3], TARGETS[4]] {
        let text = printed(FULL, target);
        for part in [
            "medium: Memory\n",
            "sizeLimit: \"1500Ki\"\n",
            "mountPath: /dev/shm\n",
            "mpiImplementation: MPICH\n",
            "- \"$$(HOME)\"\n",
        ] {
            assert!(text.contains(part), "{target:?} without {part}:\n{text}");
        }
    }
}

#[test]
fn arrays_and_dependencies_are_said_when_a_job_is_submitted() {
    let job = "version: 1\nprogram: ./a\narray: {size: 5}\ndependencies: [{job: ab-1}]\n";
    let text = printed(job, TARGETS[1]);
    let submission: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(submission["arrayProperties"]["size"], 5);
    assert_eq!(submission["dependsOn"][0]["jobId"], "ab-1");
    assert_eq!(submission["jobDefinition"], "a");
}

#[test]
fn what_a_target_cannot_say_is_refused_with_its_line() {
    let job = |fields: &str| format!("version: 1\nprogram: ./a\n{fields}\n");
    for (fields, words, parts) in [
        (
            "arguments: [Ref::x]",
            TARGETS[0],
            "has Ref::, which Batch takes",
        ),
        (
            "nodes: 2\narray: {size: 5}",
            TARGETS[1],
            "line 4, column 8: array: Batch has no arrays",
        ),
        (
            "dependencies: [{job: 1, when: failed}]",
            TARGETS[1],
            "line 3, column 31: dependencies[0].when: Batch can only wait for success \
             (`when: succeeded`)",
        ),
        ("", TARGETS[5], "job.yaml: shm_size is missing"),
        (
            "shm_size: 4g",
            &["slurm-shm", "--slurm", "24.11", "--base", "a b"],
            "--base a b must be an absolute path",
        ),
        (
            "shm_size: 4g",
            &["slurm-shm", "--slurm", "26.05", "--script"],
            "--script is for job_container.conf",
        ),
        (
            "",
            &["batch", "--image", "i", "--instance-type", "c5.large"],
            "--instance-type is for jobs of several nodes",
        ),
        ("", &["batch"], "--image <IMAGE>"),
        (
            "",
            &["batch", "--image", "i", "--memory", "64"],
            "has no unit",
        ),
        (
            "",
            &[
                "parallelcluster",
                "--instance-type",
                "t",
                "--subnet",
                "s",
                "--archive",
                "x",
            ],
            "--install-script",
        ),
        (
            "ranks: 0",
            TARGETS[4],
            "line 3, column 8: ranks: 0 is not possible",
        ),
    ] {
        let output = export(&job(fields), words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(
            said(&output).contains(parts),
            "{words:?}: {}",
            said(&output)
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn more_dependencies_than_batch_allows_are_refused_with_both_numbers() {
    let many = |count: usize| {
        let list: String = (0..count).map(|job| format!("- job: {job}\n")).collect();
        export(
            &format!("version: 1\nprogram: ./a\ndependencies:\n{list}"),
            TARGETS[1],
        )
    };
    assert_eq!(many(20).status.code(), Some(0));
    let output = many(21);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let words = "dependencies: 21 dependencies are too many; Batch allows at most 20";
    assert!(said(&output).contains(words), "{}", said(&output));
}

#[test]
fn a_file_that_exists_is_not_overwritten() {
    let words = [
        "mpijob",
        "--image",
        "i",
        "--no-mounts",
        "--output",
        "job.yaml",
    ];
    let output = export(FULL, &words);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said(&output).contains("this file exists"), "{output:?}");
}

/// `weft export` names a script that lies in the tree.
#[test]
fn the_install_script_is_where_the_help_says() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let weft = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["export", "parallelcluster", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(weft.stdout).unwrap();
    let path = "examples/parallelcluster/install-weft.sh";
    assert!(help.contains(path) && root.join(path).is_file(), "{help}");
}
