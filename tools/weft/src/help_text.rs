// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Splits the text behind the options of `--help` into tables with a heading, and prose. Called by
//! `manual.rs`; pure.

/// A piece of the text between empty lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A line that ends in a colon, and indented lines below it.
    Table {
        /// The first line, without its colon.
        heading: String,
        /// The lines below.
        rows: Vec<Row>,
    },
    /// Anything else, as one line.
    Prose(String),
}

/// A line of a table: a command and what it does, an exit code and what it means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// What stands in front of two spaces or more.
    pub left: String,
    /// What stands behind them, and in lines that are indented further; may be empty.
    pub right: String,
}

/// The indentation of a table's rows: chosen by those who wrote the texts.
const INDENT: &str = "  ";

/// Takes `text` apart.
pub(crate) fn parts(text: &str) -> Vec<Part> {
    let lines: Vec<&str> = text.lines().collect();
    let pieces = lines.split(|line| line.trim().is_empty());
    pieces.filter(|piece| !piece.is_empty()).map(part).collect()
}

fn part(lines: &[&str]) -> Part {
    let heading = lines[0].strip_suffix(':');
    match heading {
        Some(heading) if lines.len() > 1 && lines[1..].iter().all(|l| l.starts_with(INDENT)) => {
            Part::Table {
                heading: heading.to_owned(),
                rows: rows(&lines[1..]),
            }
        }
        _ => {
            let words: Vec<&str> = lines
                .iter()
                .flat_map(|line| line.split_whitespace())
                .collect();
            Part::Prose(words.join(" "))
        }
    }
}

fn rows(lines: &[&str]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in lines {
        let text = &line[INDENT.len()..];
        match rows.last_mut() {
            Some(row) if text.starts_with(' ') => {
                if !row.right.is_empty() {
                    row.right.push(' ');
                }
                row.right.push_str(text.trim());
            }
            _ => {
                let (left, right) = text.split_once("  ").unwrap_or((text, ""));
                rows.push(Row {
                    left: left.to_owned(),
                    right: right.trim().to_owned(),
                });
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_prose_and_lines_that_go_on_are_told_apart() {
        let text = "Examples:\n  weft run -- ./a  one rank\n  weft top\n\nFirst line\nand second.\n\
                    \nExit codes (more):\n  3    no message\n       went through Weft\n";
        let row = |left: &str, right: &str| Row {
            left: left.to_owned(),
            right: right.to_owned(),
        };
        let table = |heading: &str, rows| Part::Table {
            heading: heading.to_owned(),
            rows,
        };
        let wanted = vec![
            table(
                "Examples",
                vec![row("weft run -- ./a", "one rank"), row("weft top", "")],
            ),
            Part::Prose("First line and second.".to_owned()),
            table(
                "Exit codes (more)",
                vec![row("3", "no message went through Weft")],
            ),
        ];
        assert_eq!(parts(text), wanted);
        assert_eq!(parts(""), []);
        assert_eq!(parts("A heading:"), [Part::Prose("A heading:".to_owned())]);
    }
}
