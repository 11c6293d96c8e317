// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands of the loads: run to their end or the limit, their time and what they print read.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fault::Fault;

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

/// What a command that prints its own figure took: the figure, and the bytes that it asked for.
///
/// # Errors
/// No figure is in what it printed, though it was not cut.
pub fn told(command: &Command, ended: Ended, moved: Option<(f64, u64)>) -> Result<Outcome, Fault> {
    if moved.is_none() && !ended.is_cut {
        return Err(Fault::Printed {
            command: format!("{command:?}"),
            printed: ended.said,
        });
    }
    let (figure, asked_bytes) = moved.unwrap_or_default();
    Ok(Outcome {
        figure,
        asked_bytes,
        is_cut: ended.is_cut,
    })
}

/// A path as a word of a command.
pub fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A command.
pub fn words(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// A command that has ended.
pub struct Ended {
    /// How long it took: the limit, if it was cut.
    pub seconds: f64,
    /// What it printed; nothing, if it was cut.
    pub said: String,
    /// It was killed at the limit.
    pub is_cut: bool,
}

/// Runs a command to its end or the limit.
///
/// # Errors
/// It cannot be started, or ends badly.
pub fn run(command: &mut Command, limit: Duration) -> Result<Ended, Fault> {
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
///
/// # Errors
/// It fails, or prints another number of lines.
pub fn timed(command: &mut Command, limit: Duration, lines: u64) -> Result<Outcome, Fault> {
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
///
/// # Errors
/// It fails.
pub fn rate(command: &mut Command, limit: Duration, bytes: u64) -> Result<Outcome, Fault> {
    let ended = run(command, limit)?;
    Ok(Outcome {
        figure: bytes as f64 / ended.seconds / 1e6,
        asked_bytes: bytes,
        is_cut: ended.is_cut,
    })
}

/// MB/s of fio with one group of jobs that only read or only write a file.
///
/// # Errors
/// It fails, or prints no figures.
pub fn fio(file: &Path, job: &[&str], limit: Duration) -> Result<Outcome, Fault> {
    let name = format!("--filename={}", text(file));
    let mut command = words("fio", &["--name=r", &name, "--ioengine=psync", "--thread"]);
    command.args(["--group_reporting", "--output-format=json"]);
    let ended = run(command.args(job), limit)?;
    let begin = ended.said.find('{').unwrap_or(0);
    let value: Value = serde_json::from_str(&ended.said[begin..]).unwrap_or(Value::Null);
    let job = &value["jobs"][0];
    let moved = |direction: &str| {
        let bytes = job[direction]["io_bytes"].as_u64()?;
        let ms = job[direction]["runtime"].as_f64()?;
        (bytes > 0 && ms > 0.0).then(|| (bytes as f64 / ms / 1e3, bytes))
    };
    let moved = moved("read").or_else(|| moved("write"));
    told(&command, ended, moved)
}
