// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words that this project made up and gave up for the field's: they do not come back. The glossary
//! has the words that took their place. Where they still stand is recorded by [`crate::ratchet`],
//! by crate, and may only become less. Reads the text files of [`crate::tree`].

use std::collections::BTreeMap;

use crate::tree::TextFile;

/// What was given up, in lower case with spaces between words, and the field's word for it.
/// `both ways` stands for `both_ways` and `BothWays` too.
pub const GIVEN_UP: &[(&str, &str)] = &[
    (
        "attendant",
        "progress thread (fi_domain(3): automatic progress)",
    ),
    ("beat", "heartbeat"),
    ("board", "chunk claims, of a cooperative copy"),
    ("both ways", "bidirectional (OSU)"),
    ("contender", "configuration"),
    ("crowd", "scale, or the number of ranks"),
    ("crowds", "scale, or the number of ranks"),
    ("departure", "send delay"),
    ("departures", "send delay"),
    ("favourite", "connected socket (connect(2))"),
    (
        "foreign",
        "shared receive context (fi_peer(3)), or whose it is",
    ),
    ("gate", "packet authentication"),
    ("homes", "local addresses"),
    ("inquiry", "host probe"),
    ("leg", "run"),
    ("legs", "run"),
    ("lone", "connected socket (connect(2))"),
    ("manner", "send protocol (UCX, Open MPI)"),
    ("parcel", "send queue"),
    ("parcels", "send queue"),
    ("parted", "early-data rendezvous"),
    ("past the cache", "non-temporal stores"),
    ("tray", "completion queue buffer (fi_cq(3))"),
    ("window bytes", "cwnd_bytes (RFC 9002)"),
];

/// How often each of them stands in each crate or folder: `crates/udp lone`.
pub fn count(files: &[TextFile]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for file in files.iter().filter(|file| is_current(&file.path)) {
        let lower = in_lower_case(&without_lab_pages(&file.text));
        let words: Vec<&str> = lower.split_whitespace().collect();
        for (given_up, _) in GIVEN_UP {
            let parts: Vec<&str> = given_up.split(' ').collect();
            let found = words.windows(parts.len()).filter(|here| *here == parts);
            let found = found.count();
            if found > 0 {
                *counts
                    .entry(format!("{} {given_up}", file.folder()))
                    .or_default() += found;
            }
        }
    }
    counts
}

/// Whether a file tells of today, and not of what was: a changelog, a page of the laboratory or a
/// decision keeps the words of its day. This file, its records and the glossary name them all.
fn is_current(path: &str) -> bool {
    let past = ["docs/lab/", "docs/adr/", "tests/structure/"];
    !past.iter().any(|folder| path.starts_with(folder))
        && !["CHANGELOG.md", "docs/glossary.md"].contains(&path)
}

/// A text without the names of lab pages, which keep the words of their day.
fn without_lab_pages(text: &str) -> String {
    let mut parts = text.split("lab/20");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.split_once(".md").map_or(part, |(_, rest)| rest));
    }
    kept
}

/// The words of a text: `fn both_ways` and `BothWays` are three words and two.
fn in_lower_case(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    let mut before = ' ';
    for letter in text.chars() {
        if letter.is_ascii_uppercase() && before.is_ascii_lowercase() {
            words.push(' ');
        }
        let part = letter.is_ascii_alphabetic();
        words.push(if part {
            letter.to_ascii_lowercase()
        } else {
            ' '
        });
        before = letter;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(path: &str, text: &str) -> Vec<(String, usize)> {
        let file = TextFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        count(&[file]).into_iter().collect()
    }

    #[test]
    fn a_word_is_found_in_names_and_in_prose() {
        let text = "struct BothWays; fn both_ways() {} // Both\n// ways. A tray; TRAY_BYTES.";
        let found = [
            ("crates/a both ways".into(), 3),
            ("crates/a tray".into(), 2),
        ];
        assert_eq!(counted("crates/a/src/b.rs", text), found);
    }

    #[test]
    fn a_part_of_a_word_is_none() {
        assert_eq!(
            counted("crates/a/src/b.rs", "alone portray manners crowded trays"),
            []
        );
    }

    #[test]
    fn pages_about_the_past_may_say_it() {
        assert_eq!(counted("docs/lab/2026-01-01-a.md", "a tray"), []);
        assert_eq!(counted("CHANGELOG.md", "a tray"), []);
        let link = "[many ranks](lab/2026-11-22-crowds.md), and a tray";
        assert_eq!(
            counted("docs/run.md", link),
            [("docs/run.md tray".into(), 1)]
        );
        assert_eq!(counted("docs/run.md", "a tray").len(), 1);
    }
}
