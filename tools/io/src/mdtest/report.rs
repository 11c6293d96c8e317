// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes the results: rank 0 writes each as it comes, as text, or all of them at the end, as one
//! JSON object.
//!
//! Called by mdtest; calls text and json. Text is flushed after each line, so earlier results
//! remain when a rank dies.

use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use weft_ranks::say;

use weft_mpi::Communicator;

use crate::ior::division::Place;
use crate::ior::report::file_system;
use crate::mdtest::figures::Row;
use crate::mdtest::finished::Finished;
use crate::mdtest::test::Test;
use crate::mdtest::{json, text};
use weft_ranks::calendar::Moment;
use weft_ranks::refusal::Failed;

/// What parsers of mdtest's first line find: the version whose output this is, and whose program.
const VERSION: &str = concat!("4.0.0+weft.", env!("CARGO_PKG_VERSION"));

/// The output of one run. On other ranks than 0 it does nothing.
pub struct Report {
    is_first: bool,
    is_json: bool,
    began: String,
    words: Vec<String>,
    machine: String,
    finished: Vec<Finished>,
}

/// Now, as mdtest writes it.
fn now() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let at = Moment::of(since.as_secs());
    format!(
        "{:02}/{:02}/{:04} {:02}:{:02}:{:02}",
        at.month, at.day, at.year, at.hour, at.minute, at.second
    )
}

impl Report {
    /// Writes the head.
    ///
    /// # Errors
    /// When it cannot be written; so for all below.
    pub fn begin(
        world: &Communicator<'_>,
        test: &Test,
        words: &[String],
        nodes: usize,
    ) -> Result<Self, Failed> {
        let report = Self {
            is_first: world.rank() == 0,
            is_json: test.output.json,
            began: now(),
            words: words.to_vec(),
            machine: format!("Linux {}", world.session().processor_name()),
            finished: Vec::new(),
        };
        report.text(&text::head(
            VERSION,
            &report.began,
            words,
            world.size(),
            nodes,
        ))?;
        Ok(report)
    }

    fn write(&self, what: &str) -> Result<(), Failed> {
        if !self.is_first {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(what.as_bytes())
            .and_then(|()| out.flush())
            .map_err(|error| {
                Failed::new(format!(
                    "results cannot be written: {error}; make room where the output goes"
                ))
            })
    }

    fn text(&self, what: &str) -> Result<(), Failed> {
        if self.is_json {
            Ok(())
        } else {
            self.write(what)
        }
    }

    /// A test begins.
    ///
    /// # Errors
    /// As [`Report::begin`].
    pub fn begin_test(&mut self, test: &Test, place: Place, items: u64) -> Result<(), Failed> {
        let root = &test.roots[0];
        let is_blind = test.moves.read_bytes == 0 && test.does.read && test.shape.files;
        if is_blind && self.is_first && !self.is_json {
            say!("weft bench mdtest: WARNING: -e is 0: reading opens and closes files only");
        }
        let path = std::fs::canonicalize(root)
            .map_or_else(|_| root.clone(), |path| path.display().to_string());
        let nodemap: String = (0..place.tasks)
            .map(|task| {
                let is_here = if place.by_block {
                    task < place.tasks_per_node
                } else {
                    task % place.nodes == 0
                };
                if is_here { '1' } else { '0' }
            })
            .collect();
        let finished = Finished {
            test: test.clone(),
            place,
            items,
            rows: Vec::new(),
            wrong_files: 0,
        };
        // The folder may not be there yet.
        let there = Path::new(&path).ancestors().find(|one| one.is_dir());
        let inside = format!("{}/", there.map_or(".".into(), Path::to_string_lossy));
        self.text(&text::place(&path, &file_system(&inside), &nodemap))?;
        self.text(&text::amount(&finished))?;
        self.finished.push(finished);
        Ok(())
    }

    /// A phase ended.
    ///
    /// # Errors
    /// As [`Report::begin`].
    pub fn row(&mut self, iteration: u32, row: Row) -> Result<(), Failed> {
        let Some(finished) = self.finished.last_mut() else {
            return Ok(());
        };
        finished.rows.push((iteration, row));
        if finished.test.output.verbose > 0 {
            self.text(&text::row(&row))?;
        }
        Ok(())
    }

    /// A test ended, or could not go on.
    ///
    /// # Errors
    /// As [`Report::begin`].
    pub fn end_test(&mut self, wrong_files: u64) -> Result<(), Failed> {
        let Some(finished) = self.finished.last_mut() else {
            return Ok(());
        };
        finished.wrong_files = wrong_files;
        let table = text::summary(finished);
        self.text(&table)
    }

    /// All tests are done.
    ///
    /// # Errors
    /// As [`Report::begin`].
    pub fn end(&self, has_failed: bool) -> Result<(), Failed> {
        let finished = now();
        if !self.is_json {
            return self.write(&text::tail(&finished));
        }
        let frame = json::Frame {
            version: VERSION,
            began: &self.began,
            command: format!("weft bench mdtest {}", self.words.join(" ")),
            machine: &self.machine,
            finished: &finished,
            has_failed,
        };
        self.write(&format!("{:#}\n", json::document(&frame, &self.finished)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mdtest::figures::Subject;
    use crate::mdtest::tree::{Kind, Step};

    #[test]
    fn the_table_has_mdtests_columns_and_zeros_for_what_was_not_measured() {
        let mut test = Test::default();
        test.shape.folders = false;
        test.does.create = true;
        let subject = Subject::Items(Kind::File, Step::Create);
        let row = Row {
            subject,
            count: 33_340,
            seconds: 33_340.0 / 2568.636,
        };
        let finished = Finished {
            test,
            place: Place {
                tasks: 10,
                nodes: 2,
                tasks_per_node: 5,
                by_block: false,
            },
            items: 33_340,
            rows: vec![(0, row)],
            wrong_files: 0,
        };
        let text = text::summary(&finished);
        // Rows of a published run of mdtest 4.0.0.
        for line in [
            "SUMMARY rate: (of 1 iterations)",
            "   Operation                     Max            Min           Mean        Std Dev",
            "   File creation                2568.636       2568.636       2568.636          0.000",
            "   File stat                       0.000          0.000          0.000          0.000",
            "   Tree removal                    0.000          0.000          0.000          0.000",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("Directory") && !text.contains("SUMMARY time"));
        assert_eq!(text::amount(&finished), "10 tasks, 33340 files\n");
    }
}
