// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words of a command line as IOR and mdtest spell them: letters that combine, values in the forms `-b 1m`, `-b1m` and `-b=1m`.
//!
//! Called by the options of ior and mdtest, which know the letters. Other benchmarks take theirs by clap.

use std::ops::RangeInclusive;

use weft_ranks::refusal::Refusal;

/// A refusal that says what is wrong, and how to put it right.
pub(crate) fn bad(text: String) -> Refusal {
    Refusal::BadUsage(text)
}

/// The value of a letter: what stands behind it in the same word, else the next word.
///
/// # Errors
/// If there is none.
pub(crate) fn value_of<'a>(
    letter: char,
    after: &str,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<String, Refusal> {
    let value = match after.strip_prefix('=').unwrap_or(after) {
        "" => rest.next().cloned(),
        joined => Some(joined.to_owned()),
    };
    value.ok_or_else(|| bad(format!("-{letter} needs a value; see -h")))
}

/// The name of a long option, and the value if it stands in the same word.
pub(crate) fn split_long(long: &str) -> (&str, Option<String>) {
    match long.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (long, None),
    }
}

/// A whole number that the option takes.
///
/// # Errors
/// With the option, the value and what is allowed.
pub(crate) fn whole(text: &str, option: &str, range: RangeInclusive<u64>) -> Result<u64, Refusal> {
    let value = text.trim().parse().ok();
    value.filter(|value| range.contains(value)).ok_or_else(|| {
        let most = if *range.end() == u64::MAX {
            "or more".to_owned()
        } else {
            format!("to {}", range.end())
        };
        bad(format!(
            "{option} is '{text}'; it must be a whole number, {} {most}",
            range.start()
        ))
    })
}
