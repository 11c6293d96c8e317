// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One run: start it, wait for it, read its rows.
//!
//! Called by compare; starts `weft run`, which starts the MPI job.

use super::configuration::Run;
use super::record::Row;
use crate::error::Error;
use crate::job;
use serde::Deserialize;
use std::io::Read;
use std::process::{Command, Stdio};

/// What a run measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What was measured.
    pub rows: Vec<Row>,
    /// What the MPI calls itself.
    pub mpi: String,
    /// The library file it came from.
    pub library: String,
}

/// Names another libfabric (`weft run`). Only ranks over Weft would get it, and runs differ in
/// their transport alone.
const LIBFABRIC: &str = "WEFT_LIBFABRIC";

/// A line that a benchmark prints with --json.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Header { mpi: String, library: String },
    Row(Row),
}

/// Runs it to its end.
///
/// # Errors
/// Why it could not be started, its complaint when it failed or printed no row, or that it took too
/// long.
pub fn run(run: &Run) -> Result<Outcome, Error> {
    let (program, arguments) = run
        .command
        .split_first()
        .expect("a command line has a program");
    let mut child = Command::new(program)
        .args(arguments)
        .env_remove(LIBFABRIC)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::start(program.to_string_lossy()))?;
    let stdout = child.stdout.take().map(reader);
    let stderr = child.stderr.take().map(reader);
    let status = job::wait(&mut child, run.limit)?;
    let text = |reader: Option<std::thread::JoinHandle<String>>| {
        reader
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    };
    let (stdout, stderr) = (text(stdout), text(stderr));
    if !status.success() {
        return Err(Error::failed(job::why(status), stderr.as_bytes()));
    }
    let outcome = parse(&stdout);
    if outcome.rows.is_empty() {
        return Err(Error::failed("it printed no row", stderr.as_bytes()));
    }
    Ok(outcome)
}

/// Reads a pipe in a thread of its own, so that a talkative job never blocks on a full pipe.
fn reader(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Reads the rows; other lines (some MPIs greet) are passed over.
fn parse(stdout: &str) -> Outcome {
    let mut outcome = Outcome::default();
    for line in stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok())
    {
        match line {
            Line::Header { mpi, library } => (outcome.mpi, outcome.library) = (mpi, library),
            Line::Row(row) => outcome.rows.push(row),
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::tests;
    use std::time::Duration;

    fn scripted(script: &str, limit: Duration) -> Run {
        Run {
            command: ["sh", "-c", script].map(Into::into).to_vec(),
            limit,
            ..tests::run("mpich", "weft", "latency")
        }
    }

    const PATIENT: Duration = Duration::from_secs(30);

    #[test]
    fn rows_are_read_among_other_lines() {
        let script = r#"echo hello; echo '{"type":"header","mpi":"M","library":"/l","ranks":2}'
            echo '{"type":"row","size_bytes":8,"value":0.9,"median":0.5,"cpu_us":1.5,'\
            '"p99.9":7.0}'"#;
        let expected = Outcome {
            rows: vec![Row {
                size_bytes: 8,
                value: 0.9,
                median: 0.5,
                cpu_us: Some(1.5),
                p999: Some(7.0),
                ..Row::default()
            }],
            mpi: "M".into(),
            library: "/l".into(),
        };
        assert_eq!(run(&scripted(script, PATIENT)).expect("rows"), expected);
    }

    #[test]
    fn failed_run_is_reported_in_its_own_words() {
        let reason = run(&scripted("echo no fabric >&2; exit 1", PATIENT))
            .unwrap_err()
            .to_string();
        assert!(reason.contains("no fabric"), "{reason}");
        let reason = run(&scripted("exit 3", PATIENT)).unwrap_err().to_string();
        assert!(reason.contains("did not go through Weft"), "{reason}");
    }

    #[test]
    fn run_without_rows_has_failed() {
        assert!(
            run(&scripted("echo hello", PATIENT))
                .unwrap_err()
                .to_string()
                .contains("no row")
        );
    }

    #[test]
    fn endless_run_is_ended() {
        let reason = run(&scripted("exec sleep 60", Duration::from_millis(50)))
            .unwrap_err()
            .to_string();
        assert!(reason.contains("did not end"), "{reason}");
    }
}
