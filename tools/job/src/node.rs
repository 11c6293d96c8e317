// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a YAML or JSON file holds, with the place of each value in the file.
//!
//! Made by `parse.rs`; read by `decode.rs`, by `import` and by `write.rs`.

use std::fmt;

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Where it begins.
    pub place: Place,
    /// What it is.
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A text, number, truth value or nothing.
    Scalar(Scalar),
    /// Values in order.
    List(Vec<Node>),
    /// Values by name, in the order of the file; no name stands twice.
    Map(Vec<Entry>),
}

/// A text as it is written, its escapes resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    /// The text.
    pub text: String,
    /// Written without quotes: it may stand for a number, a truth value or nothing.
    pub is_plain: bool,
}

impl Scalar {
    /// Whether it stands for nothing: `null`, `~` or no word at all (YAML 1.2.2, 10.3.2).
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.is_plain && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }

    /// The truth value that it stands for.
    #[must_use]
    pub fn truth(&self) -> Option<bool> {
        match self.text.as_str() {
            "true" | "True" | "TRUE" if self.is_plain => Some(true),
            "false" | "False" | "FALSE" if self.is_plain => Some(false),
            _ => None,
        }
    }
}

/// One named value of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Where the name begins.
    pub place: Place,
    /// The value.
    pub node: Node,
}

impl Node {
    /// The value of this name, where this is a map that has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Node> {
        let entry = self.entries()?.iter().find(|entry| entry.name == name);
        entry.map(|entry| &entry.node)
    }

    /// The named values, where this is a map.
    #[must_use]
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// What it is, for an error: the text of a scalar, or that it is a list or a map.
    #[must_use]
    pub fn in_words(&self) -> String {
        match &self.value {
            Value::Scalar(scalar) if scalar.is_null() => "nothing".to_owned(),
            Value::Scalar(scalar) => format!("`{}`", shortened(&scalar.text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        }
    }
}

/// The most characters of a value that an error shows. Chosen: a line of a terminal.
const SHOWN: usize = 80;

/// A text as an error shows it: on one line, and not longer than one.
#[must_use]
pub fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).flat_map(visible).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

/// A text as it is, but on one line: nothing in it is a command to a terminal.
pub(crate) fn on_one_line(text: &str) -> String {
    text.chars().flat_map(visible).collect()
}

/// A character, escaped where a terminal would take it as a command.
fn visible(one: char) -> impl Iterator<Item = char> {
    let is_hidden = one.is_control() || matches!(one, '\u{2028}' | '\u{2029}' | '\u{feff}');
    let escaped = is_hidden.then(|| one.escape_default());
    let plain = (!is_hidden).then_some(one);
    escaped.into_iter().flatten().chain(plain)
}
