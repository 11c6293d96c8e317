// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes the results: rank 0 writes each as it comes, as text or CSV, or all of them at the end,
//! as one JSON object.
//!
//! Called by ior; calls text, csv and json. Text and CSV are flushed after each line, so earlier
//! results remain when a rank dies.

use std::fs::File;
use std::io::{self, Write};
use weft_ranks::say;

use nix::sys::statvfs::statvfs;
use weft_mpi::Communicator;

use crate::ior::division::Place;
use crate::ior::figures::{Access, Row};
use crate::ior::finished::{Finished, MIB};
use crate::ior::test::{Form, Test};
use crate::ior::{csv, json, text, when};
use weft_ranks::refusal::Failed;

/// What parsers of IOR's first line find: the version whose output this is, and whose program.
const VERSION: &str = concat!("4.1.0+weft.", env!("CARGO_PKG_VERSION"));

/// The output of one run. On other ranks than 0 it does nothing.
pub struct Report {
    out: Option<Box<dyn Write>>,
    form: Form,
    began: String,
    command: String,
    machine: String,
    finished: Vec<Finished>,
}

impl Report {
    /// Opens the output and writes its head.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(
        world: &Communicator<'_>,
        tests: &[Test],
        command: &[String],
    ) -> Result<Self, Failed> {
        let first = tests
            .first()
            .ok_or_else(|| Failed::new("there is no test".to_owned()))?;
        let out: Option<Box<dyn Write>> = match (world.rank(), &first.output.summary_file) {
            (0, Some(path)) => Some(Box::new(File::create(path).map_err(|error| {
                Failed::new(format!("-O summaryFile={path} cannot be made: {error}"))
            })?)),
            (0, None) => Some(Box::new(io::stdout())),
            _ => None,
        };
        let host = world.session().processor_name();
        let mut report = Self {
            out,
            form: first.output.form,
            began: when::now(),
            command: format!("weft bench ior {}", command.join(" ")),
            machine: format!("Linux {host}"),
            finished: Vec::new(),
        };
        let head = match report.form {
            Form::Text => {
                let entries = [
                    ("Began", report.began.as_str()),
                    ("Command line", &report.command),
                    ("Machine", &report.machine),
                ];
                let entries: String = entries
                    .iter()
                    .map(|(key, value)| text::entry(key, value))
                    .collect();
                format!("IOR-{VERSION}: MPI Coordinated Test of Parallel I/O\n{entries}")
            }
            Form::Csv => csv::HEAD.to_owned(),
            Form::Json => String::new(),
        };
        report.write(&head)?;
        Ok(report)
    }

    fn write(&mut self, what: &str) -> Result<(), Failed> {
        let Some(out) = &mut self.out else {
            return Ok(());
        };
        out.write_all(what.as_bytes())
            .and_then(|()| out.flush())
            .map_err(|error| {
                Failed::new(format!(
                    "results cannot be written: {error}; make room where the output goes"
                ))
            })
    }

    fn text(&mut self, what: &str) -> Result<(), Failed> {
        if self.form == Form::Text {
            self.write(what)
        } else {
            Ok(())
        }
    }

    /// A test begins.
    ///
    /// # Errors
    /// As [`Report::begin`], and so for all below.
    pub fn begin_test(
        &mut self,
        test: &Test,
        number: usize,
        place: Place,
        path: &str,
    ) -> Result<(), Failed> {
        let started = when::now();
        let mut head: String = [
            ("TestID", number.to_string()),
            ("StartTime", started.clone()),
            ("Path", path.to_owned()),
            ("FS", file_system(path)),
            ("Participating tasks", place.tasks.to_string()),
        ]
        .iter()
        .map(|(key, value)| text::entry(key, value))
        .collect();
        head += "\n";
        head += &text::options(test, place);
        head += text::TABLE_HEAD;
        self.text(&head)?;
        if test.through.collective && self.out.is_some() {
            say!("weft bench ior: WARNING: -c has no effect: POSIX has no collective calls");
        }
        self.finished.push(Finished {
            test: test.clone(),
            place,
            started,
            path: path.to_owned(),
            rows: Vec::new(),
        });
        Ok(())
    }

    /// An access begins (-v).
    ///
    /// # Errors
    /// As above.
    pub fn commences(&mut self, test: &Test, access: Access) -> Result<(), Failed> {
        if test.output.verbose == 0 {
            return Ok(());
        }
        let what = match access {
            Access::Write => "write performance",
            Access::WriteCheck => "write check",
            Access::Read => "read performance",
            Access::ReadCheck => "read check",
        };
        self.text(&format!("Commencing {what} test: {}\n", when::now()))
    }

    /// A row. Checks after writing have none.
    ///
    /// # Errors
    /// As above.
    pub fn row(
        &mut self,
        test: &Test,
        access: Access,
        row: Row,
        repetition: u32,
    ) -> Result<(), Failed> {
        if access == Access::WriteCheck || test.output.dry_run {
            return Ok(());
        }
        let Some(finished) = self.finished.last_mut() else {
            return Ok(());
        };
        finished.rows.push((access, row, repetition));
        let line = match self.form {
            Form::Text => text::row(test, access, &row, repetition),
            Form::Csv => csv::row(test, access, &row, finished.place.tasks, repetition),
            Form::Json => return Ok(()),
        };
        self.write(&line)
    }

    /// Files were removed (-v).
    ///
    /// # Errors
    /// As above.
    pub fn removed(&mut self, test: &Test, removal_s: f64, repetition: u32) -> Result<(), Failed> {
        if test.output.verbose == 0 {
            return Ok(());
        }
        self.text(&text::removed(removal_s, repetition))
    }

    /// A test ends.
    ///
    /// # Errors
    /// As above.
    pub fn end_test(&mut self, test: &Test) -> Result<(), Failed> {
        let maxima = match self.finished.last() {
            Some(finished) if test.output.verbose > 0 => text::maxima(finished),
            _ => "\n".to_owned(),
        };
        self.text(&maxima)
    }

    /// All tests are done.
    ///
    /// # Errors
    /// As above.
    pub fn end(&mut self, world: &Communicator<'_>) -> Result<(), Failed> {
        if world.rank() != 0 {
            return Ok(());
        }
        let finished = when::now();
        let tail = match self.form {
            Form::Text => text::summary(&self.finished) + &text::entry("Finished", &finished),
            Form::Csv => String::new(),
            Form::Json => {
                let frame = json::Frame {
                    version: VERSION,
                    began: &self.began,
                    command: &self.command,
                    machine: &self.machine,
                    finished: &finished,
                };
                format!("{:#}\n", json::document(&frame, &self.finished))
            }
        };
        self.write(&tail)
    }
}

/// The file system that a path lies on: its size and how much of it is used, in bytes and in files.
pub(crate) fn file_system(path: &str) -> String {
    let folder = path.rsplit_once('/').map_or(
        ".",
        |(folder, _)| if folder.is_empty() { "/" } else { folder },
    );
    let Ok(found) = statvfs(folder) else {
        return "unknown".to_owned();
    };
    let total = found.blocks() as f64 * found.fragment_size() as f64;
    let used = |free: f64, all: f64| {
        if all > 0.0 {
            100.0 * (all - free) / all
        } else {
            0.0
        }
    };
    format!(
        "{:.1} GiB   Used FS: {:.1}%   Inodes: {:.1} Mi   Used Inodes: {:.1}%",
        total / MIB / 1024.0,
        used(found.blocks_free() as f64, found.blocks() as f64),
        found.files() as f64 / MIB,
        used(found.files_free() as f64, found.files() as f64)
    )
}
