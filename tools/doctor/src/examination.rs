// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All checks together: how many are of which state, the verdict, and the exit code that says the
//! same.
//!
//! Called by `lib.rs`; `text.rs` shows it to people.

use serde::{Deserialize, Serialize};

use crate::check::{Check, Status};

/// How many checks are of each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Tried and good.
    pub ok: usize,
    /// Not tried.
    pub not_tried: usize,
    /// Could be better.
    pub warn: usize,
    /// Weft does not work.
    pub fail: usize,
}

/// What `weft doctor --json` prints.
#[derive(Debug, Serialize)]
pub struct Examination {
    /// Weft's version.
    pub weft: &'static str,
    /// The worst result; what was not tried is no result.
    pub status: Status,
    /// The exit code of `weft doctor`.
    pub exit_code: u8,
    /// How many checks are of each state.
    pub counts: Counts,
    /// All of them.
    pub checks: Vec<Check>,
}

impl Examination {
    /// Judges all checks together.
    #[must_use]
    pub fn of(checks: Vec<Check>) -> Self {
        let mut counts = Counts::default();
        for check in &checks {
            *match check.status {
                Status::Ok => &mut counts.ok,
                Status::NotTried => &mut counts.not_tried,
                Status::Warn => &mut counts.warn,
                Status::Fail => &mut counts.fail,
            } += 1;
        }
        let (status, exit_code) = match counts {
            Counts { fail: 1.., .. } => (Status::Fail, 2),
            Counts { warn: 1.., .. } => (Status::Warn, 1),
            _ => (Status::Ok, 0),
        };
        Self {
            weft: env!("CARGO_PKG_VERSION"),
            status,
            exit_code,
            counts,
            checks,
        }
    }

    /// The last line for people.
    #[must_use]
    pub fn summary(&self) -> String {
        let Counts {
            ok,
            not_tried,
            warn,
            fail,
        } = self.counts;
        let verdict = match self.status {
            Status::Fail => "Weft does not work here",
            Status::Warn => "Weft works here, but not as well as it could",
            Status::Ok | Status::NotTried => "Weft works here",
        };
        format!(
            "{} checks: {ok} ok, {warn} could be better, {fail} failed, {not_tried} not tried. \
             {verdict}.",
            self.checks.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examined(statuses: &[Status]) -> Examination {
        let check = |status: &Status| Check {
            status: *status,
            ..Check::ok("a", "1", "because")
        };
        Examination::of(statuses.iter().map(check).collect())
    }

    #[test]
    fn the_worst_result_decides_and_what_was_not_tried_is_none() {
        let (ok, not_tried) = (Status::Ok, Status::NotTried);
        for (statuses, code, status) in [
            (vec![], 0, ok),
            (vec![ok], 0, ok),
            (vec![ok, not_tried], 0, ok),
            (vec![Status::Warn, not_tried, ok], 1, Status::Warn),
            (vec![Status::Warn, Status::Fail, ok], 2, Status::Fail),
        ] {
            let found = examined(&statuses);
            assert_eq!((found.exit_code, found.status), (code, status));
        }
    }

    #[test]
    fn text_json_and_exit_code_say_the_same() {
        let statuses = [Status::Ok, Status::Warn, Status::NotTried, Status::Ok];
        let found = examined(&statuses);
        assert_eq!(
            found.summary(),
            "4 checks: 2 ok, 1 could be better, 0 failed, 1 not tried. \
             Weft works here, but not as well as it could."
        );
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(
            (&json["exit_code"], &json["status"]),
            (&1.into(), &"warn".into())
        );
        assert_eq!(json["counts"]["not_tried"], 1);
        assert_eq!(json["checks"][2]["status"], "not_tried");
    }
}
