// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A job, and what is known of the file that it was read from.
//!
//! The entry for `weft run`, `weft import` and `weft export`. One call does the work of `parse.rs`,
//! `decode.rs` or `convert`, and `check.rs`.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::check;
use crate::convert::batch;
use crate::decode::decode;
use crate::fault::Fault;
use crate::imported::{Imported, Note};
use crate::job::{Job, VERSION};
use crate::node::{Node, Value};
use crate::parse::{BYTES_MOST, parse};
use crate::places::Places;

/// Why there is no job.
#[derive(Debug, Error)]
pub enum Unread {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The file is wrong.
    #[error("{0}")]
    Wrong(#[from] Fault),
}

impl Unread {
    /// What a command that reads or writes job files ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::File { .. } => 1,
            Self::Wrong(_) => 2,
        }
    }
}

/// A job and where its fields stand.
#[derive(Debug)]
pub struct JobFile {
    /// The job, checked.
    pub job: Job,
    /// Of a file for another system: what has no meaning here.
    pub notes: Vec<Note>,
    name: String,
    places: Places,
}

impl JobFile {
    /// Reads a job file, or a job definition of AWS Batch.
    ///
    /// # Errors
    /// `Unread`.
    pub fn read(path: &Path) -> Result<Self, Unread> {
        let text = text_or(path, OF_COMMAND_LINES)?;
        Ok(Self::from_text(&path.display().to_string(), &text)?)
    }

    /// Reads the text of the file of this name.
    ///
    /// # Errors
    /// The first fault.
    pub fn from_text(name: &str, text: &str) -> Result<Self, Fault> {
        let read = || {
            let root = parse(text)?;
            if batch::is_definition(&root) {
                return batch::import(&root, &[]);
            }
            Ok(Imported {
                job: job_of(&root)?,
                notes: Vec::new(),
                places: Places::of(&root),
            })
        };
        Self::new(name, read().map_err(|fault| fault.in_file(name))?)
    }

    /// A job that was imported from the file of this name.
    ///
    /// # Errors
    /// When its fields do not agree.
    pub(crate) fn new(name: &str, imported: Imported) -> Result<Self, Fault> {
        let file = Self {
            job: imported.job,
            notes: imported.notes,
            name: name.to_owned(),
            places: imported.places,
        };
        check::check(&file.job).map_err(|fault| file.placed(fault))?;
        Ok(file)
    }

    /// The name of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The job cannot be run because of this field.
    #[must_use]
    pub fn fault(&self, field: &str, text: impl Into<String>) -> Fault {
        self.placed(Fault::new(text).within(field))
    }

    /// Refuses a `shm_size` beyond the memory of the node.
    ///
    /// # Errors
    /// With both sizes.
    pub fn check_memory(&self, memory_bytes: u64) -> Result<(), Fault> {
        match self.job.shm_size {
            Some(size) if size.bytes() > memory_bytes && !size.is_best_effort => {
                let most = memory_bytes >> 20;
                let text =
                    format!("{size} is more than the memory here; it may be {most}m at most");
                Err(self.fault("shm_size", text))
            }
            _ => Ok(()),
        }
    }

    /// The fault with the file's name and the line of its field.
    #[must_use]
    pub fn placed(&self, fault: Fault) -> Fault {
        let fault = match self.places.find(fault.field()) {
            Some(place) => fault.at(place),
            None => fault,
        };
        fault.in_file(&self.name)
    }
}

/// What to do about a job file that is not UTF-8.
const OF_COMMAND_LINES: &str =
    "; a program or a value with such bytes belongs on the command line, after --spec FILE";

/// The file's text, of which no more is read than a job file may have.
pub(crate) fn text_of(path: &Path) -> Result<String, Unread> {
    text_or(path, "")
}

/// The same, with this advice where it is not UTF-8.
fn text_or(path: &Path, advice: &str) -> Result<String, Unread> {
    let unread = |source| Unread::File {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unread)?;
    let most = BYTES_MOST as u64 + 1;
    file.take(most).read_to_end(&mut bytes).map_err(unread)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let text = format!("the file is not UTF-8: byte {at} is the first that is not{advice}");
        Fault::new(text).in_file(&path.display().to_string()).into()
    })
}

/// Writes a text to a file, which must not exist, or to standard output.
pub(crate) fn write_out(path: Option<&Path>, text: &str) -> Result<(), Unread> {
    let Some(path) = path else {
        let written = io::stdout().write_all(text.as_bytes());
        return written.map_err(|source| Unread::File {
            path: PathBuf::from("standard output"),
            source,
        });
    };
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.map_err(already_there);
    let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| Unread::File {
        path: path.to_owned(),
        source,
    })
}

fn already_there(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::AlreadyExists {
        return io::Error::other("this file exists; name another one, or remove it");
    }
    error
}

/// The job that a job file says.
fn job_of(root: &Node) -> Result<Job, Fault> {
    if !matches!(root.value, Value::Map(_)) {
        let found = root.in_words();
        let text = format!("{found} is no job file; one begins with `version: 1`");
        return Err(Fault::new(text).at(root.place));
    }
    if let Some(version) = root.get("version") {
        let is_known = |text: &str| text.parse().is_ok_and(|one| (1..=VERSION).contains(&one));
        let is_known = matches!(&version.value, Value::Scalar(one) if is_known(&one.text));
        if !is_known {
            let text = format!(
                "{} is no version that this weft reads; it reads versions 1 to {VERSION}, and a \
                 newer weft may read yours",
                version.in_words()
            );
            return Err(Fault::new(text).at(version.place).within("version"));
        }
    }
    decode(root)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
