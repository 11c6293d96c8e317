// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sizes of memory, as a user writes them. A field of `job.rs`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::node::shortened;

/// The units, each 1024 times the one before.
const UNITS: [(char, u64); 4] = [
    ('k', 1 << 10),
    ('m', 1 << 20),
    ('g', 1 << 30),
    ('t', 1 << 40),
];

/// The largest size in MiB, 1024 TiB: more than any machine has. Chosen.
pub(crate) const MIB_MOST: u32 = 1 << 30;
const BYTES_MOST: u64 = (MIB_MOST as u64) << 20;

/// The size of `/dev/shm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ShmSize {
    /// In kibibytes: at least 1.
    kib: u64,
    /// Whether the job also runs where the host refuses this size (`try:`).
    pub is_best_effort: bool,
}

impl ShmSize {
    /// A size of so many MiB; `None` for 0, and for more than 1024 TiB.
    #[must_use]
    pub fn of_mib(mib: u64) -> Option<Self> {
        let kib = mib.checked_mul(1 << 10)?;
        let is_possible = (1..=BYTES_MOST >> 10).contains(&kib);
        is_possible.then_some(Self {
            kib,
            is_best_effort: false,
        })
    }

    /// The size in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.kib << 10
    }
}

impl FromStr for ShmSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (is_best_effort, size) = match text.strip_prefix("try:") {
            Some(size) => (true, size),
            None => (false, text),
        };
        let lower = size.to_ascii_lowercase();
        let digits = lower.trim_end_matches(|one: char| one.is_ascii_alphabetic());
        let shown = shortened(text);
        let refuse = |what: &str| Err(format!("`{shown}` {what}"));
        let number = digits
            .parse::<u64>()
            .ok()
            .filter(|_| !digits.starts_with('+'));
        let unit = lower[digits.len()..]
            .trim_end_matches('b')
            .trim_end_matches('i');
        let unit = match (number, unit.chars().next()) {
            (Some(_), None) => {
                return refuse("has no unit; write 64m for 64 MiB, 4g for 4 GiB");
            }
            (Some(_), Some(letter)) if unit.len() == 1 => {
                UNITS.iter().find(|(known, _)| *known == letter)
            }
            _ => None,
        };
        let (Some(number), Some(&(_, bytes))) = (number, unit) else {
            return refuse("is no size; write a whole number and k, m, g or t, as in 4g or try:4g");
        };
        match number.checked_mul(bytes) {
            Some(bytes) if (1..=BYTES_MOST).contains(&bytes) => Ok(Self {
                kib: bytes >> 10,
                is_best_effort,
            }),
            _ => refuse("is not possible; a size is from 1k to 1024t"),
        }
    }
}

impl TryFrom<String> for ShmSize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ShmSize> for String {
    fn from(size: ShmSize) -> Self {
        size.to_string()
    }
}

/// In the largest unit in which the number is whole.
impl fmt::Display for ShmSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |&&(_, bytes): &&(char, u64)| self.bytes().is_multiple_of(bytes);
        let (unit, bytes) = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[0]);
        let prefix = if self.is_best_effort { "try:" } else { "" };
        write!(f, "{prefix}{}{unit}", self.bytes() / bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written_in_their_units() {
        for (text, bytes, written) in [
            ("4g", 4 << 30, "4g"),
            ("4096m", 4 << 30, "4g"),
            ("4GiB", 4 << 30, "4g"),
            ("64MB", 64 << 20, "64m"),
            ("1536m", 1536 << 20, "1536m"),
            ("1k", 1 << 10, "1k"),
            ("1024t", 1 << 50, "1024t"),
            ("try:2g", 2 << 30, "try:2g"),
        ] {
            let size: ShmSize = text.parse().unwrap();
            assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, written));
        }
        assert_eq!(ShmSize::of_mib(4096).unwrap().to_string(), "4g");
        assert!(ShmSize::of_mib(0).is_none() && ShmSize::of_mib(u64::MAX).is_none());
    }

    #[test]
    fn other_words_are_refused_with_what_to_write() {
        for (text, said) in [
            ("4096", "has no unit"),
            ("try:64", "has no unit"),
            ("4x", "is no size"),
            ("4ggg", "is no size"),
            ("1.5g", "is no size"),
            ("-4g", "is no size"),
            ("+4g", "is no size"),
            ("g", "is no size"),
            ("", "is no size"),
            ("big", "is no size"),
            ("4é", "is no size"),
            ("0g", "from 1k to 1024t"),
            ("1025t", "from 1k to 1024t"),
            ("18446744073709551615t", "from 1k to 1024t"),
        ] {
            let answer = text.parse::<ShmSize>().unwrap_err();
            assert!(
                answer.contains(said) && answer.contains(text),
                "{text}: {answer}"
            );
        }
    }
}
