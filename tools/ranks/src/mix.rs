// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Spreads a number over all 64 bits, so that different numbers give contents that differ
//! everywhere.
//!
//! Called by the contents of messages (osu) and of files (ior). Source: the finaliser of SplitMix64
//! (Steele, Lea, Flood 2014).

/// 2^64 divided by the golden ratio: odd, with well-spread bits (specified by SplitMix64).
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Every bit of `value` changes about half of the result's. No two values have one result.
#[must_use]
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(STEP);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_of_splitmix64_come_out() {
        // Vigna's splitmix64.c, from the states 0 and 1234567.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
    }
}
