// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One check: what was tried, what came of it, why it matters and what to do.
//!
//! Made by every file of this crate that tries something; shown by `text.rs` and `examination.rs`.
//! docs/doctor.md lists the states and all checks.

use std::ffi::OsStr;

use serde::{Deserialize, Serialize};

/// What came of a check. Ordered from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Tried, and as it should be.
    Ok,
    /// Not tried: nobody knows. No failure.
    NotTried,
    /// Tried: Weft works, but slower or for fewer MPIs than it could.
    Warn,
    /// Tried: Weft does not work.
    Fail,
}

/// One check and its result. Empty texts have nothing to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was tried, in one to three words.
    pub name: String,
    /// What came of it.
    pub status: Status,
    /// What was found; of what was not tried, why not.
    pub value: String,
    /// Of what is wrong: how much or what it must be, and the limit that is in the way.
    pub limit: String,
    /// Why it matters.
    pub why: String,
    /// Of what is wrong: how to change it.
    pub fix: String,
    /// Of what was not tried: how to try it.
    pub how: String,
}

impl Check {
    /// A check whose result is good.
    #[must_use]
    pub fn ok(name: &str, value: impl Into<String>, why: &str) -> Self {
        Self {
            name: name.to_owned(),
            status: Status::Ok,
            value: value.into(),
            limit: String::new(),
            why: why.to_owned(),
            fix: String::new(),
            how: String::new(),
        }
    }

    /// The same check with a worse result, and how to change that.
    #[must_use]
    pub fn but(mut self, status: Status, fix: impl Into<String>) -> Self {
        self.status = status;
        self.fix = fix.into();
        debug_assert!(!self.fix.is_empty(), "{} gives no remedy", self.name);
        self
    }

    /// Worse if `bad`, else as it is.
    #[must_use]
    pub fn but_if(self, bad: bool, status: Status, fix: &str) -> Self {
        if bad { self.but(status, fix) } else { self }
    }

    /// With the limit that something wrong has met; nothing where the result is good.
    #[must_use]
    pub fn limited_by(mut self, limit: impl Into<String>) -> Self {
        if self.is_wrong() {
            self.limit = limit.into();
        }
        self
    }

    /// The same check, not tried: its value says why not.
    #[must_use]
    pub fn not_tried(mut self, how: impl Into<String>) -> Self {
        self.status = Status::NotTried;
        self.how = how.into();
        self
    }

    /// Whether something is to be done.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        self.status > Status::NotTried
    }
}

/// A word of a command in a remedy, as a shell reads it.
pub(crate) fn shell_word(word: impl AsRef<OsStr>) -> String {
    weft_job::shell::quote(word.as_ref())
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
impl Check {
    /// Fails the test unless the check came out like this, and names this remedy.
    #[track_caller]
    pub(crate) fn assert_wrong(&self, status: Status, remedy: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(!self.value.is_empty() && !self.why.is_empty(), "{self:?}");
        assert!(self.fix.contains(remedy), "no \"{remedy}\" in {self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_named_only_where_it_is_in_the_way() {
        let ok = Check::ok("a", "1", "because");
        assert_eq!(ok.clone().limited_by("2 wanted").limit, "");
        let warn = ok.clone().but(Status::Warn, "do this");
        assert_eq!(warn.limited_by("2 wanted").limit, "2 wanted");
        assert_eq!(ok.clone().but_if(false, Status::Fail, "no"), ok);
    }

    #[test]
    fn what_was_not_tried_is_neither_good_nor_wrong() {
        let check = Check::ok("a", "nobody is there", "because").not_tried("call somebody");
        assert_eq!(check.status, Status::NotTried);
        assert!(!check.is_wrong() && check.fix.is_empty());
        assert_eq!(check.how, "call somebody");
    }
}
