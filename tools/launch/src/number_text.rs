// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers as people read them. Called by `report.rs`, `collective_calls.rs` and whoever says what
//! they counted.

/// What there is of each, most first; nothing if there is nothing.
pub(crate) fn in_parentheses<'a>(counts: impl Iterator<Item = (&'a String, u64)>) -> String {
    let mut by_count: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
    by_count.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let parts: Vec<String> = by_count
        .iter()
        .map(|(name, count)| format!("{} {}", name.replace('_', " "), grouped(*count)))
        .collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!(" ({})", parts.join(", ")),
    }
}

/// A number with commas between thousands.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes in the largest unit that leaves at least 1, with one digit after the point.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "one digit after the point is shown"
)]
pub fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {unit}")
    }
}
