// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Links, paths and names in the Markdown documents: a document that points nowhere is worse than
//! none. Reads the text files of [`crate::tree`]; links to other sites are left alone, since a test
//! must pass without a network.

use std::collections::{BTreeSet, HashSet};
use std::path::{Component, Path, PathBuf};

use crate::Finding;
use crate::tree::TextFile;

/// Folders whose paths in backticks must exist.
const PATH_STARTS: [&str; 5] = ["crates/", "tools/", "tests/", "scripts/", "docs/"];

/// All findings in the Markdown files among `files`; `root` is where their paths begin.
pub fn check(root: &Path, files: &[TextFile]) -> Vec<Finding> {
    let (documents, others): (Vec<_>, Vec<_>) =
        files.iter().partition(|file| file.path.ends_with(".md"));
    let words: HashSet<&str> = others.iter().flat_map(|file| words(&file.text)).collect();
    let mut findings: Vec<Finding> = documents
        .iter()
        .flat_map(|file| check_document(root, file))
        .collect();
    let current = documents.iter().filter(|file| is_current(&file.path));
    findings.extend(current.flat_map(|file| check_words(&words, file)));
    findings.extend(others.into_iter().flat_map(|file| check_names(root, file)));
    findings
}

/// Whether a document tells of today, and not of what was.
fn is_current(path: &str) -> bool {
    let past = ["docs/lab/", "docs/adr/"];
    path != "CHANGELOG.md" && !past.iter().any(|folder| path.starts_with(folder))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
}

/// Names of tests and of our variables that a document has in backticks, and no source has.
fn check_words(known: &HashSet<&str>, file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in prose(&file.text) {
        let code = line.split('`').skip(1).step_by(2).flat_map(words);
        for word in code.filter(|word| is_ours(word) && !known.contains(word)) {
            let text = format!("`{word}` stands in no source: was it renamed?");
            findings.push(Finding::at(&file.path, number, text));
        }
    }
    findings
}

/// A sentence for a name, as tests have it, or a variable that Weft or its tests read.
fn is_ours(word: &str) -> bool {
    let is_variable = ["FI_WEFT_", "WEFT_"].iter().any(|start| {
        let name = word.strip_prefix(start);
        name.is_some_and(|name| !name.is_empty())
    });
    is_variable
        || word.matches('_').count() >= 3
            && word.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Documents that comments, messages and scripts name. This file holds made-up ones.
fn check_names(root: &Path, file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    if file.path.starts_with("tests/structure/") {
        return findings;
    }
    for (index, line) in file.text.lines().enumerate() {
        for path in named_documents(line) {
            if !root.join(path).exists() {
                let text = format!("`{path}` does not exist.");
                findings.push(Finding::at(&file.path, index + 1, text));
            }
        }
    }
    findings
}

/// Words of a line that are paths of documents below `docs/`.
fn named_documents(line: &str) -> impl Iterator<Item = &str> {
    let in_path = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    let words = line.split(move |letter| !in_path(letter));
    let words = words.map(|word| word.trim_end_matches(['.', '-']));
    let words = words.map(|word| word.trim_start_matches("../"));
    words.filter(|word| word.starts_with("docs/") && word.ends_with(".md"))
}

fn check_document(root: &Path, file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in prose(&file.text) {
        for target in link_targets(line) {
            if let Some(text) = broken(root, file, target) {
                findings.push(Finding::at(&file.path, number, text));
            }
        }
        for path in named_paths(line) {
            if !root.join(path).exists() {
                findings.push(Finding::at(
                    &file.path,
                    number,
                    format!("`{path}` does not exist."),
                ));
            }
        }
    }
    findings
}

/// The lines outside code fences, with their numbers from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((index + 1, line))
    })
}

/// What stands between `](` and `)`.
pub(crate) fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
}

/// Paths in backticks that claim to be part of this repository. A pattern or a place-holder is not
/// a claim.
fn named_paths(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|code| {
        let is_path = PATH_STARTS.iter().any(|start| code.starts_with(start));
        is_path
            && !code.contains(['*', '<', '{', ' ', '['])
            && !code
                .chars()
                .any(|letter| letter.is_ascii_uppercase() && !code.ends_with(".md"))
    })
}

