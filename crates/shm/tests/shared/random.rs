// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random numbers of tests: the seed is printed, and WEFT_TEST_SEED repeats it. Used by the tests
//! that draw lengths, patterns and moments. xorshift64* (Vigna 2016), as in crates/srd, which shm
//! does not import.

const SEED_VARIABLE: &str = "WEFT_TEST_SEED";

pub struct Random(u64);

impl Random {
    /// From the seed of the environment, or from a new one.
    pub fn seeded() -> Self {
        let given = std::env::var(SEED_VARIABLE).ok().map(|text| {
            text.parse()
                .unwrap_or_else(|_| panic!("{SEED_VARIABLE}={text} is no number of 64 bits"))
        });
        let seed = given.unwrap_or_else(|| weft_os::process::random_u64().expect("random bytes"));
        println!("{SEED_VARIABLE}={seed}");
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((u128::from(number) * u128::from(end)) >> 64) as u64
    }
}
