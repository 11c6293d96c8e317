// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the files of the repository and parses the Rust ones. Called first; every rule reads what
//! it returns.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders that hold what people write; everything else in the root is a build product or
/// settings.
const FOLDERS: [&str; 8] = [
    "crates", "mount", "tools", "tests", "fuzz", "scripts", "docs", ".ci",
];

/// File names and endings that are text written by people.
const TEXT_ENDINGS: [&str; 8] = ["rs", "md", "toml", "sh", "py", "c", "h", "txt"];

/// One text file, read once.
#[derive(Debug)]
pub struct TextFile {
    /// Relative to the repository root, with forward slashes.
    pub path: String,
    /// The whole content.
    pub text: String,
}

impl TextFile {
    /// Its crate, as `crates/ring`, or the first two components of its path.
    pub fn folder(&self) -> &str {
        first_two(&self.path)
    }

    /// Whether it is a program, a script or a Makefile, and not a document or settings.
    pub fn is_code(&self) -> bool {
        let endings = [".rs", ".c", ".h", ".py", ".sh", "Makefile"];
        endings.iter().any(|ending| self.path.ends_with(ending))
    }
}

/// One Rust file, parsed.
pub struct RustFile {
    /// Relative to the repository root, with forward slashes.
    pub path: String,
    /// The whole content, for rules about comments, which parsing drops.
    pub text: String,
    /// The syntax tree.
    pub syntax: syn::File,
    /// The tokens, in which comments and strings cannot be taken for code.
    pub tokens: proc_macro2::TokenStream,
}

impl RustFile {
    /// Parses `text` as the content of `path`.
    ///
    /// # Errors
    /// The parser's message when the text is not Rust.
    pub fn parse(path: &str, text: &str) -> Result<Self, String> {
        let tokens = text.parse().map_err(|error| format!("{path}: {error}"))?;
        let syntax = syn::parse_file(text).map_err(|error| format!("{path}: {error}"))?;
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            syntax,
            tokens,
        })
    }

    /// The folder of the crate it belongs to, as `crates/ring`, or its first two components.
    pub fn crate_folder(&self) -> &str {
        first_two(&self.path)
    }

    /// Whether it is part of what the crate ships, and not one of its tests, benches or examples.
    pub fn is_shipped(&self) -> bool {
        self.path
            .starts_with(&format!("{}/src/", self.crate_folder()))
    }
}

fn first_two(path: &str) -> &str {
    match path.match_indices('/').nth(1) {
        Some((end, _)) => &path[..end],
        None => path,
    }
}

/// The repository root, found from where this crate lies.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .expect("tests/structure lies two folders below the root")
        .to_owned()
}

/// Every text file of the repository, in a stable order.
///
/// # Panics
/// When a file cannot be read: a rule that skips files would pass for the wrong reason.
pub fn text_files(root: &Path) -> Vec<TextFile> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(root).expect("the repository root is readable") {
        let path = entry.expect("the repository root is readable").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_file() && (has_text_ending(&path) || name == "Makefile") {
            paths.push(path);
        } else if path.is_dir() && FOLDERS.contains(&name.as_str()) {
            walk(&path, &mut paths);
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let relative = path.strip_prefix(root).expect("found below the root");
        TextFile {
            path: relative.to_string_lossy().into_owned(),
            text,
        }
    };
    paths.into_iter().map(read).collect()
}

/// Those of `files` that are Rust, parsed.
///
/// # Panics
/// When one does not parse, with the parser's message.
pub fn rust_files(files: &[TextFile]) -> Vec<RustFile> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    rust.map(|file| {
        RustFile::parse(&file.path, &file.text).unwrap_or_else(|error| panic!("{error}"))
    })
    .collect()
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository is readable") {
        let path = entry
            .expect("a folder of the repository is readable")
            .path();
        if path.is_dir() {
            let name = path.file_name().unwrap_or_default();
            if name != "target" && name != "corpus" && name != "artifacts" {
                walk(&path, paths);
            }
        } else if has_text_ending(&path)
            || path
                .parent()
                .and_then(Path::file_name)
                .is_some_and(|name| name == ".ci")
        {
            paths.push(path);
        }
    }
}

fn has_text_ending(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| TEXT_ENDINGS.iter().any(|known| ending == *known))
}

/// The line (counted from 1) of a `structure: allow RULE because ...` comment that covers the item
/// whose first line is `item_line`: in the comments and attributes directly above it.
pub fn item_is_excused(text: &str, item_line: usize, rule: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let above = lines.get(..item_line.saturating_sub(1)).unwrap_or(&[]);
    let attached = above.iter().rev().take_while(|line| {
        let line = line.trim_start();
        line.starts_with("//") || line.starts_with("#[") || line.ends_with(")]")
    });
    attached.into_iter().any(|line| is_excuse(line, rule))
}

/// Whether one of the first 40 lines excuses the whole file from `rule`.
pub fn file_is_excused(text: &str, rule: &str) -> bool {
    text.lines().take(40).any(|line| is_excuse(line, rule))
}

/// An excuse counts only with a reason of at least two words.
fn is_excuse(line: &str, rule: &str) -> bool {
    let Some((_, rest)) = line.split_once("structure: allow ") else {
        return false;
    };
    let Some((rules, reason)) = rest.split_once(" because ") else {
        return false;
    };
    rules.split([',', ' ']).any(|named| named == rule) && reason.split_whitespace().count() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excuse_needs_the_right_rule_and_a_reason() {
        let excused = "// structure: allow arguments because the C interface has them\nfn f() {}";
        assert!(item_is_excused(excused, 2, "arguments"));
        assert!(!item_is_excused(excused, 2, "function-length"));
        assert!(!item_is_excused(
            "// structure: allow arguments because so\nfn f() {}",
            2,
            "arguments"
        ));
        assert!(!item_is_excused(
            "// structure: allow arguments\nfn f() {}",
            2,
            "arguments"
        ));
    }

    #[test]
    fn excuse_above_another_item_does_not_count() {
        let text = "// structure: allow arguments because of C callers\nfn f() {}\n\nfn g() {}";
        assert!(!item_is_excused(text, 4, "arguments"));
    }

    #[test]
    fn crate_folder_and_shipped_follow_from_the_path() {
        let shipped = RustFile::parse("crates/ring/src/cell.rs", "").unwrap();
        assert_eq!(
            (shipped.crate_folder(), shipped.is_shipped()),
            ("crates/ring", true)
        );
        let test = RustFile::parse("crates/ring/tests/crash.rs", "").unwrap();
        assert_eq!(
            (test.crate_folder(), test.is_shipped()),
            ("crates/ring", false)
        );
    }
}
