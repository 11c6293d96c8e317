// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a file opens, what it may be called, and which words may not stand in it. Reads the files of
//! [`crate::tree`].

use crate::Finding;
use crate::tree::{RustFile, TextFile};

/// The first line of every Rust file.
pub const LICENCE_LINE: &str = "// SPDX-License-Identifier: Apache-2.0 OR MIT";

/// Names that say nothing about what is inside; a file called so collects what has no better place.
const EMPTY_NAMES: [&str; 8] = [
    "util", "utils", "common", "helper", "helpers", "misc", "manager", "managers",
];

/// Words of unfinished work, written in two parts so that this file does not hold them.
const UNFINISHED: [&str; 4] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
];

/// All findings about openings, names and words.
pub fn check(texts: &[TextFile], rust: &[RustFile]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = rust.iter().flat_map(check_opening).collect();
    findings.extend(texts.iter().flat_map(check_name));
    findings.extend(texts.iter().flat_map(check_words));
    findings.extend(rust.iter().filter_map(check_mod_file));
    findings.extend(rust.iter().filter_map(check_forbids_unsafe));
    findings
}

/// The licence line, then `//!`: the first thing a reader sees is what the file is for.
fn check_opening(file: &RustFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut lines = file.text.lines();
    if lines.next() != Some(LICENCE_LINE) {
        findings.push(Finding::at(
            &file.path,
            1,
            format!("the first line must be `{LICENCE_LINE}`."),
        ));
    }
    // Between the two only a stated reason of this test, or a `#!` attribute, may stand.
    let next =
        lines.find(|line| !line.starts_with("// structure: allow ") && !line.trim().is_empty());
    let sentence = next
        .and_then(|line| line.strip_prefix("//! "))
        .unwrap_or_default();
    if sentence.split_whitespace().count() < 3 {
        let text = "after the licence line a `//!` sentence must say what the file is for.";
        findings.push(Finding::at(&file.path, 2, text));
    }
    findings
}

fn check_name(file: &TextFile) -> Vec<Finding> {
    let named = file.path.split('/').filter(|component| {
        let stem = component.split('.').next().unwrap_or_default();
        EMPTY_NAMES.contains(&stem)
    });
    let text =
        |component: &str| format!("`{component}` names nothing; call it after what it holds.");
    named
        .map(|component| Finding::new(&file.path, text(component)))
        .collect()
}

fn check_words(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let mut words = line.split(|letter: char| !letter.is_ascii_alphanumeric());
        if let Some(word) = words.find(|word| UNFINISHED.contains(word)) {
            let text =
                format!("`{word}` marks unfinished work; finish it, or say what is so and why.");
            findings.push(Finding::at(&file.path, index + 1, text));
        }
    }
    findings
}

/// A `mod.rs` may only name its modules: in a list of tabs called mod.rs nobody finds the logic.
fn check_mod_file(file: &RustFile) -> Option<Finding> {
    if !file.path.ends_with("/mod.rs") {
        return None;
    }
    let only_names = file.syntax.items.iter().all(|item| {
        matches!(item, syn::Item::Mod(module) if module.content.is_none())
            || matches!(item, syn::Item::Use(_))
    });
    (!only_names).then(|| {
        Finding::new(
            &file.path,
            "a mod.rs holds only `mod` and `use` lines; move the rest to a file with a name.",
        )
    })
}

/// Every crate outside the rooms of `unsafe` forbids it for good.
fn check_forbids_unsafe(file: &RustFile) -> Option<Finding> {
    let is_root = ["lib.rs", "main.rs"]
        .iter()
        .any(|name| file.path == format!("{}/src/{name}", file.crate_folder()));
    if !is_root
        || crate::room::UNSAFE
            .iter()
            .any(|room| room.folder == file.crate_folder())
    {
        return None;
    }
    let forbids = file
        .text
        .lines()
        .any(|line| line.trim() == "#![forbid(unsafe_code)]");
    (!forbids).then(|| {
        Finding::new(
            &file.path,
            "the crate must say `#![forbid(unsafe_code)]`; it is not a room for `unsafe`.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(path: &str, text: &str) -> Vec<Finding> {
        check(&[], &[RustFile::parse(path, text).unwrap()])
    }

    fn text_file(path: &str, text: &str) -> TextFile {
        TextFile {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn licence_and_purpose_open_a_file() {
        let good = format!("{LICENCE_LINE}\n//! Counts the cells.\n");
        assert_eq!(opening("crates/x/src/cell.rs", &good), []);
        assert_eq!(
            opening("crates/x/src/cell.rs", "//! Counts the cells.\n").len(),
            2
        );
        assert_eq!(
            opening(
                "crates/x/src/cell.rs",
                &format!("{LICENCE_LINE}\nuse a::b;\n")
            )
            .len(),
            1
        );
    }

    #[test]
    fn empty_names_are_found_as_files_and_as_folders() {
        assert_eq!(
            check(&[text_file("crates/x/src/utils.rs", "")], &[]).len(),
            1
        );
        assert_eq!(
            check(&[text_file("tests/common/start.rs", "")], &[]).len(),
            1
        );
        assert_eq!(
            check(&[text_file("crates/x/src/commonwealth.rs", "")], &[]),
            []
        );
    }

    #[test]
    fn unfinished_words_are_found_as_words_only() {
        let found = format!("a\nb {}: later\n", UNFINISHED[0]);
        assert_eq!(
            check(&[text_file("docs/a.md", &found)], &[])[0].place,
            "docs/a.md:2"
        );
        assert_eq!(
            check(&[text_file("docs/a.md", "mktemp weft.XXXXXX, hacker")], &[]),
            []
        );
    }

    #[test]
    fn mod_file_with_logic_is_found() {
        let text = format!("{LICENCE_LINE}\n//! Names the modules.\nmod a;\nuse a::b;\n");
        assert_eq!(opening("crates/x/src/y/mod.rs", &text), []);
        assert_eq!(
            opening("crates/x/src/y/mod.rs", &format!("{text}fn f() {{}}\n")).len(),
            1
        );
    }

    #[test]
    fn crate_outside_the_rooms_must_forbid_unsafe() {
        let text = format!("{LICENCE_LINE}\n//! A crate of words.\n");
        assert_eq!(opening("crates/matching/src/lib.rs", &text).len(), 1);
        assert_eq!(opening("crates/ring/src/lib.rs", &text), []);
    }
}
