// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Seeds from seeds: one number for the whole run becomes one for each job, round and rank, the same in every process.

/// Spreads a number over all 64 bits (the finisher of SplitMix64, Steele and others 2014).
pub fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seed for the part of a run that these numbers name.
pub fn seed_of(seed: u64, part: &[u64]) -> u64 {
    part.iter()
        .fold(mixed(seed), |seed, number| mixed(seed ^ mixed(*number)))
}

#[cfg(test)]
mod tests {
    use super::seed_of;

    #[test]
    fn parts_have_seeds_of_their_own() {
        let seeds = [
            seed_of(1, &[]),
            seed_of(1, &[0]),
            seed_of(1, &[0, 0]),
            seed_of(1, &[0, 1]),
            seed_of(1, &[1, 0]),
            seed_of(2, &[0]),
        ];
        for (at, seed) in seeds.iter().enumerate() {
            assert!(!seeds[..at].contains(seed));
        }
    }
}
