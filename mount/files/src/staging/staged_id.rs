// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The id of a staged file, which stands in the metadata of the object that it becomes. So the
//! mount knows its own objects, also those of which it did not hear. docs/mount-stage.md specifies
//! it; [`crate::staging::content`] holds one.

use std::fmt;

use crate::staging::stage::new_id;

/// The id of what is published next.
#[derive(Debug, Clone)]
pub struct StagedId {
    text: String,
    /// The log says that the program has written what it wanted, up to here. An object may have the
    /// id from then on.
    is_whole: bool,
}

impl Default for StagedId {
    /// Of a file that nobody has written yet.
    fn default() -> Self {
        Self::found(&new_id())
    }
}

impl StagedId {
    /// As a log names it.
    pub fn found(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_whole: false,
        }
    }

    /// As the object's metadata have it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the program has written what it wanted, up to here.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The program has written what it wanted, up to here.
    pub fn note_whole(&mut self) {
        self.is_whole = true;
    }

    /// The file changes. If it was whole, what was published of it until now may be in the store
    /// though nobody heard of it, and what is published from now on has another id.
    pub fn note_change(&mut self) {
        if std::mem::take(&mut self.is_whole) {
            let (first, count) = self.text.split_once('-').unwrap_or((&self.text, "0"));
            let count = count.parse().unwrap_or(0_u64) + 1;
            self.text = format!("{first}-{count}");
        }
    }

    /// Whether an object with the id `other` was published of the file before it changed.
    pub fn was_before(&self, other: &str) -> bool {
        let first = |id: &str| id.split('-').next().map(str::to_owned);
        other != self.text && first(other) == first(&self.text)
    }
}

impl fmt::Display for StagedId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_changes_with_the_first_change_after_the_file_was_whole() {
        let mut id = StagedId::found("abc");
        id.note_change();
        assert_eq!(id.as_str(), "abc", "no object can have it yet");
        for wanted in ["abc-1", "abc-2"] {
            id.note_whole();
            id.note_change();
            id.note_change();
            assert_eq!(id.as_str(), wanted);
            assert!(!id.is_whole());
        }
        let is_earlier =
            ["abc", "abc-1", "abc-2", "abd", "abd-1"].map(|other| id.was_before(other));
        assert_eq!(is_earlier, [true, true, false, false, false]);
    }
}
