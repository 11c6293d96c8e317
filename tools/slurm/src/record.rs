// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records: small files in which a job writes when it began and how it ended, and `weft submit`
//! what it submitted (docs/slurm.md, "Records", version 1). They help where Slurm has no accounting
//! and has forgotten the job.
//!
//! Written by the script (`weft_job::sbatch`) and by `submit.rs`; read by `tasks.rs` and `logs.rs`.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::fields::Fields;
use crate::task::{Status, Task};

/// The version that is written and read.
const VERSION: &str = "1";

/// A record whose files have not changed for so long is removed. Chosen.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// The most bytes of a record that are read; the longest list of nodes needs a part of it. Chosen.
const BYTES_MOST: u64 = 1 << 20;

/// What `weft submit` writes down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The job's name.
    pub name: String,
    /// Its time limit in seconds, where there is one.
    pub limit_seconds: Option<u64>,
    /// The script as sbatch got it.
    pub script: String,
}

/// The records of one cluster.
#[derive(Debug, Clone)]
pub struct Records {
    folder: PathBuf,
}

impl Records {
    /// Those of this user; `None` where nothing says where they are.
    #[must_use]
    pub fn of_this_user(cluster: &str) -> Option<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let jobs = set("WEFT_JOBS_DIR").map(PathBuf::from).or_else(|| {
            let state = set("XDG_STATE_HOME").map(PathBuf::from);
            let state = state.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/state")));
            Some(state?.join("weft/jobs"))
        });
        Some(Self {
            folder: jobs?.join(cluster),
        })
    }

    fn folder_of(&self, job: u64) -> PathBuf {
        self.folder.join(job.to_string())
    }

    /// Writes down what was submitted.
    ///
    /// # Errors
    /// When the folder or a file cannot be written.
    pub fn write(&self, job: u64, submitted: &Submitted) -> io::Result<()> {
        let folder = self.folder_of(job);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        let limit = submitted
            .limit_seconds
            .map(|seconds| format!("limit={seconds}\n"));
        let name = submitted.name.replace('\n', " ");
        let text = format!(
            "version={VERSION}\n{}name={name}\n",
            limit.unwrap_or_default()
        );
        fs::write(folder.join("job"), text)?;
        fs::write(folder.join("script"), &submitted.script)
    }

    /// Notes that a task was cancelled at this time, in seconds since 1970: the script of a job
    /// whose ranks end first does not hear why, and one that is killed cannot say it. A job without
    /// a record gets none, and a folder that cannot be written to is no reason to fail.
    pub fn note_cancelled(&self, job: u64, task: Option<u32>, at: u64) {
        let path = self.folder_of(job).join(cancelled_file(task.unwrap_or(0)));
        let _ = fs::write(path, format!("version={VERSION}\nat={at}\n"));
    }

    /// All jobs that have a record, in no order.
    #[must_use]
    pub fn jobs(&self) -> Vec<u64> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let number = |name: std::ffi::OsString| name.to_str()?.parse().ok();
        entries
            .filter_map(|entry| number(entry.file_name()))
            .collect()
    }

    /// What the record of a job says of its tasks, those of an array by their numbers.
    #[must_use]
    pub fn tasks(&self, job: u64) -> Vec<Task> {
        let folder = self.folder_of(job);
        let of_job = read(&folder.join("job")).unwrap_or_default();
        let of_job = Fields::of_lines(&of_job);
        let read_task = |number: u32, text: &str| {
            let fields = Fields::of_lines(text);
            let note = read(&folder.join(cancelled_file(number))).unwrap_or_default();
            let note = Fields::of_lines(&note);
            let has_version = |fields: &Fields<'_>| fields.get("version") == Some(VERSION);
            let cancelled = note.number("at").filter(|_| has_version(&note));
            let mut task = has_version(&fields).then(|| task(job, number, &of_job, &fields))?;
            task.note_cancelled(cancelled);
            Some(task)
        };
        let mut tasks: Vec<Task> = task_files(&folder)
            .filter_map(|(number, path)| read_task(number, &read(&path)?))
            .collect();
        tasks.sort_by_key(|task| task.task);
        tasks
    }

    /// The file that the output of a task goes to, as the task found it.
    #[must_use]
    pub fn output(&self, job: u64, task: Option<u32>) -> Option<PathBuf> {
        let path = self
            .folder_of(job)
            .join(format!("task-{}", task.unwrap_or(0)));
        let text = read(&path)?;
        Fields::of_lines(&text).get("output").map(PathBuf::from)
    }

    /// Removes records that are older than a month. What cannot be removed stays.
    pub fn remove_old(&self) {
        for job in self.jobs() {
            let folder = self.folder_of(job);
            let files = fs::read_dir(&folder).into_iter().flatten().flatten();
            let changed = files.filter_map(|file| file.metadata().ok()?.modified().ok());
            let age = |last: SystemTime| last.elapsed().unwrap_or_default();
            if changed.max().is_some_and(|last| age(last) > KEPT) {
                let _ = fs::remove_dir_all(&folder);
            }
        }
    }
}

fn cancelled_file(task: u32) -> String {
    format!("cancelled-{task}")
}

/// The files `task-N` of a record.
fn task_files(folder: &Path) -> impl Iterator<Item = (u32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name();
        let number = name.to_str()?.strip_prefix("task-")?.parse().ok()?;
        Some((number, entry.path()))
    })
}

fn read(path: &Path) -> Option<String> {
    let is_small = fs::metadata(path).ok()?.len() <= BYTES_MOST;
    is_small.then(|| fs::read_to_string(path).ok())?
}

