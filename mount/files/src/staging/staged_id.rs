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
            let (first, count) = parts(&self.text);
            self.text = format!("{first}-{}", count + 1);
        }
    }

    /// Whether an object with the id `other` was published of the file before it changed. A log
    /// that lost its end may be of a file that was published again since: that one is not before
    /// it.
    pub fn was_before(&self, other: &str) -> bool {
        let (own, other) = (parts(&self.text), parts(other));
        other.0 == own.0 && other.1 < own.1
    }
}

/// What all ids of a staged file have in common, and how often it had changed.
fn parts(id: &str) -> (&str, u64) {
    let (first, count) = id.split_once('-').unwrap_or((id, "0"));
    (first, count.parse().unwrap_or(0))
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
            ["abc", "abc-1", "abc-2", "abc-10", "abd"].map(|other| id.was_before(other));
        assert_eq!(is_earlier, [true, true, false, false, false]);
    }
}
