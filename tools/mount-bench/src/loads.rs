// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The loads: the work of a run in the mounted folder, the network for it, and how its figure is
//! read. [`crate::rounds`] runs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::commands::{Outcome, fio, rate, text, timed, words};
use crate::fault::Fault;
use crate::ior::{self, Phase};
use crate::server::Server;
use crate::unpack::unpack;

/// Between the mount and the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// No delay.
    Near,
    /// 30 ms before the first byte.
    Far,
    /// The same, 90 MB/s for each connection and 800 MB/s in all.
    Limited,
}

/// One load.
#[derive(Debug)]
pub struct Load {
    /// In options and tables.
    pub name: &'static str,
    /// In words.
    pub what: &'static str,
    /// Of its figure.
    pub unit: &'static str,
    /// Where the store is.
    pub network: Network,
    /// A peer runs it, in a folder, with so much time.
    pub work: fn(&Path, Duration) -> Result<Outcome, Fault>,
}

/// Of one folder.
pub const KEYS: u64 = 100_000;
/// Of a tree.
pub const TREE_FOLDERS: u64 = 16;
/// In each of them.
pub const TREE_FILES: u64 = 1000;
const STREAM_BYTES: u64 = 1 << 30;
const WRITE_BYTES: u64 = 512 << 20;
/// Of a file that is read more than once, or beside others.
pub const FILE_BYTES: u64 = 128 << 20;

/// All loads.
pub static ALL: [Load; 19] = [
    Load {
        name: "list",
        what: "ls -l of 100,000 keys in one folder, 30 ms before each answer",
        unit: "s",
        network: Network::Far,
        work: list,
    },
    Load {
        name: "list-again",
        what: "ls -l of the same keys once more, while all of it is still known",
        unit: "s",
        network: Network::Far,
        work: |folder, limit| {
            list(folder, limit)?;
            list(folder, limit)
        },
    },
    Load {
        name: "find",
        what: "find over 16,000 files in 16 folders, 30 ms",
        unit: "s",
        network: Network::Far,
        work: |folder, limit| {
            let path = folder.join("tree");
            let lines = TREE_FOLDERS * TREE_FILES;
            timed(
                &mut words("find", &[&text(&path), "-type", "f"]),
                limit,
                lines,
            )
        },
    },
    Load {
        name: "stream",
        what: "dd of 1 GiB in blocks of 1 MiB, 30 ms, 90 MB/s a connection, 800 MB/s in all",
        unit: "MB/s",
        network: Network::Limited,
        work: |folder, limit| {
            let from = format!("if={}", text(&folder.join("stream")));
            let words = &mut words("dd", &[&from, "of=/dev/null", "bs=1M", "status=none"]);
            rate(words, limit, STREAM_BYTES)
        },
    },
    Load {
        name: "write",
        what: "dd of 512 MiB into a new file in blocks of 1 MiB, closed, the same network",
        unit: "MB/s",
        network: Network::Limited,
        work: |folder, limit| {
            let to = format!("of={}", text(&folder.join("written")));
            let count = format!("count={}", WRITE_BYTES >> 20);
            let words = &mut words("dd", &["if=/dev/zero", &to, "bs=1M", &count, "status=none"]);
            rate(words, limit, WRITE_BYTES)
        },
    },
    Load {
        name: "random",
        what: "fio, 16 threads that read 128 KiB anywhere in 4 GiB for 5 s, the same network",
        unit: "MB/s",
        network: Network::Limited,
        work: |folder, limit| {
            let file = folder.join("random");
            random_reads(&file, "--numjobs=16", &["--size=4g"], limit)
        },
    },
    Load {
        name: "cached",
        what: "fio, 4 threads that read 128 KiB anywhere in 128 MiB that were read before",
        unit: "MB/s",
        network: Network::Near,
        work: |folder, limit| reads_again(folder, &["--size=128m"], limit),
    },
    Load {
        name: "page-cache",
        what: "the same, and the kernel still has the bytes",
        unit: "MB/s",
        network: Network::Near,
        // Else fio has the kernel drop them first.
        work: |folder, limit| reads_again(folder, &["--size=128m", "--invalidate=0"], limit),
    },
    Load {
        name: "files-2",
        what: "2 dd at once, a file of 128 MiB each, as IOR's file per process, no delay",
        unit: "MB/s",
        network: Network::Near,
        work: |folder, limit| file_per_process(folder, limit, 2),
    },
    Load {
        name: "files-8",
        what: "8 dd at once, a file of 128 MiB each, as IOR's file per process, no delay",
        unit: "MB/s",
        network: Network::Near,
        work: |folder, limit| file_per_process(folder, limit, 8),
    },
    Load {
        name: "fio-read",
        what: "fio reads 1 GiB in order in blocks of 1 MiB, the network of stream",
        unit: "MB/s",
        network: Network::Limited,
        work: |folder, limit| {
            let job = ["--rw=read", "--bs=1m", "--size=1g", "--readonly"];
            fio(&folder.join("stream"), &job, limit)
        },
    },
    Load {
        name: "fio-write",
        what: "fio writes 512 MiB in order in blocks of 1 MiB, then fsync, the network of stream",
        unit: "MB/s",
        network: Network::Limited,
        work: |folder, limit| {
            let file = new_name(folder, "fio-")?;
            let job = ["--rw=write", "--bs=1m", "--size=512m", "--create_on_open=1"];
            let ends = ["--fallocate=none", "--end_fsync=1"];
            let moved = fio(&file, &[&job[..], &ends].concat(), limit);
            let _ = fs::remove_file(file);
            moved
        },
    },
    Load {
        name: "ior-write-2",
        what: "IOR, 2 ranks write a file of 128 MiB each in blocks of 16 MiB, no delay",
        unit: "MB/s",
        network: Network::Near,
        work: |folder, limit| ior::run(Phase::Write, 2, &new_name(folder, "ior-")?, limit),
    },
    Load {
        name: "ior-write-8",
        what: "IOR, 8 ranks write a file of 128 MiB each in blocks of 16 MiB, no delay",
        unit: "MB/s",
        network: Network::Near,
        work: |folder, limit| ior::run(Phase::Write, 8, &new_name(folder, "ior-")?, limit),
    },
    Load {
        name: "ior-read-2",
        what: "IOR, 2 ranks read a file of 128 MiB each in blocks of 16 MiB, no delay",
        unit: "MB/s",
        network: Network::Near,
        work: |folder, limit| ior::run(Phase::Read, 2, &folder.join("ior"), limit),
    },
    Load {
        name: "ior-read-8",
        what: "IOR, 8 ranks read a file of 128 MiB each in blocks of 16 MiB, no delay",
        unit: "MB/s",
        network: Network::Near,
        work: |folder, limit| ior::run(Phase::Read, 8, &folder.join("ior"), limit),
    },
    Load {
        name: "unpack",
        what: "tar unpacks 500 files of 4 KiB into a new folder, 30 ms",
        unit: "s",
        network: Network::Far,
        work: |folder, limit| unpack(folder, 500, limit),
    },
    Load {
        name: "unpack-100",
        what: "the same with 100 files",
        unit: "s",
        network: Network::Far,
        work: |folder, limit| unpack(folder, 100, limit),
    },
    Load {
        name: "unpack-10000",
        what: "the same with 10,000 files",
        unit: "s",
        network: Network::Far,
        work: |folder, limit| unpack(folder, 10_000, limit),
    },
];

