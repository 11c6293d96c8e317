// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Seeds from seeds: one number for the whole run becomes one for each job, round and rank, the
//! same in every process.

use fastrand::Rng;

/// A seed for the part of a run that these numbers name.
pub fn seed_of(seed: u64, part: &[u64]) -> u64 {
    let first = |seed| Rng::with_seed(seed).u64(..);
    part.iter()
        .fold(first(seed), |seed, number| first(seed ^ first(*number)))
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
