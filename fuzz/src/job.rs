// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Target: files of jobs. Any text is read or refused in one line; what is read is written, and
//! then read as it was. It is exported to each other system, or refused in one line.

use clap::Parser;
use weft_job::export;
use weft_job::import::{self, Arguments};
use weft_job::{Fault, JobFile, write};

use crate::input::Input;

/// Pieces of job files, of definitions of AWS Batch and of configurations of ParallelCluster: bytes
/// alone would seldom come past the parser.
const PIECES: [&str; 64] = [
    "version: 1\n",
    "program: a\n",
    "ranks: ",
    "nodes: ",
    "ranks_per_node: ",
    "hosts: [",
    "mpi: ",
    "environment:\n  A: ",
    "shm_size: ",
    "4g",
    "try:",
    "mounts:\n  - source: s3://abc/",
    "    target: /x\n",
    "    read_only: true\n",
    "time_limit: ",
    "1h30m",
    "retries: ",
    "array:\n",
    "  size: 5\n",
    "  at_once: 2\n",
    "dependencies:\n  - job: 1\n",
    "    when: failed\n",
    "{\"jobDefinitionName\": \"x\", ",
    "\"containerProperties\": {",
    "\"command\": [",
    "\"mpirun\", ",
    "\"-np\", ",
    "\"Ref::",
    "\"parameters\": {",
    "\"linuxParameters\": {",
    "\"sharedMemorySize\": ",
    "\"tmpfs\": [{\"containerPath\": \"/dev/shm\", \"size\": ",
    "\"nodeProperties\": {\"numNodes\": ",
    "\"mainNode\": ",
    "\"nodeRangeProperties\": [",
    "{\"targetNodes\": \"0:",
    "\"container\": {",
    "\"ecsProperties\": {\"taskProperties\": [",
    "\"containers\": [{",
    "\"retryStrategy\": {\"attempts\": ",
    "\"timeout\": ",
    "\"environment\": [{\"name\": \"A\", \"value\": ",
    "\"resourceRequirements\": [",
    "null",
    "true",
    "Scheduling:\n",
    "  SlurmQueues:\n  - Name: q\n",
    "    ComputeResources: [{MaxCount: ",
    "0",
    "-1",
    "2147483648",
    "\"",
    "'",
    "]",
    "}",
    ", ",
    ": ",
    "\n",
    "  ",
    "- ",
    "|\n",
    "&a ",
    "*a",
    "\u{85}",
];

/// Files that are right, to be changed here and there.
const RIGHT: [&str; 3] = [
    "version: 1\nprogram: ./a\narguments: [x, 010, \"\"]\nranks: 8\nnodes: 2\nhosts: [a, b]\n\
     environment: {A: no}\nshm_size: try:4g\nmounts: [{source: s3://abc/d, target: /x}]\n\
     time_limit: 1h30m\nretries: 2\narray: {size: 5, at_once: 2}\ndependencies: [{job: 1}]\n",
    "{\"jobDefinitionName\": \"x\", \"nodeProperties\": {\"numNodes\": 2, \"mainNode\": 0, \
     \"nodeRangeProperties\": [{\"targetNodes\": \"0:\", \"container\": {\"command\": [\"mpirun\", \
     \"-np\", \"4\", \"a\", \"Ref::b\"], \"linuxParameters\": {\"sharedMemorySize\": 64}}}]}, \
     \"parameters\": {\"b\": \"c\"}, \"retryStrategy\": {\"attempts\": 3}}",
    "Scheduling:\n  Scheduler: slurm\n  SlurmQueues:\n  - Name: q\n    ComputeResources:\n    \
     - Name: c\n      MaxCount: 4\n    Iam:\n      S3Access:\n      - BucketName: abc\n",
];

/// Runs one input: as it is, as changes to a file that is right, and as pieces of files.
pub fn run(bytes: &[u8]) {
    read(&String::from_utf8_lossy(bytes));
    let mut input = Input::new(bytes);
    for right in RIGHT {
        let mut changed = right.as_bytes().to_vec();
        input.mutate(&mut changed);
        read(&String::from_utf8_lossy(&changed));
    }
    let mut text = String::new();
    while !input.is_over() {
        match input.byte() {
            piece @ 0..=191 => text.push_str(PIECES[usize::from(piece) % PIECES.len()]),
            letter => text.push(char::from(letter & 127)),
        }
        if text.len().is_multiple_of(7) {
            read(&text);
        }
        // A long text is parsed again and again.
        if text.len() > 600 {
            read(&text);
            text.clear();
        }
    }
    read(&text);
}

fn read(text: &str) {
    for result in readings(text) {
        match result {
            Ok(file) => {
                let yaml = write::to_yaml(&file.job).expect("a job can be written");
                let again = JobFile::from_text("again", &yaml).expect("what is written is read");
                assert_eq!(again.job, file.job, "{yaml}");
                export_everywhere(&file);
            }
            Err(fault) => assert!(!fault.to_string().contains(char::is_control), "{fault}"),
        }
    }
}

/// What `weft export` is asked for.
const EXPORTS: [&[&str]; 9] = [
    &["batch", "job", "--image", "i"],
    &["batch", "job", "--image", "i", "--privileged"],
    &["trainjob", "job", "--image", "i", "--no-mounts"],
    &["mpijob", "job", "--image", "i", "--privileged"],
    &["batch-submit", "job", "--job-queue", "q"],
    &[
        "parallelcluster",
        "job",
        "--instance-type",
        "t",
        "--subnet",
        "s",
    ],
    &["trainjob", "job", "--image", "i"],
    &["mpijob", "job", "--image", "i"],
    &["slurm-shm", "job", "--slurm", "24.11"],
];

thread_local! {
    /// Parsed once: a parser's making takes longer than an export.
    static TARGETS: Vec<export::Target> = EXPORTS
        .iter()
        .map(|words| export::Arguments::parse_from(*words).target)
        .collect();
}

fn export_everywhere(file: &JobFile) {
    TARGETS.with(|targets| {
        for target in targets {
            match target.text_of(file) {
                Ok(exported) => assert!(exported.text.ends_with('\n')),
                Err(fault) => assert!(!fault.to_string().contains(char::is_control), "{fault}"),
            }
        }
    });
}

/// As `weft run --spec` reads it, and as `weft import` does, with a program and without.
fn readings(text: &str) -> [Result<JobFile, Fault>; 3] {
    let without_program = Arguments {
        file: "job".into(),
        output: None,
        parameters: Vec::new(),
        queue: None,
        program: Vec::new(),
    };
    let with_program = Arguments {
        program: vec!["./a".to_owned()],
        ..without_program.clone()
    };
    [
        JobFile::from_text("job", text),
        import::read(&without_program, "job", text),
        import::read(&with_program, "job", text),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_are_changed_are_right() {
        for (right, is_read) in RIGHT.iter().zip([
            [true, false, false],
            [true, true, false],
            [false, false, true],
        ]) {
            let readings = readings(right);
            assert_eq!(
                readings.each_ref().map(Result::is_ok),
                is_read,
                "{readings:?}"
            );
        }
    }
}
