// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The journal: every run is appended to this file as soon as it ends, one JSON object per line. So
//! an interrupted comparison keeps its runs.
//!
//! Called by compare. The journal is read back to continue a comparison (--resume), to write the
//! reports again (--render), and to compare with an earlier one (--previous).

use super::arguments::MOST_ROUNDS;
use super::environment::Environment;
use super::record::{Matrix, Record, Turn};
use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Name of the file within the folder of a comparison.
pub const NAME: &str = "runs.jsonl";
/// Where an older one is moved to when a new comparison begins.
const OLD_NAME: &str = "runs.before.jsonl";

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Environment(Box<Environment>),
    Matrix(Box<Matrix>),
    /// Earlier comparisons called it a turn.
    #[serde(rename = "run", alias = "turn")]
    Turn(Box<Turn>),
}

/// The open file.
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Begins anew; an older file is kept beside it.
    ///
    /// # Errors
    /// A sentence with the path and what to do.
    pub fn begin(folder: &Path, environment: &Environment, matrix: &Matrix) -> Result<Self, Error> {
        std::fs::create_dir_all(folder).map_err(Error::file("make", folder))?;
        let path = folder.join(NAME);
        if path.exists() {
            let old = folder.join(OLD_NAME);
            std::fs::rename(&path, &old)
                .map_err(Error::file("move an older comparison to", &old))?;
        }
        let file = File::create(&path).map_err(Error::file("write", &path))?;
        let mut journal = Self { file, path };
        journal.append(&Line::Environment(Box::new(environment.clone())))?;
        journal.append(&Line::Matrix(Box::new(matrix.clone())))?;
        Ok(journal)
    }

    /// Goes on with the file of an earlier comparison. Half a line at its end, left by a full disk
    /// or a sudden end, is cut off.
    ///
    /// # Errors
    /// A sentence with the path; also when the earlier comparison was another one.
    pub fn resume(folder: &Path, matrix: &Matrix) -> Result<(Self, Record), Error> {
        let path = folder.join(NAME);
        let text = text_of(&path)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let record = parsed(&text[..whole], &path)?;
        if let Some(difference) = difference(&record.matrix, matrix) {
            let problem = format!(
                "cannot be resumed: {difference}. Use the same options, or leave --resume out to \
                 begin anew"
            );
            return Err(Error::content(&path, "", problem));
        }
        let open = || -> std::io::Result<File> {
            let file = OpenOptions::new().append(true).open(&path)?;
            file.set_len(whole as u64)?;
            Ok(file)
        };
        let file = open().map_err(Error::file("write", &path))?;
        let mut journal = Self { file, path };
        // Anew, since the number of rounds may have grown.
        journal.append(&Line::Matrix(Box::new(matrix.clone())))?;
        let record = Record {
            matrix: matrix.clone(),
            ..record
        };
        Ok((journal, record))
    }

    /// Adds a run.
    ///
    /// # Errors
    /// A sentence that says what is kept and how to go on, as when the disk is full.
    pub fn add(&mut self, turn: &Turn) -> Result<(), Error> {
        self.append(&Line::Turn(Box::new(turn.clone())))
    }

    fn append(&mut self, line: &Line) -> Result<(), Error> {
        let text = serde_json::to_string(line).map_err(std::io::Error::from);
        let written = text.and_then(|text| self.file.write_all((text + "\n").as_bytes()));
        written.map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    "; no space left on its disk. Finished runs are kept in it; make room, then go \
                     on with --resume"
                }
                _ => ". Finished runs are kept in it; make room, then go on with --resume",
            };
            Error::file_with("write", &self.path, hint)(error)
        })
    }
}

/// Reads a comparison from its folder or from the file itself. Half a line at the end is passed
/// over.
///
/// # Errors
/// A sentence with the path and the line.
pub fn read(path: &Path) -> Result<Record, Error> {
    let path = if path.is_dir() {
        path.join(NAME)
    } else {
        path.to_owned()
    };
    let text = text_of(&path)?;
    parsed(&text[..text.rfind('\n').map_or(0, |end| end + 1)], &path)
}

fn text_of(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(Error::file("read", path))
}

fn parsed(text: &str, path: &Path) -> Result<Record, Error> {
    let (mut record, mut described) = (Record::default(), false);
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let bad = |problem| Error::content(path, &format!(", line {}", number + 1), problem);
        let line = serde_json::from_str(line)
            .map_err(|error| bad(format!("not a line of a comparison: {error}")))?;
        match line {
            Line::Environment(environment) => record.environment = *environment,
            Line::Matrix(matrix) => (record.matrix, described) = (*matrix, true),
            // Figures have a place for each round: a wild number would ask for all memory.
            Line::Turn(turn) if turn.round >= MOST_ROUNDS => {
                let most = MOST_ROUNDS - 1;
                return Err(bad(format!(
                    "round {}; rounds go from 0 to {most}",
                    turn.round
                )));
            }
            Line::Turn(turn) => record.turns.push(*turn),
        }
    }
    if described {
        Ok(record)
    } else {
        let problem = "no line says what was compared".to_owned();
        Err(Error::content(path, "", problem))
    }
}

