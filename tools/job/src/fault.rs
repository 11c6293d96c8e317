// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is wrong with a file, and where.
//!
//! Made by every module that reads; shown by `weft run` and `weft import`.

use std::fmt;

use crate::node::{Node, Place, on_one_line};

/// Why a file is refused. Its text says what is wrong, with the value, the limit and what to do; it
/// is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file's name, once known.
    file: Option<String>,
    /// Where; none for a fault of the whole.
    place: Option<Place>,
    /// The field, as `mounts[0].target`; empty for the whole.
    field: String,
    text: String,
}

impl Fault {
    /// A fault of the whole file, until `at` and `within` say more.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            file: None,
            place: None,
            field: String::new(),
            text: text.into(),
        }
    }

    /// A value is not what is wanted in its place.
    pub(crate) fn instead(node: &Node, wanted: impl fmt::Display) -> Self {
        let found = node.in_words();
        Self::new(format!("found {found}; it must be {wanted}")).at(node.place)
    }

    /// With a place, if it has none yet: the innermost is the nearest.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = self.place.or(Some(place));
        self
    }

    /// With one more name in front of its field.
    #[must_use]
    pub fn within(mut self, name: &str) -> Self {
        let joined = !self.field.is_empty() && !self.field.starts_with('[');
        let between = if joined { "." } else { "" };
        self.field = format!("{name}{between}{}", self.field);
        self
    }

    /// The field that it is about; empty for the whole file.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// With the name of its file.
    #[must_use]
    pub fn in_file(mut self, name: &str) -> Self {
        self.file = Some(name.to_owned());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.place) {
            (Some(file), Some(place)) => write!(f, "{}, {place}: ", on_one_line(file))?,
            (Some(file), None) => write!(f, "{}: ", on_one_line(file))?,
            (None, Some(place)) => write!(f, "{place}: ")?,
            (None, None) => {}
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", on_one_line(&self.field))?;
        }
        f.write_str(&on_one_line(&self.text))
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::new(text.to_string())
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::new(crate::nearest::unknown("field of a job", field, known))
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Self::new(crate::nearest::unknown("word known here", word, known))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("`{field}` is missing; it is required here"))
    }

    fn invalid_type(found: serde::de::Unexpected<'_>, wanted: &dyn serde::de::Expected) -> Self {
        Self::new(format!("{found} is not {wanted}"))
    }
}
