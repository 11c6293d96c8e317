// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why something could not be measured, read or written.
//!
//! Made where a run, a file or a result fails. The three commands end with the error, or record it,
//! or leave out the part that failed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Lines of a failed program's complaint that are shown (chosen).
const COMPLAINT_LINES: usize = 12;

/// Each says what was wrong, with which file or program, and what helps where that is known.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or a folder cannot be read, written or made.
    #[error("cannot {action} {}: {source}{hint}", path.display())]
    File {
        /// What was tried: `read`, `write`, `make`.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
        /// What helps, behind a full stop or a semicolon; empty where nothing special does.
        hint: &'static str,
    },
    /// What a file holds is wrong.
    #[error("{}{place}: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Where in it, behind a comma; empty for all of it.
        place: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// A program cannot be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A program cannot be waited for.
    #[error("cannot wait for it: {0}")]
    Wait(io::Error),
    /// A program took too long and was ended.
    #[error("it did not end within {} s", .0.as_secs())]
    TooLong(Duration),
    /// A program ended with a failure.
    #[error("{status}{}", quoted(said))]
    Failed {
        /// How it ended.
        status: String,
        /// The end of what it said.
        said: String,
    },
    /// What a program printed or left is no result.
    #[error("{0}")]
    Result(String),
    /// Nothing can be measured here, or no longer; what is missing, and how to get it.
    #[error("{0}")]
    Missing(String),
    /// One of the others, and what it is about.
    #[error("{about}: {source}")]
    About {
        /// What failed.
        about: String,
        /// Why.
        source: Box<Error>,
    },
}

impl Error {
    /// For `map_err` around a call on a file.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::file_with(action, path, "")
    }

    /// The same with what helps.
    pub fn file_with(
        action: &'static str,
        path: &Path,
        hint: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File {
            action,
            path,
            source,
            hint,
        }
    }

    /// Of what a file holds at a place, which begins with a comma.
    pub fn content(path: &Path, place: &str, problem: String) -> Self {
        Self::Content {
            path: path.to_owned(),
            place: place.to_owned(),
            problem,
        }
    }

    /// For `map_err` around the start of a program.
    pub fn start(program: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let program = program.into();
        move |source| Self::Start { program, source }
    }

    /// For `map_err` around the reading of what a program printed.
    pub fn printed(program: &str) -> impl FnOnce(serde_json::Error) -> Self {
        move |error| Self::Result(format!("{program} printed something else: {error}"))
    }

    /// Of what a program left.
    pub fn result(text: impl Into<String>) -> Self {
        Self::Result(text.into())
    }

    /// With what it is about in front.
    pub fn about(self, what: impl Into<String>) -> Self {
        Self::About {
            about: what.into(),
            source: Box::new(self),
        }
    }

    /// Of a program that ended with a failure, with the last lines that it said.
    pub fn failed(status: impl ToString, said: &[u8]) -> Self {
        let said = String::from_utf8_lossy(said);
        let lines = said.lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        Self::Failed {
            status: status.to_string(),
            said: lines[lines.len().saturating_sub(COMPLAINT_LINES)..].join(" / "),
        }
    }
}

fn quoted(said: &str) -> String {
    match said {
        "" => String::new(),
        _ => format!("; it said: {said}"),
    }
}