/// What keeps two comparisons from being one.
fn difference(earlier: &Matrix, now: &Matrix) -> Option<String> {
    if earlier.repeat_scale != now.repeat_scale {
        return Some(format!(
            "it has --repeat-scale {}, now it is {}",
            earlier.repeat_scale, now.repeat_scale
        ));
    }
    if earlier.size_seconds != now.size_seconds {
        return Some(format!(
            "it has --size-time {}, now it is {}",
            earlier.size_seconds, now.size_seconds
        ));
    }
    if earlier.sizes != now.sizes {
        let shown = |sizes: &Option<String>| sizes.clone().unwrap_or_else(|| "all".to_owned());
        return Some(format!(
            "it has the sizes {}, now they are {}",
            shown(&earlier.sizes),
            shown(&now.sizes)
        ));
    }
    let missing = |one: &Matrix, other: &Matrix| {
        one.commands
            .iter()
            .find(|command| {
                !other.commands.iter().any(|known| {
                    known.configuration == command.configuration
                        && known.workload == command.workload
                })
            })
            .map(|command| format!("{}: {}", command.configuration, command.workload))
    };
    if let Some(run) = missing(earlier, now) {
        return Some(format!("{run} takes part in it and no longer does"));
    }
    missing(now, earlier).map(|run| format!("{run} takes no part in it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::Command;
    use crate::compare::record::tests::{configuration, filled, workload};

    fn begun() -> (tempfile::TempDir, Record) {
        let folder = tempfile::tempdir().expect("temporary folder");
        let record = filled();
        let mut journal =
            Journal::begin(folder.path(), &record.environment, &record.matrix).expect("begun");
        for turn in &record.turns[..3] {
            journal.add(turn).expect("added");
        }
        (folder, record)
    }

    #[test]
    fn runs_are_there_as_soon_as_they_are_added_and_half_a_line_is_cut_off() {
        let (folder, record) = begun();
        let path = folder.path().join(NAME);
        let mut file = OpenOptions::new().append(true).open(&path).expect("there");
        file.write_all(b"{\"type\":\"turn\",\"mpi\":\"mp")
            .expect("written");
        assert_eq!(
            read(folder.path()).expect("readable").turns,
            record.turns[..3]
        );
        let (mut journal, earlier) =
            Journal::resume(folder.path(), &record.matrix).expect("the same");
        assert_eq!(earlier.turns, record.turns[..3]);
        journal.add(&record.turns[3]).expect("added");
        assert_eq!(read(&path).expect("readable").turns, record.turns[..4]);
    }

    #[test]
    fn another_comparison_is_not_resumed() {
        let (folder, record) = begun();
        let mut other = record.matrix.clone();
        other.repeat_scale = 0.5;
        let reason = Journal::resume(folder.path(), &other)
            .err()
            .expect("refused");
        assert!(
            reason
                .to_string()
                .contains("--repeat-scale 0, now it is 0.5")
                && reason.to_string().contains("leave --resume out"),
            "{reason}"
        );
        let mut more = record.matrix.clone();
        more.commands.push(Command {
            configuration: configuration("intel", "weft"),
            workload: workload("bw"),
            command: String::new(),
            launch: String::new(),
        });
        let reason = Journal::resume(folder.path(), &more)
            .err()
            .expect("refused");
        assert!(
            reason
                .to_string()
                .contains("intel over weft: bw, 2 ranks takes no part in it"),
            "{reason}"
        );
        let mut longer = record.matrix;
        longer.rounds = 99;
        assert!(
            Journal::resume(folder.path(), &longer).is_ok(),
            "more rounds are welcome"
        );
    }

    #[test]
    fn older_comparison_is_kept_beside_a_new_one() {
        let (folder, record) = begun();
        Journal::begin(folder.path(), &record.environment, &record.matrix).expect("begun");
        assert_eq!(
            read(&folder.path().join(OLD_NAME))
                .expect("kept")
                .turns
                .len(),
            3
        );
        assert_eq!(read(folder.path()).expect("new").turns.len(), 0);
    }

    #[test]
    fn full_disk_is_named_with_what_to_do() {
        let file = OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("there on Linux");
        let mut journal = Journal {
            file,
            path: "/dev/full".into(),
        };
        let reason = journal.add(&filled().turns[0]).expect_err("no room");
        for words in ["/dev/full", "no space left", "--resume"] {
            assert!(reason.to_string().contains(words), "{words}: {reason}");
        }
    }

    #[test]
    fn round_that_nobody_asked_for_is_refused() {
        let (folder, mut record) = begun();
        let mut journal = Journal::begin(folder.path(), &record.environment, &record.matrix)
            .expect("begun again");
        record.turns[0].round = usize::MAX;
        journal.add(&record.turns[0]).expect("added");
        let reason = read(folder.path()).expect_err("too many rounds");
        assert!(
            reason.to_string().contains("line 3") && reason.to_string().contains("0 to 999"),
            "{reason}"
        );
    }

    #[test]
    fn line_that_is_something_else_is_named() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("x.jsonl");
        std::fs::write(&path, "{\"type\":\"turn\"}\n").expect("written");
        let reason = read(&path).expect_err("no run");
        assert!(reason.to_string().contains("x.jsonl, line 1"), "{reason}");
        std::fs::write(&path, "\n").expect("written");
        assert!(
            read(&path)
                .expect_err("empty")
                .to_string()
                .contains("no line says")
        );
    }
}
