// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The recorded number of `unsafe` per crate. It may fall by itself and rise only by review: a rise changes
//! `tests/structure/unsafe-counts.txt`, which shows in the diff. Uses [`crate::room::unsafes`].

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::Finding;
use crate::room;
use crate::tree::RustFile;

/// Where the numbers are recorded.
pub const RECORD: &str = "tests/structure/unsafe-counts.txt";

/// How many times `unsafe` stands in each crate that has any, keyed by folder.
pub fn count(files: &[RustFile]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for file in files {
        let count = room::unsafes(file).len();
        if count > 0 {
            *counts.entry(file.crate_folder().to_owned()).or_insert(0) += count;
        }
    }
    counts
}

/// Compares what is there with what was recorded.
pub fn check(actual: &BTreeMap<String, usize>, record: &str) -> Vec<Finding> {
    let recorded = match parse(record) {
        Ok(recorded) => recorded,
        Err(finding) => return vec![finding],
    };
    let over = actual.iter().filter_map(|(folder, count)| {
        let limit = recorded.get(folder).copied().unwrap_or(0);
        (*count > limit).then(|| {
            let text = format!(
                "`unsafe` stands {count} times; {limit} are recorded. Do without, or raise the number in {RECORD} and say why in the commit."
            );
            Finding::new(folder, text)
        })
    });
    over.collect()
}

/// The text of the record for `counts`, for those who change it.
pub fn render(counts: &BTreeMap<String, usize>) -> String {
    let mut text = String::from(
        "# How often `unsafe` stands in each crate. `cargo test -p weft-structure` fails when a crate has more; lower a number when it fell.\n",
    );
    for (folder, count) in counts {
        let _ = writeln!(text, "{folder} {count}");
    }
    text
}

fn parse(record: &str) -> Result<BTreeMap<String, usize>, Finding> {
    let mut counts = BTreeMap::new();
    for (index, line) in record
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('#'))
    {
        let parsed = line
            .split_once(' ')
            .and_then(|(folder, count)| Some((folder, count.parse().ok()?)));
        let Some((folder, count)) = parsed else {
            return Err(Finding::at(
                RECORD,
                index + 1,
                format!("`{line}` is not `FOLDER COUNT`."),
            ));
        };
        counts.insert(folder.to_owned(), count);
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_may_fall_and_not_rise() {
        let file =
            RustFile::parse("crates/ring/src/a.rs", "unsafe fn f() {} unsafe fn g() {}").unwrap();
        let actual = count(&[file]);
        assert_eq!(check(&actual, "# head\ncrates/ring 3\n"), []);
        assert_eq!(check(&actual, "crates/ring 2\n"), []);
        assert_eq!(check(&actual, "crates/ring 1\n").len(), 1);
        assert_eq!(check(&actual, "").len(), 1);
    }

    #[test]
    fn record_reads_back_what_was_rendered() {
        let counts = BTreeMap::from([("crates/os".to_owned(), 7)]);
        assert_eq!(parse(&render(&counts)).unwrap(), counts);
        assert!(parse("crates/os seven").is_err());
    }
}
