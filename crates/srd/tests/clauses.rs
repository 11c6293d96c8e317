// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The code cites clauses of docs/srd-protocol.md: each cited clause exists, and each numbered rule
//! is cited somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("the source is there") {
        let path = entry.expect("the source is readable").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(fs::read_to_string(&path).expect("the source is text"));
        }
    }
}

/// `8.2` and `8` from texts like `(srd-protocol 8.1, 8.2)` or `srd-protocol 2 to 5`.
fn cited(text: &str) -> Vec<String> {
    let mut clauses = Vec::new();
    for rest in text.split("srd-protocol ").skip(1) {
        for word in rest.split_inclusive([' ', ')', ';', ':', '\n']).take(8) {
            let bare = word.trim_matches(|letter: char| !letter.is_ascii_digit());
            let numbers: Vec<&str> = bare.split('.').collect();
            let clause = !bare.is_empty() && numbers.iter().all(|part| part.parse::<u32>().is_ok());
            if !clause && word.trim() != "to" {
                break;
            }
            if clause {
                clauses.push(bare.to_owned());
            }
            if word.ends_with([')', ';', ':']) {
                break;
            }
        }
    }
    clauses
}

#[test]
fn cited_clauses_exist_and_rules_are_cited() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text =
        fs::read_to_string(root.join("docs/srd-protocol.md")).expect("the protocol is specified");
    let mut clauses = BTreeSet::new();
    let mut rules = BTreeSet::new();
    for line in text.lines() {
        if let Some(number) = line
            .strip_prefix("## ")
            .and_then(|rest| rest.split(['.', ' ']).next())
        {
            clauses.insert(number.to_owned());
        }
        let number = line
            .strip_prefix("- ")
            .and_then(|rest| rest.split(' ').next());
        if let Some(number) = number.filter(|number| number.contains('.')) {
            rules.insert(number.to_owned());
        }
    }
    assert!(
        clauses.len() >= 15 && rules.len() > 40,
        "{clauses:?} {rules:?}"
    );
    let mut texts = Vec::new();
    for name in ["wire", "srd", "seal", "udp"] {
        let folder = format!("crates/{name}/src");
        sources(&root.join(folder), &mut texts);
    }
    let cited: BTreeSet<String> = texts.iter().flat_map(|text| cited(text)).collect();
    let unknown: Vec<_> = cited
        .iter()
        .filter(|name| !clauses.contains(*name) && !rules.contains(*name))
        .collect();
    assert!(unknown.is_empty(), "cited and not there: {unknown:?}");
    let silent: Vec<_> = rules.iter().filter(|name| !cited.contains(*name)).collect();
    assert!(silent.is_empty(), "rules that no code cites: {silent:?}");
}
