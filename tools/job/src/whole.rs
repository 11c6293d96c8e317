// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whole numbers within bounds. Fields of `job.rs`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A whole number from `LEAST` to `MOST`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "u32")]
pub struct Whole<const LEAST: u32, const MOST: u32>(u32);

impl<const LEAST: u32, const MOST: u32> Whole<LEAST, MOST> {
    /// This number, where it is within the bounds.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        (LEAST..=MOST).contains(&number).then_some(Self(number))
    }

    /// The least of them.
    #[must_use]
    pub fn least() -> Self {
        Self(LEAST)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl<const LEAST: u32, const MOST: u32> TryFrom<String> for Whole<LEAST, MOST> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let number = text.parse().ok().and_then(Self::new);
        number.ok_or_else(|| {
            let shown = crate::node::shortened(&text);
            format!("{shown} is not possible; it must be a whole number from {LEAST} to {MOST}")
        })
    }
}

impl<const LEAST: u32, const MOST: u32> From<Whole<LEAST, MOST>> for u32 {
    fn from(whole: Whole<LEAST, MOST>) -> Self {
        whole.0
    }
}

impl<const LEAST: u32, const MOST: u32> fmt::Display for Whole<LEAST, MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_within_the_bounds_are_read() {
        let read = |text: &str| Whole::<1, 9>::try_from(text.to_owned());
        assert_eq!(read("1").map(Whole::get), Ok(1));
        assert_eq!(read("9").map(Whole::get), Ok(9));
        for bad in ["0", "10", "-1", "1.5", "4294967296", "1e3", "two", ""] {
            let said = read(bad).unwrap_err();
            assert!(
                said.starts_with(bad) && said.contains("from 1 to 9"),
                "{said}"
            );
        }
    }
}
