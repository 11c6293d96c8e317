// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The loads: the work of a run in the mounted folder, the network for it, and how its figure is
//! read. [`crate::rounds`] runs them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fault::Fault;
use crate::server::Server;

/// One load.
#[derive(Debug)]
pub struct Load {
    /// In options and tables.
    pub name: &'static str,
    /// In words.
    pub what: &'static str,
    /// Of its figure.
    pub unit: &'static str,
    /// Whether connections have a speed beside the first byte's delay of 30 ms.
    pub is_wide_area: bool,
    /// A peer runs it, in a folder, with so much time.
    pub work: fn(&Path, Duration) -> Result<Outcome, Fault>,
}

/// What a run took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// In the load's unit.
    pub figure: f64,
    /// What the program asked for, in bytes; 0 where that is not the point.
    pub asked_bytes: u64,
    /// It was ended at the limit.
    pub is_cut: bool,
}

const KEYS: u64 = 100_000;
const TREE_FOLDERS: u64 = 16;
const TREE_FILES: u64 = 1000;
const STREAM_BYTES: u64 = 1 << 30;
const WRITE_BYTES: u64 = 512 << 20;
const PACKED_FILES: u64 = 500;
const FILE_BYTES: u64 = 128 << 20;

/// All loads.
pub static ALL: [Load; 9] = [
    Load {
        name: "list",
        what: "ls -l of 100,000 keys in one folder, 30 ms before each answer",
        unit: "s",
        is_wide_area: false,
        work: |folder, limit| {
            let path = folder.join("many");
            timed(&mut words("ls", &["-l", &text(&path)]), limit, KEYS + 1)
        },
    },
    Load {
        name: "find",
        what: "find over 16,000 files in 16 folders, 30 ms",
        unit: "s",
        is_wide_area: false,
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
        is_wide_area: true,
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
        is_wide_area: true,
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
        is_wide_area: true,
        work: |folder, limit| {
            let file = folder.join("random");
            fio(
                &file,
                &["--rw=randread", "--bs=128k", "--numjobs=16", "--size=4g"],
                limit,
            )
        },
    },
    Load {
        name: "cached",
        what: "fio, 4 threads that read 128 KiB anywhere in 128 MiB that were read before",
        unit: "MB/s",
        is_wide_area: false,
        work: |folder, limit| {
            let file = folder.join("files0000000");
            fs::read(&file).map_err(Fault::system(format!("read {}", file.display())))?;
            fio(
                &file,
                &["--rw=randread", "--bs=128k", "--numjobs=4", "--size=128m"],
                limit,
            )
        },
    },
    Load {
        name: "files-2",
        what: "2 dd at once, a file of 128 MiB each, as IOR's file per process, no delay",
        unit: "MB/s",
        is_wide_area: false,
        work: |folder, limit| file_per_process(folder, limit, 2),
    },
    Load {
        name: "files-8",
        what: "8 dd at once, a file of 128 MiB each, as IOR's file per process, no delay",
        unit: "MB/s",
        is_wide_area: false,
        work: |folder, limit| file_per_process(folder, limit, 8),
    },
    Load {
        name: "unpack",
        what: "tar unpacks 500 files of 4 KiB into a new folder, 30 ms",
        unit: "s",
        is_wide_area: false,
        work: unpack,
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

impl Load {
    /// What its network is like, for the server.
    pub fn network(&self) -> Value {
        let first_byte_ms = if self.name == "cached" || self.name.starts_with("files") {
            0
        } else {
            30
        };
        if self.is_wide_area {
            json!({
                "first_byte_ms": first_byte_ms,
                "connection_rate": 90_000_000,
                "total_rate": 800_000_000,
            })
        } else {
            json!({ "first_byte_ms": first_byte_ms })
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
    server.fill("files", 8, FILE_BYTES)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn words(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// A command that has ended.
struct Ended {
    /// How long it took: the limit, if it was cut.
    seconds: f64,
    /// What it printed; nothing, if it was cut.
    said: String,
    /// It was killed at the limit.
    is_cut: bool,
}

/// Runs a command to its end or the limit.
fn run(command: &mut Command, limit: Duration) -> Result<Ended, Fault> {
    let shown = format!("{command:?}");
    let failed = Fault::system(format!("run {shown}"));
    let output = tempfile::NamedTempFile::new().map_err(&failed)?;
    let file = output.reopen().map_err(&failed)?;
    let begin = Instant::now();
    let process = command.stdin(Stdio::null()).stdout(file).spawn();
    let mut process = process.map_err(&failed)?;
    loop {
        match process.try_wait() {
            Ok(Some(status)) => {
                let seconds = begin.elapsed().as_secs_f64();
                let said = fs::read_to_string(output.path()).unwrap_or_default();
                return if status.success() {
                    Ok(Ended {
                        seconds,
                        said,
                        is_cut: false,
                    })
                } else {
                    Err(Fault::Ended {
                        command: shown,
                        status,
                    })
                };
            }
            _ if begin.elapsed() > limit => {
                let _ = process.kill();
                let _ = process.wait();
                return Ok(Ended {
                    seconds: limit.as_secs_f64(),
                    said: String::new(),
                    is_cut: true,
                });
            }
            _ => thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Seconds of a command that prints so many lines.
fn timed(command: &mut Command, limit: Duration, lines: u64) -> Result<Outcome, Fault> {
    let ended = run(command, limit)?;
    let count = ended.said.lines().count() as u64;
    if !ended.is_cut && count != lines {
        return Err(Fault::Printed {
            command: format!("{command:?}"),
            printed: format!("{count} lines of {lines}"),
        });
    }
    Ok(Outcome {
        figure: ended.seconds,
        asked_bytes: 0,
        is_cut: ended.is_cut,
    })
}

/// MB/s of a command that moves so many bytes.
fn rate(command: &mut Command, limit: Duration, bytes: u64) -> Result<Outcome, Fault> {
    let ended = run(command, limit)?;
    Ok(Outcome {
        figure: bytes as f64 / ended.seconds / 1e6,
        asked_bytes: bytes,
        is_cut: ended.is_cut,
    })
}

fn fio(file: &Path, more: &[&str], limit: Duration) -> Result<Outcome, Fault> {
    let name = format!("--filename={}", text(file));
    let mut command = words(
        "fio",
        &["--name=r", &name, "--ioengine=psync", "--time_based"],
    );
    command.args(["--runtime=5", "--readonly", "--group_reporting", "--thread"]);
    command.args(["--output-format=json"]).args(more);
    let Ended { said, is_cut, .. } = run(&mut command, limit)?;
    let begin = said.find('{').unwrap_or(0);
    let value: Value = serde_json::from_str(&said[begin..]).unwrap_or(Value::Null);
    let read = &value["jobs"][0]["read"];
    let (bytes, ms) = (read["io_bytes"].as_u64(), read["runtime"].as_f64());
    match (bytes, ms) {
        (Some(bytes), Some(ms)) if ms > 0.0 => Ok(Outcome {
            figure: bytes as f64 / ms / 1e3,
            asked_bytes: bytes,
            is_cut,
        }),
        _ if is_cut => Ok(Outcome {
            figure: 0.0,
            asked_bytes: 0,
            is_cut,
        }),
        _ => Err(Fault::Printed {
            command: "fio".to_owned(),
            printed: said,
        }),
    }
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

fn unpack(folder: &Path, limit: Duration) -> Result<Outcome, Fault> {
    let failed = Fault::system("make an archive");
    let source = tempfile::TempDir::new().map_err(&failed)?;
    for file in 0..PACKED_FILES {
        fs::write(source.path().join(format!("f{file:05}")), [7; 4096]).map_err(&failed)?;
    }
    let archive = tempfile::NamedTempFile::new().map_err(&failed)?;
    let (archive, source) = (text(archive.path()), text(source.path()));
    run(
        &mut words("tar", &["-C", &source, "-cf", &archive, "."]),
        limit,
    )?;
    // A name of its own: what a peer does not remove again is in the way of no later run.
    let unpacked = tempfile::Builder::new()
        .prefix("unpacked-")
        .tempdir_in(folder)
        .map_err(Fault::system(format!(
            "make a folder in {}",
            folder.display()
        )))?;
    let to = text(unpacked.path());
    let tar = &[
        "-C",
        &to,
        "--no-same-owner",
        "--no-same-permissions",
        "-m",
        "-xf",
        &archive,
    ];
    let ended = run(&mut words("tar", tar), limit)?;
    Ok(Outcome {
        figure: ended.seconds,
        asked_bytes: 0,
        is_cut: ended.is_cut,
    })
}