fn broken(root: &Path, file: &TextFile, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let whole = if path.is_empty() {
        PathBuf::from(&file.path)
    } else {
        normal(&folder.join(path))?
    };
    if !path.is_empty() && !root.join(&whole).exists() {
        return Some(format!(
            "link to `{target}`: {} does not exist.",
            whole.display()
        ));
    }
    if anchor.is_empty() || !path.is_empty() && !path.ends_with(".md") {
        return None;
    }
    let text = if path.is_empty() {
        file.text.clone()
    } else {
        std::fs::read_to_string(root.join(&whole)).ok()?
    };
    (!anchors(&text).contains(anchor))
        .then(|| format!("link to `{target}`: no heading gives `#{anchor}`."))
}

/// Removes `..` without asking the file system; `None` when it leaves the repository.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut whole = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir if !whole.pop() => return Some(PathBuf::from(path)),
            Component::ParentDir | Component::CurDir => {}
            other => whole.push(other),
        }
    }
    Some(whole)
}

/// The anchors that headings give: lower case, spaces to hyphens, punctuation dropped.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|(_, line)| line.strip_prefix('#'));
    let anchor = |heading: &str| {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter })
            .collect()
    };
    headings.map(anchor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<Finding> {
        let root = crate::tree::root();
        check(
            &root,
            &[TextFile {
                path: "docs/made-up.md".to_owned(),
                text: text.to_owned(),
            }],
        )
    }

    #[test]
    fn links_to_files_are_followed_from_the_document() {
        assert_eq!(
            findings("[make](../Makefile) and [setup](../scripts/setup.sh)"),
            []
        );
        assert_eq!(findings("[gone](../nowhere.md)").len(), 1);
        assert_eq!(findings("[out](../../../elsewhere)").len(), 1);
    }

    #[test]
    fn anchors_must_have_a_heading() {
        assert_eq!(findings("# One message, down\n[a](#one-message-down)"), []);
        assert_eq!(findings("# One\n[a](#two)").len(), 1);
    }

    #[test]
    fn code_fences_and_other_sites_are_left_alone() {
        assert_eq!(
            findings("```\n[gone](nowhere.md)\n```\n[site](https://example.org/a)"),
            []
        );
    }

    #[test]
    fn documents_that_comments_name_must_exist() {
        let comment = |text: &str| TextFile {
            path: "crates/x/src/a.rs".to_owned(),
            text: text.to_owned(),
        };
        let found = |text| check(&crate::tree::root(), &[comment(text)]).len();
        assert_eq!(found("/// Measured (docs/fast-path.md)."), 0);
        assert_eq!(found("include_str!(\"../../../docs/glossary.md\")"), 0);
        assert_eq!(found("/// Measured: docs/lab/never.md, docs/gone.md."), 2);
    }

    #[test]
    fn names_of_tests_and_variables_must_stand_in_a_source() {
        let found = |path: &str, text: &str| {
            let document = TextFile {
                path: path.to_owned(),
                text: text.to_owned(),
            };
            let source = TextFile {
                path: "crates/x/src/a.rs".to_owned(),
                text: "fn a_law_that_holds() { get(\"FI_WEFT_ROUTE\") }".to_owned(),
            };
            check(&crate::tree::root(), &[document, source]).len()
        };
        assert_eq!(
            found("docs/a.md", "`a_law_that_holds`, `FI_WEFT_ROUTE=srd`"),
            0
        );
        assert_eq!(found("docs/a.md", "`a_law_that_fell`, `FI_WEFT_ROUT`"), 2);
        assert_eq!(found("docs/lab/a.md", "`a_law_that_fell`"), 0);
    }

    #[test]
    fn paths_in_backticks_must_exist() {
        assert_eq!(findings("see `scripts/setup.sh` and `crates/*/src`"), []);
        assert_eq!(findings("see `scripts/nothing.sh`").len(), 1);
    }
}
