// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs Slurm's commands, and reads their answers as text.
//!
//! Called by every module that asks Slurm for something.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::process::{Command, Output, Stdio};

use weft_launch::slurm_version::{OLDEST, SlurmVersion};

use crate::fault::Fault;

/// What a command of Slurm answered.
#[derive(Debug)]
pub struct Answer {
    /// Whether it ended with 0.
    pub is_ok: bool,
    /// Its output.
    pub out: String,
    /// What it said on stderr, on one line.
    pub err: String,
}

impl Answer {
    /// The output of a command that must succeed.
    ///
    /// # Errors
    /// `Fault::Slurm` with what the command said; `Fault::Away` where it reached no controller.
    pub fn or_fail(self, what: &str) -> Result<String, Fault> {
        if self.is_ok {
            return Ok(self.out);
        }
        let text = format!("{what}: {}", self.err);
        Err(if is_away(&self.err) {
            Fault::Away(text)
        } else {
            Fault::Slurm(text)
        })
    }
}

/// Whether this is what Slurm says while its controller is down or restarts (slurm_errno.c).
fn is_away(err: &str) -> bool {
    [
        "Unable to contact slurm controller",
        "Slurm backup controller in standby mode",
    ]
    .iter()
    .any(|words| err.contains(words))
}

/// Runs one, without input.
///
/// # Errors
/// `Fault::Slurm` where there is no such command.
pub fn ask(name: &str, words: &[&str]) -> Result<Answer, Fault> {
    let mut command = Command::new(name);
    command.args(words).stdin(Stdio::null());
    run(&mut command)
}

/// Runs a command that was made ready.
///
/// # Errors
/// `Fault::Slurm` where there is no such command.
pub fn run(command: &mut Command) -> Result<Answer, Fault> {
    let name = command.get_program().to_owned();
    // Times as seconds since 1970, whatever the user likes to read.
    command.env("SLURM_TIME_FORMAT", "%s");
    let output = command
        .output()
        .map_err(|error| not_started(&name, &error))?;
    Ok(read(&output))
}

fn read(output: &Output) -> Answer {
    let err = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = err
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    Answer {
        is_ok: output.status.success(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: lines.join("; "),
    }
}

fn not_started(name: &OsStr, error: &std::io::Error) -> Fault {
    let name = name.to_string_lossy();
    Fault::Slurm(match error.kind() {
        ErrorKind::NotFound => format!(
            "there is no {name} on PATH, so there is no Slurm here; log in to a node of the \
             cluster or load its module. Without Slurm, weft run starts jobs, also on several \
             hosts"
        ),
        _ => format!("{name} cannot be started: {error}"),
    })
}

/// Refuses a Slurm that is older than what Weft knows.
///
/// # Errors
/// `Fault::Slurm` with both versions, and where there is none.
pub fn check_version() -> Result<(), Fault> {
    let text = ask("sbatch", &["--version"])?.or_fail("sbatch --version")?;
    match SlurmVersion::read(&text) {
        Some(found) if found.is_too_old() => Err(Fault::Slurm(format!(
            "{} is too old: Weft needs {OLDEST} or newer; write a batch script of your own with \
             srun weft exec (docs/exec.md)",
            text.trim(),
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_missing_says_what_to_do_instead() {
        let fault = ask("no-such-command-of-slurm", &[]).unwrap_err();
        assert_eq!(fault.exit_code(), 1);
        assert!(fault.to_string().contains("weft run"), "{fault}");
    }
}
