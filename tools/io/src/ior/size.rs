// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sizes as IOR writes and reads them: suffixes k, m, g and t are powers of 1024.
//!
//! Called by options and text.

/// Bytes in one of each unit.
pub const UNITS: [(char, u64); 4] = [
    ('k', 1 << 10),
    ('m', 1 << 20),
    ('g', 1 << 30),
    ('t', 1 << 40),
];

/// Reads `2000m`; `None` if it is no size.
pub fn parse(text: &str) -> Option<u64> {
    let last = text.chars().last()?.to_ascii_lowercase();
    match UNITS.iter().find(|(unit, _)| *unit == last) {
        Some((_, bytes)) => text[..text.len() - 1]
            .parse::<u64>()
            .ok()?
            .checked_mul(*bytes),
        None => text.parse().ok(),
    }
}

/// `50 MiB`, `1.95 GiB`, `47008 bytes`: the largest unit that is not above the size, with two
/// digits unless it is whole.
pub fn describe(bytes: u64) -> String {
    let names = ["KiB", "MiB", "GiB", "TiB"];
    let fitting = UNITS
        .iter()
        .zip(names)
        .rev()
        .find(|((_, unit), _)| bytes >= *unit);
    match fitting {
        Some(((_, unit), name)) if bytes.is_multiple_of(*unit) => {
            format!("{} {name}", bytes / unit)
        }
        Some(((_, unit), name)) => format!("{:.2} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1024_in_either_case() {
        assert_eq!(parse("2000m"), Some(2_097_152_000));
        assert_eq!(parse("1K"), Some(1024));
        assert_eq!(parse("3g"), Some(3 << 30));
        assert_eq!(parse("47008"), Some(47_008));
        for bad in ["", "m", "1.5m", "-1", "10x", "99999999999999t"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_are_described_by_their_largest_unit() {
        assert_eq!(describe(50 << 20), "50 MiB");
        assert_eq!(describe(2_097_152_000), "1.95 GiB");
        assert_eq!(describe(128_000 << 20), "125 GiB");
        assert_eq!(describe(47_008), "45.91 KiB");
        assert_eq!(describe(100), "100 bytes");
    }
}
