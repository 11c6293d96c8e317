// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Text for people: aligned columns, colour on a terminal that wants it.
//!
//! Called by `lib.rs` with checks and by `info.rs` with tables. NO_COLOR (no-color.org) turns colour off.

use std::fmt::Write;
use std::io::IsTerminal;

use crate::check::{Check, Status};

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
        Status::Ok => ("ok  ", "32"),
        Status::Warn => ("warn", "33"),
        Status::Fail => ("fail", "31;1"),
    };
    painted(word, code, colour)
}

/// All checks, one line each; reasons and fixes below those that are not good, or below all with `explain`.
#[must_use]
pub fn checks(checks: &[Check], explain: bool, colour: bool) -> String {
    let width = checks
        .iter()
        .map(|check| check.name.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let _ = writeln!(
            text,
            "{}  {:width$}  {}",
            label(check.status, colour),
            check.name,
            check.value
        );
        let indent = " ".repeat(6 + width + 2);
        if explain || check.status != Status::Ok {
            let _ = writeln!(
                text,
                "{indent}{} {}",
                painted("why", "2", colour),
                check.why
            );
        }
        if check.status != Status::Ok {
            let _ = writeln!(
                text,
                "{indent}{} {}",
                painted("fix", "2", colour),
                check.fix
            );
        }
    }
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let (warnings, failures) = (count(Status::Warn), count(Status::Fail));
    let _ = match (warnings, failures) {
        (0, 0) => writeln!(text, "\nall {} checks are well", checks.len()),
        _ => writeln!(
            text,
            "\n{} checks: {warnings} could be better, {failures} failed",
            checks.len()
        ),
    };
    text
}

/// A heading and rows of cells, columns aligned.
#[must_use]
pub fn table(heading: &str, rows: &[Vec<String>], colour: bool) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(|column| widest(rows, column)).collect();
    let mut text = format!("{}\n", painted(heading, "1", colour));
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"))
            .collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
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

    #[test]
    fn good_checks_take_one_line_and_bad_ones_say_why_and_how() {
        let list = [
            Check::ok("clock", "tsc", "cheap clock"),
            Check::ok("long name", "bad", "it matters").but(Status::Warn, "do this"),
        ];
        let text = checks(&list, false, false);
        let expected = "ok    clock      tsc\nwarn  long name  bad\n                 why it matters\n                 fix do this\n\n2 checks: 1 could be better, 0 failed\n";
        assert_eq!(text, expected);
        assert!(checks(&list, true, false).contains("why cheap clock"));
        assert!(checks(&list, false, true).contains("\x1b[33mwarn\x1b[0m"));
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn columns_of_a_table_line_up() {
        let rows = [
            vec!["a".to_owned(), "long".to_owned()],
            vec!["bbb".to_owned(), "x".to_owned()],
        ];
        assert_eq!(table("head", &rows, false), "head\n  a    long\n  bbb  x\n");
    }
}
