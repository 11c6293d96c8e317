// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A percentile of -z. Called by options; format prints it, agree computes with it.
//!
//! OSU takes whole numbers. With a hundred thousand round trips the slowest ones that matter lie
//! beyond the 99th percentile, so up to three decimals are allowed. Whole numbers are read and
//! printed as OSU does.

use std::fmt;
use std::str::FromStr;

/// Parts of one percent.
const PARTS: u32 = 1000;

/// 1 to 100 percent in steps of a thousandth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u32);

impl Percent {
    /// Its value, 1 to 100.
    pub fn value(self) -> f64 {
        f64::from(self.0) / f64::from(PARTS)
    }
}

impl FromStr for Percent {
    type Err = ();

    /// `99`, `p99` or `99.95`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim_start_matches(['p', 'P']);
        let (whole, parts) = text.split_once('.').unwrap_or((text, "0"));
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(parts) || parts.len() > 3 {
            return Err(());
        }
        let whole: u32 = whole.parse().map_err(drop)?;
        let parts: u32 = format!("{parts:0<3}").parse().map_err(drop)?;
        let sum = whole
            .checked_mul(PARTS)
            .and_then(|sum| sum.checked_add(parts));
        let sum = sum.filter(|sum| (PARTS..=100 * PARTS).contains(sum));
        sum.map(Self).ok_or(())
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, parts) = (self.0 / PARTS, self.0 % PARTS);
        if parts == 0 {
            return write!(f, "{whole}");
        }
        write!(f, "{whole}.{}", format!("{parts:03}").trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_print_as_they_were_written() {
        for text in ["1", "50", "99", "99.9", "99.95", "99.999", "100", "1.001"] {
            assert_eq!(text.parse::<Percent>().unwrap().to_string(), text);
        }
        assert_eq!("P99.90".parse::<Percent>().unwrap().to_string(), "99.9");
        assert!(("99.9".parse::<Percent>().unwrap().value() - 99.9).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_percentile_is_refused() {
        for text in [
            "",
            "0",
            "0.5",
            "100.001",
            "101",
            "99.",
            ".9",
            "99.9999",
            "-1",
            "1e1",
            "nan",
            "99,9",
            "99999999999",
        ] {
            assert_eq!(text.parse::<Percent>(), Err(()), "{text}");
        }
    }
}
