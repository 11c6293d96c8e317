// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The NAS Parallel Benchmarks' generator: x' = 5^13 x mod 2^46, as fractions of 2^46.
//!
//! Called by ft and is. Source: Bailey and others, "The NAS Parallel Benchmarks", RNR-94-007,
//! section 2.3. The source uses double precision. Whole numbers of 64 bits give the same values,
//! since products are needed only modulo 2^46.

/// Specified: 5^13.
pub const MULTIPLIER: u64 = 1_220_703_125;
/// Specified: where FT and IS begin.
pub const SEED: u64 = 314_159_265;
const MASK: u64 = (1 << 46) - 1;
const FRACTION: f64 = 1.0 / (1_u64 << 46) as f64;

/// A place in the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence from the seed on, without its first numbers.
    pub fn after(skipped: u64) -> Self {
        let (mut factor, mut power, mut left) = (1_u64, MULTIPLIER, skipped);
        while left > 0 {
            if left & 1 == 1 {
                factor = factor.wrapping_mul(power) & MASK;
            }
            power = power.wrapping_mul(power) & MASK;
            left >>= 1;
        }
        Self {
            state: factor.wrapping_mul(SEED) & MASK,
        }
    }

    /// The next number, above 0 and below 1.
    #[inline]
    pub fn draw(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(MULTIPLIER) & MASK;
        self.state as f64 * FRACTION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipping_leads_to_where_drawing_does() {
        let mut drawn = Random::after(0);
        for count in 1..200 {
            let value = drawn.draw();
            assert!(value > 0.0 && value < 1.0);
            assert_eq!(Random::after(count), drawn, "{count}");
        }
    }
}