fn task(job: u64, number: u32, of_job: &Fields<'_>, fields: &Fields<'_>) -> Task {
    let (began, ended) = (fields.number("began"), fields.number("ended"));
    let code = fields
        .number("exit_code")
        .and_then(|code| u8::try_from(code).ok());
    let was_signalled = fields.get("signal") == Some("TERM");
    let ran = ended.unwrap_or(0).saturating_sub(began.unwrap_or(0));
    let met_limit = of_job.number("limit").is_some_and(|limit| ran >= limit);
    let state = match (code, was_signalled) {
        // Killed before it could say so, with its node or without.
        (None, _) => "LOST",
        (Some(_), true) if met_limit => "TIMEOUT",
        (Some(_), true) => "CANCELLED",
        (Some(0), false) => "COMPLETED",
        (Some(_), false) => "FAILED",
    };
    Task {
        job,
        task: (fields.get("array") == Some("yes")).then_some(number),
        name: of_job.get("name").unwrap_or_default().to_owned(),
        state: state.to_owned(),
        reason: String::new(),
        status: Status {
            exit_code: code.unwrap_or(0),
            signal: 0,
        },
        nodes: fields
            .number("node_count")
            .and_then(|nodes| u32::try_from(nodes).ok())
            .unwrap_or(0),
        node_list: fields.get("nodes").unwrap_or_default().to_owned(),
        began,
        ended,
        restarts: fields
            .number("restarts")
            .and_then(|count| u32::try_from(count).ok())
            .unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(folder: &Path) -> Records {
        Records {
            folder: folder.join("c"),
        }
    }

    fn submitted(limit_seconds: Option<u64>) -> Submitted {
        Submitted {
            name: "run\n1".into(),
            limit_seconds,
            script: "#!/bin/bash\n".into(),
        }
    }

    #[test]
    fn what_a_job_wrote_of_its_end_is_its_state() {
        let folder = tempfile::tempdir().unwrap();
        let records = records(folder.path());
        records.write(12, &submitted(Some(60))).unwrap();
        for (text, state, code) in [
            ("ended=110\nexit_code=0\n", "COMPLETED", 0),
            ("ended=110\nexit_code=7\n", "FAILED", 7),
            ("signal=TERM\nended=110\nexit_code=143\n", "CANCELLED", 143),
            ("signal=TERM\nended=160\nexit_code=143\n", "TIMEOUT", 124),
            ("", "LOST", 137),
        ] {
            let text =
                format!("version=1\nrestarts=1\nnodes=n[1-2]\nnode_count=2\nbegan=100\n{text}");
            fs::write(records.folder_of(12).join("task-0"), text).unwrap();
            let tasks = records.tasks(12);
            let [task] = &tasks[..] else {
                panic!("{tasks:?}")
            };
            assert_eq!((task.state.as_str(), task.exit_code()), (state, Some(code)));
            assert_eq!(
                (task.number().as_str(), task.name.as_str()),
                ("12", "run 1")
            );
            assert_eq!((task.nodes, task.restarts), (2, 1));
        }
        assert_eq!(records.jobs(), [12]);
        assert!(records.tasks(13).is_empty());
    }

    #[test]
    fn a_task_that_was_cancelled_while_it_ran_and_did_not_end_well_is_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let records = records(folder.path());
        records.note_cancelled(12, Some(3), 105);
        assert!(records.jobs().is_empty(), "it has no record");
        records.write(12, &submitted(None)).unwrap();
        let is_cancelled = |end: &str| {
            let text = format!("version=1\narray=yes\nbegan=100\n{end}");
            fs::write(records.folder_of(12).join("task-3"), text).unwrap();
            records.tasks(12).remove(0).state == "CANCELLED"
        };
        let ends = [143, 7, 0].map(|code| format!("ended=110\nexit_code={code}\n"));
        let found = || [&*ends[0], &ends[1], &ends[2], ""].map(is_cancelled);
        assert_eq!(found(), [false; 4]);
        records.note_cancelled(12, Some(4), 105);
        assert_eq!(found(), [false; 4], "another one was cancelled");
        // An earlier attempt; the first second, and a later one; the last one; when it was over.
        for (at, wanted) in [
            (99, [false; 4]),
            (100, [true, true, false, true]),
            (109, [true, true, false, true]),
            (110, [true, false, false, true]),
            (111, [false, false, false, true]),
        ] {
            records.note_cancelled(12, Some(3), at);
            assert_eq!(found(), wanted, "{at}");
        }
    }

    #[test]
    fn tasks_of_an_array_are_told_apart_and_other_versions_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let records = records(folder.path());
        records.write(3, &submitted(None)).unwrap();
        let at = |name: &str| records.folder_of(3).join(name);
        for number in [10, 2] {
            let text =
                format!("version=1\narray=yes\noutput=/o/{number} x\nended=1\nexit_code=0\n");
            fs::write(at(&format!("task-{number}")), text).unwrap();
        }
        fs::write(at("task-4"), "version=2\n").unwrap();
        fs::write(at("task-x"), "version=1\n").unwrap();
        let numbers: Vec<String> = records.tasks(3).iter().map(Task::number).collect();
        assert_eq!(numbers, ["3_2", "3_10"]);
        assert_eq!(records.output(3, Some(2)), Some("/o/2 x".into()));
        assert_eq!(records.output(3, Some(3)), None);
    }

    #[test]
    fn only_old_records_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let records = records(folder.path());
        for job in [1, 2] {
            records.write(job, &submitted(None)).unwrap();
        }
        for name in ["job", "script"] {
            let file = fs::File::options()
                .write(true)
                .open(records.folder_of(1).join(name));
            let old = SystemTime::now() - KEPT - Duration::from_secs(60);
            file.unwrap().set_modified(old).unwrap();
        }
        records.remove_old();
        assert_eq!(records.jobs(), [2]);
    }
}
