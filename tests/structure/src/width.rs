// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lines of Markdown documents: at most 100 columns, so that a diff, a terminal and an editor with
//! two windows show them whole. Tables, code blocks and lines of one long link may be longer. What
//! is longer today is recorded by [`crate::ratchet`]. Reads the text files of [`crate::tree`].

use std::collections::BTreeMap;

use crate::tree::TextFile;

/// Longest line, in characters. Chosen: rustfmt's width.
const COLUMNS: usize = 100;

/// Longer lines in each Markdown document that has any.
pub fn count(files: &[TextFile]) -> BTreeMap<String, usize> {
    let documents = files.iter().filter(|file| file.path.ends_with(".md"));
    let counted = documents.map(|file| (file.path.clone(), wide_lines(&file.text)));
    counted.filter(|(_, count)| *count > 0).collect()
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

    fn counted(text: &str) -> usize {
        let file = TextFile {
            path: "docs/a.md".to_owned(),
            text: text.to_owned(),
        };
        count(&[file]).values().sum()
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
    fn columns_are_characters_and_not_bytes() {
        assert_eq!(counted(&format!("é {}", "é".repeat(98))), 0);
    }
}