/// The load of a name.
///
/// # Errors
/// With the names that are known.
pub fn named(name: &str) -> Result<&'static Load, Fault> {
    let names: Vec<&str> = ALL.iter().map(|load| load.name).collect();
    ALL.iter()
        .find(|load| load.name == name)
        .ok_or_else(|| Fault::UnknownLoad {
            name: name.to_owned(),
            known: names.join(", "),
        })
}

impl Network {
    /// For the server.
    pub fn settings(self) -> Value {
        match self {
            Self::Near => json!({ "first_byte_ms": 0 }),
            Self::Far => json!({ "first_byte_ms": 30 }),
            Self::Limited => json!({
                "first_byte_ms": 30,
                "connection_rate": 90_000_000,
                "total_rate": 800_000_000,
            }),
        }
    }
}

/// Makes what all loads read.
///
/// # Errors
/// The server refuses.
pub fn fill(server: &Server) -> Result<(), Fault> {
    server.fill("many/k", KEYS, 4096)?;
    for folder in 0..TREE_FOLDERS {
        server.fill(&format!("tree/{folder:02}/f"), TREE_FILES, 10)?;
    }
    server.fill("stream", 1, STREAM_BYTES)?;
    server.fill("random", 1, 4 << 30)?;
    server.fill("files", 8, FILE_BYTES)?;
    // IOR's names: a point and eight digits behind the name of the test.
    server.fill("ior.0", 8, ior::FILE_BYTES)
}

fn list(folder: &Path, limit: Duration) -> Result<Outcome, Fault> {
    let path = text(&folder.join("many"));
    timed(&mut words("ls", &["-l", &path]), limit, KEYS + 1)
}

/// Of a file that was read before.
fn reads_again(folder: &Path, more: &[&str], limit: Duration) -> Result<Outcome, Fault> {
    let file = folder.join("files0000000");
    fs::read(&file).map_err(Fault::system(format!("read {}", file.display())))?;
    random_reads(&file, "--numjobs=4", more, limit)
}

fn random_reads(file: &Path, jobs: &str, more: &[&str], limit: Duration) -> Result<Outcome, Fault> {
    let job = ["--rw=randread", "--bs=128k", jobs, "--readonly"];
    let time = ["--time_based", "--runtime=5"];
    fio(file, &[&job[..], &time, more].concat(), limit)
}

/// A name that no run before has used: what a peer does not remove is in the way of no later run.
fn new_name(folder: &Path, prefix: &str) -> Result<PathBuf, Fault> {
    let made = tempfile::Builder::new().prefix(prefix).tempdir();
    let made = made.map_err(Fault::system("make a name"))?;
    Ok(folder.join(made.path().file_name().unwrap_or_default()))
}

/// Every process reads a file of its own, all at once.
fn file_per_process(folder: &Path, limit: Duration, count: u64) -> Result<Outcome, Fault> {
    let files = (0..count).map(|file| folder.join(format!("files{file:07}")));
    let readers =
        files.map(|file| format!("dd if='{}' of=/dev/null bs=1M status=none & ", text(&file)));
    let script = format!("{}wait", readers.collect::<String>());
    rate(
        &mut words("sh", &["-c", &script]),
        limit,
        count * FILE_BYTES,
    )
}
