// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Text for people: aligned columns, colour on a terminal that wants it.
//!
//! Called by `lib.rs` with an examination and by `info.rs` with tables. NO_COLOR (no-color.org)
//! turns colour off.

use std::fmt::Write;
use std::io::IsTerminal;

use crate::check::Status;
use crate::examination::Examination;

/// Whether escape sequences for colour may be written to standard output.
#[must_use]
pub fn colour_wanted() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    std::io::stdout().is_terminal() && !no_color && !dumb
}

fn painted(text: &str, code: &str, colour: bool) -> String {
    if colour {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

fn label(status: Status, colour: bool) -> String {
    let (word, code) = match status {
        Status::Ok => ("ok       ", "32"),
        Status::NotTried => ("not tried", "36"),
        Status::Warn => ("warn     ", "33"),
        Status::Fail => ("fail     ", "31;1"),
    };
    painted(word, code, colour)
}

/// Columns before a check's name: the widest label and two spaces.
const LABEL_COLUMNS: usize = 11;
/// Narrower than this a text is not wrapped: it would be one word a line.
const LEAST_COLUMNS: usize = 20;
/// Most columns of a table. Chosen: longer lines are hard to read, and few terminals are wider.
pub const TABLE_COLUMNS: usize = 100;

/// How checks are shown.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Why good results matter, too.
    pub explain: bool,
    /// With colours.
    pub colour: bool,
    /// How many columns there are; `None` keeps each text on its line, as scripts want it.
    pub columns: Option<usize>,
}

impl Look {
    /// Text alone, as scripts get it.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self {
        explain: false,
        colour: false,
        columns: None,
    };

    /// For standard output as it is.
    #[must_use]
    pub fn of_stdout(explain: bool) -> Self {
        let size = terminal_size::terminal_size_of(std::io::stdout());
        Self {
            explain,
            colour: colour_wanted(),
            columns: size.map(|(width, _)| usize::from(width.0)),
        }
    }

    /// The same for tables: at most [`TABLE_COLUMNS`], in a file too.
    #[must_use]
    pub fn for_tables(self) -> Self {
        let columns = self.columns.unwrap_or(TABLE_COLUMNS).min(TABLE_COLUMNS);
        Self {
            columns: Some(columns),
            ..self
        }
    }
}

/// All checks with one line each, those that need something with reasons and advice below, and the
/// summary.
#[must_use]
pub fn examination(found: &Examination, look: Look) -> String {
    let names = found.checks.iter().map(|check| check.name.chars().count());
    let indent = LABEL_COLUMNS + names.max().unwrap_or(0) + 2;
    let mut text = String::new();
    for check in &found.checks {
        let label = label(check.status, look.colour);
        let width = indent - LABEL_COLUMNS - 2;
        let value = wrapped(&check.value, indent, look.columns);
        let _ = writeln!(text, "{label}  {:width$}  {value}", check.name);
        let why = if check.is_wrong() || look.explain {
            check.why.as_str()
        } else {
            ""
        };
        for (word, said) in [
            ("limit", check.limit.as_str()),
            ("why", why),
            ("fix", &check.fix),
            ("try", &check.how),
        ] {
            if !said.is_empty() {
                let said = wrapped(said, indent + 6, look.columns);
                let word = painted(&format!("{word:5}"), "2", look.colour);
                let _ = writeln!(text, "{:indent$}{word} {said}", "");
            }
        }
    }
    let _ = writeln!(text, "\n{}", wrapped(&found.summary(), 0, look.columns));
    text
}

/// The text with line breaks between words so that it keeps within the columns, indented from its
/// second line on.
fn wrapped(text: &str, indent: usize, columns: Option<usize>) -> String {
    let Some(room) = columns
        .map(|columns| columns.saturating_sub(indent))
        .filter(|room| *room >= LEAST_COLUMNS)
    else {
        return text.to_owned();
    };
    let mut lines = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > room {
            let _ = write!(lines, "\n{:indent$}", "");
            used = 0;
        } else if used > 0 {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += length;
    }
    lines
}

