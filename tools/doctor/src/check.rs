// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One check: what was looked at, what was found, whether that is good, why it matters and how to change it.
//!
//! Made by every file of this crate that looks at something; shown by `text.rs` or as JSON by `lib.rs`.

use serde::Serialize;

/// How good what was found is. Ordered from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Weft works, but slower or for fewer MPIs than it could.
    Warn,
    /// Weft does not work.
    Fail,
}

/// One check and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at, in one to three words.
    pub name: String,
    /// How good it is.
    pub status: Status,
    /// What was found.
    pub value: String,
    /// Why it matters.
    pub why: String,
    /// How to change it; empty where nothing needs to change.
    pub fix: String,
}

impl Check {
    /// A check whose result is good.
    #[must_use]
    pub fn ok(name: &str, value: impl Into<String>, why: &str) -> Self {
        Self {
            name: name.to_owned(),
            status: Status::Ok,
            value: value.into(),
            why: why.to_owned(),
            fix: String::new(),
        }
    }

    /// The same check with a worse result.
    #[must_use]
    pub fn but(mut self, status: Status, fix: impl Into<String>) -> Self {
        self.status = status;
        self.fix = fix.into();
        self
    }

    /// Worse if `bad`, else as it is.
    #[must_use]
    pub fn but_if(self, bad: bool, status: Status, fix: &str) -> Self {
        if bad { self.but(status, fix) } else { self }
    }
}

/// The worst of all results: `Ok` for no checks at all.
#[must_use]
pub fn worst(checks: &[Check]) -> Status {
    checks
        .iter()
        .map(|check| check.status)
        .max()
        .unwrap_or(Status::Ok)
}

/// The exit code of `weft doctor`: 0 all well, 1 something could be better, 2 Weft does not work here.
#[must_use]
pub fn exit_code(worst: Status) -> u8 {
    match worst {
        Status::Ok => 0,
        Status::Warn => 1,
        Status::Fail => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_result_decides_the_exit_code() {
        let ok = Check::ok("a", "1", "because");
        let warn = ok.clone().but(Status::Warn, "do this");
        let fail = ok.clone().but_if(true, Status::Fail, "do that");
        assert_eq!(exit_code(worst(&[])), 0);
        assert_eq!(exit_code(worst(std::slice::from_ref(&ok))), 0);
        assert_eq!(exit_code(worst(&[warn.clone(), ok.clone()])), 1);
        assert_eq!(exit_code(worst(&[warn, fail, ok.clone()])), 2);
        assert_eq!(ok.clone().but_if(false, Status::Fail, "no"), ok);
    }
}
