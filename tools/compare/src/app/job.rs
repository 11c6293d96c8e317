// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One run in a folder of its own, which keeps all of the run's output.
//!
//! Called by rounds; starts `weft run`, which starts the MPI job and ends it when it takes too
//! long.

use super::folder::write;
use crate::error::Error;
use crate::job;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What it printed, within its folder.
pub const OUTPUT: &str = "run.stdout";
/// What it complained of, within its folder.
pub const COMPLAINTS: &str = "run.stderr";
/// How long it took by the wall clock, start and end of the job included, in seconds, within its
/// folder.
pub const SECONDS: &str = "run.seconds";

/// Runs a command line to its end; an Err when it fails or takes longer than `limit`.
///
/// # Errors
/// Why it could not be started, or its last words.
pub fn run(command: &[OsString], folder: &Path, limit: Duration) -> Result<(), Error> {
    let (program, arguments) = command.split_first().expect("a command line has a program");
    let file = |name: &str| {
        let path = folder.join(name);
        File::create(&path).map_err(Error::file("write", &path))
    };
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(file(OUTPUT)?)
        .stderr(file(COMPLAINTS)?)
        .spawn()
        .map_err(Error::start(program.to_string_lossy()))?;
    let status = job::wait(&mut child, limit)?;
    if status.success() {
        let seconds = start.elapsed().as_secs_f64();
        return write(&folder.join(SECONDS), &format!("{seconds:.3}\n"));
    }
    Err(Error::failed(job::why(status), &last_words(folder)))
}

/// What it complained of, or else what it printed.
fn last_words(folder: &Path) -> Vec<u8> {
    let read = |name| std::fs::read(folder.join(name)).unwrap_or_default();
    let complaints = read(COMPLAINTS);
    match complaints.trim_ascii().is_empty() {
        true => read(OUTPUT),
        false => complaints,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> (tempfile::TempDir, Result<(), Error>) {
        let folder = tempfile::tempdir().expect("folder");
        let words = ["sh", "-c", script].map(OsString::from);
        let result = run(&words, folder.path(), limit);
        (folder, result)
    }

    #[test]
    fn run_happens_in_its_folder_and_its_words_are_kept() {
        let (folder, result) = shell("echo here; touch made", Duration::from_secs(30));
        result.expect("it ends well");
        assert!(folder.path().join("made").exists());
        assert_eq!(
            std::fs::read_to_string(folder.path().join(OUTPUT)).expect("kept"),
            "here\n"
        );
    }

    #[test]
    fn failed_run_is_reported_in_its_own_words() {
        let reason = shell("echo no fabric >&2; exit 1", Duration::from_secs(30))
            .1
            .unwrap_err()
            .to_string();
        assert!(reason.contains("no fabric"), "{reason}");
    }

    #[test]
    fn endless_run_is_ended() {
        let reason = shell("exec sleep 60", Duration::from_millis(50))
            .1
            .unwrap_err()
            .to_string();
        assert!(reason.contains("did not end"), "{reason}");
    }
}