/// A heading and rows of cells, columns aligned. The last cell of a row goes on below itself where
/// the look has no room for it. Words, and so paths without blanks, are never broken.
#[must_use]
pub fn table(heading: &str, rows: &[Vec<String>], look: Look) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(|column| widest(rows, column)).collect();
    let mut text = format!("{}\n", painted(heading, "1", look.colour));
    for row in rows {
        let mut line = String::from("  ");
        let (last, others) = row
            .split_last()
            .map_or(("", row.as_slice()), |(last, others)| {
                (last.as_str(), others)
            });
        for (cell, &width) in others.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        let indent = line.chars().count();
        line.push_str(&wrapped(last, indent, look.columns));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn widest(rows: &[Vec<String>], column: usize) -> usize {
    rows.iter()
        .filter_map(|row| row.get(column))
        .map(|cell| cell.chars().count())
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Check;

    fn found() -> Examination {
        Examination::of(vec![
            Check::ok("clock", "tsc", "cheap clock"),
            Check::ok("long name", "bad", "it matters")
                .but(Status::Warn, "do this")
                .limited_by("4 wanted"),
            Check::ok("hosts", "none named", "others").not_tried("name one"),
        ])
    }

    #[test]
    fn good_checks_take_one_line_and_others_say_what_to_do() {
        let text = examination(&found(), Look::PLAIN);
        let expected = "\
ok         clock      tsc
warn       long name  bad
                      limit 4 wanted
                      why   it matters
                      fix   do this
not tried  hosts      none named
                      try   name one

";
        assert_eq!(text, format!("{expected}{}\n", found().summary()));
        assert!(!text.contains('\x1b'));
        let explain = Look {
            explain: true,
            ..Look::PLAIN
        };
        assert!(examination(&found(), explain).contains("why   cheap clock"));
        let colour = Look {
            colour: true,
            ..Look::PLAIN
        };
        assert!(examination(&found(), colour).contains("\x1b[33mwarn     \x1b[0m"));
    }

    #[test]
    fn a_terminal_is_not_overrun_and_a_file_keeps_its_lines() {
        let long = "word ".repeat(40);
        let check =
            Check::ok("long name", long.trim_end(), "so").but(Status::Warn, long.trim_end());
        let found = Examination::of(vec![check]);
        let narrow = Look {
            columns: Some(60),
            ..Look::PLAIN
        };
        let text = examination(&found, narrow);
        for line in text.lines() {
            assert!(line.chars().count() <= 60, "{line}");
        }
        let words = |text: &str| text.matches("word").count();
        assert_eq!(words(&text), 80);
        // Below its value and its advice the text goes on where it began.
        assert!(text.contains(&format!("\n{:22}word", "")), "{text}");
        assert!(text.contains(&format!("\n{:28}word", "")), "{text}");
        assert_eq!(examination(&found, Look::PLAIN).lines().count(), 5);
        let tiny = Look {
            columns: Some(8),
            ..Look::PLAIN
        };
        assert_eq!(examination(&found, tiny), examination(&found, Look::PLAIN));
    }

    #[test]
    fn columns_of_a_table_line_up() {
        let rows = [
            vec!["a".to_owned(), "long".to_owned()],
            vec!["bbb".to_owned(), "x".to_owned()],
        ];
        assert_eq!(
            table("head", &rows, Look::PLAIN),
            "head\n  a    long\n  bbb  x\n"
        );
    }

    #[test]
    fn the_last_cell_of_a_row_goes_on_below_itself() {
        let cells = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [
            cells(["name", "one two three four five six"]),
            cells(["", "/a/path/that/has/no/place/to/be/broken"]),
        ];
        let narrow = Look {
            columns: Some(28),
            ..Look::PLAIN
        };
        assert_eq!(
            table("head", &rows, narrow),
            "head\n  name  one two three four\n        five six\n        \
             /a/path/that/has/no/place/to/be/broken\n"
        );
        let wide = Look {
            columns: Some(300),
            ..Look::PLAIN
        };
        assert_eq!(Look::PLAIN.for_tables().columns, Some(TABLE_COLUMNS));
        assert_eq!(wide.for_tables().columns, Some(TABLE_COLUMNS));
        assert_eq!(narrow.for_tables().columns, Some(28));
    }
}
