// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Seeded pseudo-random numbers for path orders; not for secrets. xorshift64* (Vigna 2016). Called
//! by path.

/// A sequence that depends on nothing but its seed, so that runs can be repeated.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Any seed will do.
    pub fn new(seed: u64) -> Self {
        let mixed = (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Self((mixed ^ mixed >> 31).max(1))
    }

    /// The next number.
    #[inline]
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, which is not 0.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    /// Brings a list into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for index in (1..list.len()).rev() {
            let other = self.below(index as u64 + 1) as usize;
            list.swap(index, other);
        }
    }
}
