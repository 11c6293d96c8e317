// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Applies every rule of this crate to the repository itself. Each test prints all its findings at
//! once.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;

use weft_structure::ratchet::RATCHETS;
use weft_structure::tree::{self, TextFile};
use weft_structure::{Finding, edge, head, index, link, room, rust_version, size};

fn texts() -> &'static [TextFile] {
    static TEXTS: OnceLock<Vec<TextFile>> = OnceLock::new();
    TEXTS.get_or_init(|| tree::text_files(&tree::root()))
}

fn packages() -> Vec<edge::Package> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--offline",
            "--no-deps",
            "--format-version",
            "1",
        ])
        .current_dir(tree::root())
        .output()
        .expect("cargo can be started");
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    edge::packages(&String::from_utf8(output.stdout).expect("cargo metadata prints UTF-8"))
}

#[track_caller]
fn assert_none(findings: &[Finding]) {
    let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(
        findings.is_empty(),
        "{} found:\n{}",
        findings.len(),
        list.join("\n")
    );
}

#[test]
fn imports_go_downwards_only() {
    assert_none(&edge::check(&packages()));
}

#[test]
fn every_outside_crate_has_its_reason() {
    let deny = fs::read_to_string(tree::root().join("deny.toml")).expect("deny.toml is readable");
    assert_none(&edge::check_reasons(&packages(), &deny));
}

// One test for all rules about Rust files: parsing them takes most of the time.
#[test]
fn rust_files_keep_to_their_rules_and_recorded_numbers_do_not_rise() {
    let files = tree::rust_files(texts());
    for folder in [
        "crates/provider",
        "crates/ring",
        "tools/weft",
        "tests/structure",
    ] {
        assert!(
            files.iter().any(|file| file.crate_folder() == folder),
            "no Rust file of {folder} was read"
        );
    }
    let mut findings = head::check(texts(), &files);
    findings.extend(size::check(&files));
    findings.extend(room::check(&files));
    for ratchet in &RATCHETS {
        let counts = ratchet.count(texts(), &files);
        let path = tree::root().join(ratchet.record);
        if std::env::var_os("WEFT_RECORD").is_some() {
            fs::write(&path, ratchet.render(&counts)).expect("the record is writable");
        }
        let record = fs::read_to_string(&path).expect("the record is readable");
        findings.extend(ratchet.check(&counts, &record));
    }
    assert_none(&findings);
}

#[test]
fn documents_point_at_what_exists() {
    assert_none(&link::check(&tree::root(), texts()));
}

#[test]
fn pages_of_the_lab_and_decisions_are_listed() {
    assert_none(&index::check(texts()));
}

#[test]
fn documents_name_the_rust_that_is_asked_for() {
    assert_none(&rust_version::check(texts()));
}
