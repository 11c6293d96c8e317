// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recorded numbers that may only fall. Each rule here counts something that ought to be rare; what
//! there is today stands in a file under `tests/structure`. A number falls by itself. One that
//! rises, or a place that is new, changes that file, which shows in the diff, and the commit says
//! why.
//!
//! Uses the counts of [`crate::room`], [`crate::circle`], [`crate::shape`], [`crate::width`] and
//! [`crate::word`].

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::tree::{RustFile, TextFile};
use crate::{Finding, circle, room, shape, width, word};

/// One thing that is counted.
pub struct Ratchet {
    /// Where the numbers are recorded.
    pub record: &'static str,
    /// What a number stands for: the first line of the record.
    pub heading: &'static str,
    /// What is too much, behind the place and the number.
    pub wrong: &'static str,
    /// How to get rid of it.
    pub advice: &'static str,
    /// What counts it.
    pub counter: Counter,
}

/// What a number is taken from, and by whom.
pub enum Counter {
    /// Rust files.
    Rust(fn(&[RustFile]) -> BTreeMap<String, usize>),
    /// All files that people write.
    Text(fn(&[TextFile]) -> BTreeMap<String, usize>),
}

/// All of them.
pub const RATCHETS: [Ratchet; 9] = [
    Ratchet {
        record: "tests/structure/unsafe-counts.txt",
        heading: "How often `unsafe` stands in each crate.",
        wrong: "times `unsafe`",
        advice: "Do without",
        counter: Counter::Rust(room::count),
    },
    Ratchet {
        record: "tests/structure/circles.txt",
        heading: "Files that import each other in a circle, and how many files the circle has.",
        wrong: "files import each other in a circle",
        advice: "Move what both need below both, or hand it in from above",
        counter: Counter::Rust(circle::count),
    },
    Ratchet {
        record: "tests/structure/packed-arguments.txt",
        heading: "Functions that pack arguments into tuples, and how many arguments these are.",
        wrong: "arguments, packed into tuples",
        advice: "Give what belongs together a struct with a name of its own",
        counter: Counter::Rust(shape::packed_arguments),
    },
    Ratchet {
        record: "tests/structure/methods.txt",
        heading: "Types with many methods outside of traits, and how many.",
        wrong: "methods of one type",
        advice: "Split it into types with one duty each",
        counter: Counter::Rust(shape::methods),
    },
    Ratchet {
        record: "tests/structure/spread.txt",
        heading: "Types that are implemented in several files, and in how many.",
        wrong: "files implement this type",
        advice: "Move the state into types of their own, one file each",
        counter: Counter::Rust(shape::spread),
    },
    Ratchet {
        record: "tests/structure/text-errors.txt",
        heading: "Files with public functions that fail with a `String`, and how many functions.",
        wrong: "public functions fail with a String",
        advice: "Give the error a type",
        counter: Counter::Rust(shape::text_errors),
    },
    Ratchet {
        record: "tests/structure/wide-lines.txt",
        heading: "Documents with lines of more than 100 columns, and how many lines.",
        wrong: "lines are wider than 100 columns",
        advice: "Wrap them",
        counter: Counter::Text(width::documents),
    },
    Ratchet {
        record: "tests/structure/wide-code.txt",
        heading: "Crates and folders with code of more than 100 columns, and how many lines.",
        wrong: "lines are wider than 100 columns",
        advice: "Wrap them",
        counter: Counter::Text(width::code),
    },
    Ratchet {
        record: "tests/structure/given-up-words.txt",
        heading: "Words of our own that the field's took the place of, and how often they stand.",
        wrong: "times a word that was given up",
        advice: "Use the word of docs/glossary.md (tests/structure/src/word.rs names it)",
        counter: Counter::Text(word::count),
    },
];

impl Ratchet {
    /// Counts: a place and its number.
    #[must_use]
    pub fn count(&self, texts: &[TextFile], rust: &[RustFile]) -> BTreeMap<String, usize> {
        match self.counter {
            Counter::Rust(count) => count(rust),
            Counter::Text(count) => count(texts),
        }
    }

    /// Compares what is there with what was recorded.
    #[must_use]
    pub fn check(&self, actual: &BTreeMap<String, usize>, record: &str) -> Vec<Finding> {
        let recorded = match self.parse(record) {
            Ok(recorded) => recorded,
            Err(finding) => return vec![finding],
        };
        let over = actual.iter().filter_map(|(place, count)| {
            let limit = recorded.get(place).copied().unwrap_or(0);
            (*count > limit).then(|| {
                let text = format!(
                    "{count} {}; {limit} are recorded. {}, or raise the number in {} \
                     (WEFT_RECORD=1 cargo test -p weft-structure) and say why in the commit.",
                    self.wrong, self.advice, self.record
                );
                Finding::new(place, text)
            })
        });
        over.collect()
    }

    /// The text of the record for `counts`, for those who change it.
    #[must_use]
    pub fn render(&self, counts: &BTreeMap<String, usize>) -> String {
        let mut text = format!(
            "# {}\n# A number may fall and not rise. \
             WEFT_RECORD=1 cargo test -p weft-structure writes them anew.\n",
            self.heading
        );
        for (place, count) in counts {
            let _ = writeln!(text, "{place} {count}");
        }
        text
    }

    fn parse(&self, record: &str) -> Result<BTreeMap<String, usize>, Finding> {
        let mut counts = BTreeMap::new();
        for (index, line) in record
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.starts_with('#'))
        {
            let parsed = line
                .rsplit_once(' ')
                .and_then(|(place, count)| Some((place, count.parse().ok()?)));
            let Some((place, count)) = parsed else {
                let text = format!("`{line}` is not `PLACE NUMBER`.");
                return Err(Finding::at(self.record, index + 1, text));
            };
            counts.insert(place.to_owned(), count);
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_may_fall_and_not_rise() {
        let file =
            RustFile::parse("crates/ring/src/a.rs", "unsafe fn f() {} unsafe fn g() {}").unwrap();
        let ratchet = &RATCHETS[0];
        let actual = ratchet.count(&[], &[file]);
        assert_eq!(ratchet.check(&actual, "# head\ncrates/ring 3\n"), []);
        assert_eq!(ratchet.check(&actual, "crates/ring 2\n"), []);
        assert_eq!(ratchet.check(&actual, "crates/ring 1\n").len(), 1);
        assert_eq!(ratchet.check(&actual, "").len(), 1);
    }

    #[test]
    fn record_reads_back_what_was_rendered() {
        let counts = BTreeMap::from([
            ("crates/os".to_owned(), 7),
            ("a.rs two words".to_owned(), 1),
        ]);
        for ratchet in &RATCHETS {
            assert_eq!(ratchet.parse(&ratchet.render(&counts)).unwrap(), counts);
            assert!(ratchet.parse("crates/os seven").is_err());
        }
    }
}
