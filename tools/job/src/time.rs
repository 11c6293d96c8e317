// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time limits, as a user writes them. A field of `job.rs`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::node::shortened;

/// The units and their seconds, in the order in which they are written.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];

/// The longest, ten years, here and for `weft run --timeout`: far below what overflows a clock.
/// Chosen.
pub const SECONDS_MOST: u32 = 315_360_000;

/// How long a job may run: more than 0 seconds, at most ten years.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "Written")]
pub struct TimeLimit {
    seconds: f64,
}

impl TimeLimit {
    /// So many seconds, where they are possible.
    #[must_use]
    pub fn of_seconds(seconds: f64) -> Option<Self> {
        let is_possible = seconds > 0.0 && seconds <= f64::from(SECONDS_MOST);
        is_possible.then_some(Self { seconds })
    }

    /// In seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.seconds
    }
}

impl FromStr for TimeLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = text.bytes().all(|byte| b"0123456789.eE+-".contains(&byte));
        let number = text.parse::<f64>().ok().filter(|_| is_number);
        let shown = shortened(text);
        let Some(seconds) = number.or_else(|| with_units(text)) else {
            return Err(format!(
                "`{shown}` is no time; write seconds, or whole numbers with d, h, m and s, as in \
                 1h30m"
            ));
        };
        Self::of_seconds(seconds).ok_or_else(|| {
            format!("`{shown}` is not possible; a time is more than 0 and at most ten years")
        })
    }
}

/// `1h30m` in seconds: each unit once at most, the larger ones first.
fn with_units(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut sum: u64 = 0;
    for (unit, seconds) in UNITS {
        let digits = rest.find(|one: char| !one.is_ascii_digit())?;
        if let Some(behind) = rest[digits..].strip_prefix(unit) {
            let count: u64 = rest[..digits].parse().ok()?;
            sum = sum.checked_add(count.checked_mul(seconds)?)?;
            rest = behind;
        }
        if rest.is_empty() {
            return Some(sum as f64);
        }
    }
    None
}

impl TryFrom<String> for TimeLimit {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// As it is written: whole seconds without a point.
#[derive(Serialize)]
#[serde(untagged)]
enum Written {
    Whole(u64),
    Part(f64),
}

impl From<TimeLimit> for Written {
    fn from(limit: TimeLimit) -> Self {
        let is_whole = limit.seconds.fract() == 0.0;
        if is_whole {
            Self::Whole(limit.seconds as u64)
        } else {
            Self::Part(limit.seconds)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_units_are_read() {
        for (text, seconds) in [
            ("90", 90.0),
            ("0.5", 0.5),
            ("1e3", 1000.0),
            ("90s", 90.0),
            ("1h30m", 5400.0),
            ("2d", 172_800.0),
            ("1d2h3m4s", 93_784.0),
            ("90m", 5400.0),
        ] {
            assert_eq!(
                text.parse::<TimeLimit>().unwrap().seconds(),
                seconds,
                "{text}"
            );
        }
    }

    #[test]
    fn other_words_are_refused_with_what_to_write() {
        for (text, said) in [
            ("0", "more than 0"),
            ("-5", "more than 0"),
            ("0s", "more than 0"),
            ("99999d", "ten years"),
            ("1e300", "ten years"),
            ("1:30:00", "is no time"),
            ("30m1h", "is no time"),
            ("1h1h", "is no time"),
            ("h", "is no time"),
            ("1h30", "is no time"),
            ("99999999999999999999d", "is no time"),
            ("inf", "is no time"),
            ("NaN", "is no time"),
            ("soon", "is no time"),
            ("", "is no time"),
        ] {
            let answer = text.parse::<TimeLimit>().unwrap_err();
            assert!(
                answer.contains(said) && answer.contains(text),
                "{text}: {answer}"
            );
        }
    }
}
