// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lines of documents, code and comments: at most 100 columns, so that a diff, a terminal and an
//! editor with two windows show them whole. In documents tables, code blocks and lines of one long
//! link may be longer; in code rustfmt leaves comments, strings and macros as long as they are, so
//! every line counts. What is longer today is recorded by [`crate::ratchet`]. Reads the text files
//! of [`crate::tree`].

use std::collections::BTreeMap;

use crate::tree::TextFile;

/// Longest line, in characters. Chosen: rustfmt's width.
const COLUMNS: usize = 100;

/// Longer lines in each Markdown document that has any.
pub fn documents(files: &[TextFile]) -> BTreeMap<String, usize> {
    let documents = files.iter().filter(|file| file.path.ends_with(".md"));
    let counted = documents.map(|file| (file.path.clone(), wide_lines(&file.text)));
    counted.filter(|(_, count)| *count > 0).collect()
}

/// Longer lines of Rust, C, Python, shell and Makefiles, in each crate or folder that has any.
pub fn code(files: &[TextFile]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_code()) {
        let wide = |line: &&str| line.chars().count() > COLUMNS;
        let count = file.text.lines().filter(wide).count();
        if count > 0 {
            *counts.entry(file.folder().to_owned()).or_default() += count;
        }
    }
    counts
}

fn wide_lines(text: &str) -> usize {
    let mut fenced = false;
    let wide = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence && line.chars().count() > COLUMNS && !may_be_wide(line)
    });
    wide.count()
}

/// A row of a table, an indented block of code, or words that no space divides within the width.
fn may_be_wide(line: &str) -> bool {
    let text = line.trim_start();
    let room = COLUMNS - (line.len() - text.len()).min(COLUMNS);
    text.starts_with('|')
        || line.starts_with("    ") && !text.starts_with(['-', '*'])
        || is_link(text)
        || text.chars().take(room + 1).all(|letter| letter != ' ')
}

/// Nothing but one link, with what marks an entry of a list before it and a full stop behind.
fn is_link(text: &str) -> bool {
    let link = text.trim_start_matches(['-', '*', ' ']);
    let link = link.trim_end_matches(['.', ',', ';', ':']);
    let whole = link.starts_with('[') && link.ends_with(')');
    whole && link.matches("](").count() == 1 || link.starts_with("https://") && !link.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn counted(text: &str) -> usize {
        documents(&[file("docs/a.md", text)]).values().sum()
    }

    #[test]
    fn a_sentence_of_more_than_the_width_is_found() {
        let line = "word ".repeat(20);
        assert_eq!(counted(&line), 0);
        assert_eq!(counted(&format!("{line}and more")), 1);
        assert_eq!(counted(&format!("- {line}and more\n\n{line}and more")), 2);
    }

    #[test]
    fn tables_code_and_bare_links_are_left_alone() {
        let words = "word ".repeat(30);
        assert_eq!(counted(&format!("| {words} |")), 0);
        assert_eq!(counted(&format!("```\n{words}\n```\n    {words}")), 0);
        assert_eq!(counted(&format!("```\n{words}\n```\n{words}")), 1);
        let address = "x".repeat(120);
        assert_eq!(counted(&format!("https://example.org/{address}")), 0);
        assert_eq!(counted(&format!("- [a page]({address})")), 0);
        assert_eq!(counted(&format!("see [a page]({address}), {words}")), 1);
    }

    #[test]
    fn every_line_of_code_counts_and_documents_apart() {
        let comment = format!("// {}\n", "word ".repeat(25));
        let text = format!("{comment}short();\n{comment}    // {}\n", "x".repeat(93));
        let files =
            ["a.rs", "b.sh", "tests/Makefile", "c.md", "d.svg"].map(|path| file(path, &text));
        let found = code(&files);
        assert_eq!(found.into_values().collect::<Vec<_>>(), [2, 2, 2]);
        assert_eq!(documents(&files).len(), 1);
    }

    #[test]
    fn columns_are_characters_and_not_bytes() {
        assert_eq!(counted(&format!("é {}", "é".repeat(98))), 0);
    }
}
