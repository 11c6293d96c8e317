// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A Rust version that a document or a recipe names is one that a Cargo.toml asks for. Pages that
//! tell what was once (docs/adr, docs/lab, the change log) may name others.

use std::collections::BTreeSet;

use crate::Finding;
use crate::tree::TextFile;

/// What stands before a version in a sentence, in a command's help and in Spack's recipe.
const BEFORE: [&str; 2] = ["Rust ", "rust@"];
/// Who may name versions that are no longer asked for.
const HISTORY: [&str; 3] = ["docs/adr/", "docs/lab/", "CHANGELOG.md"];

/// All versions in documents, recipes and the Makefile that no Cargo.toml among `files` asks for.
pub fn check(files: &[TextFile]) -> Vec<Finding> {
    let manifests = files
        .iter()
        .filter(|file| file.path.ends_with("Cargo.toml"));
    let asked: BTreeSet<&str> = manifests
        .flat_map(|file| file.text.lines())
        .filter_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'))
        .collect();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_read(&file.path)) {
        for (index, line) in file.text.lines().enumerate() {
            let wrong = versions(line).filter(|version| !asked.contains(version));
            findings.extend(wrong.map(|version| {
                let text = format!("names Rust {version}; Cargo.toml files ask for {asked:?}.");
                Finding::at(&file.path, index + 1, text)
            }));
        }
    }
    findings
}

fn is_read(path: &str) -> bool {
    let endings = [".md", ".py", "Makefile"];
    endings.iter().any(|ending| path.ends_with(ending))
        && !HISTORY.iter().any(|history| path.starts_with(history))
}

/// The versions that `line` names: `1.88` in `Rust 1.88 or newer`.
fn versions(line: &str) -> impl Iterator<Item = &str> {
    BEFORE.iter().flat_map(move |before| {
        line.split(before).skip(1).filter_map(|rest| {
            let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
            let version = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
            version.starts_with("1.").then_some(version)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_no_manifest_asks_for_is_found() {
        let file = |path: &str, text: &str| TextFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let found = check(&[
            file("Cargo.toml", "[workspace.package]\nrust-version = \"1.88\""),
            file("mount/daemon/Cargo.toml", "rust-version = \"1.94\""),
            file("crates/os/Cargo.toml", "rust-version.workspace = true"),
            file("README.md", "Rust code.\nIt needs Rust 1.88.\nor Rust 1.85"),
            file("Makefile", "minutes, and Rust 1.94'"),
            file("packaging/package.py", "\"rust@1.87:\""),
            file("docs/adr/1.md", "Rust 1.70 was enough"),
            file("docs/lab/1.md", "with Rust 1.71"),
            file("CHANGELOG.md", "Rust 1.72"),
        ]);
        let places: Vec<&str> = found.iter().map(|one| one.place.as_str()).collect();
        assert_eq!(places, ["README.md:3", "packaging/package.py:1"]);
    }
}
