// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which ranks share a cache, as they tell each other in the agreement: the shape of their team
//! (docs/collectives.md, clause 4.12). Called by agreement.

use weft_collectives::Shape;
use weft_os::cpu;

use crate::asked::Asked;

/// Ranks from which on they meet by cache domain. Chosen by counting lines (docs/adr/0027): the
/// machines that we measured on have one domain.
const LEAST_RANKS: usize = 64;

/// Set in the word of a rank whose domain was asked for, and counts at any number of ranks.
const IS_ASKED: u64 = 1 << 32;

/// What a rank tells of its domain: a number for it, from 1 on; 0 if it has none, since the rank
/// may run on several processors, so that `processor` is none, or Linux does not say. Setup.
pub fn own_word(rank: usize, asked: Asked, processor: Option<u32>) -> u64 {
    if let Some(ranks) = asked.domain_ranks {
        return IS_ASKED | (rank / ranks + 1) as u64;
    }
    let domain = processor.and_then(cpu::cache_domain);
    domain.map_or(0, |domain| u64::from(domain) + 1)
}

/// The shape of ranks that told these words; alike on all of them.
pub fn shape(words: &[u64], shares_cores: bool) -> Shape {
    let is_asked = words.iter().all(|word| word & IS_ASKED != 0);
    let is_worth_it = words.len() >= LEAST_RANKS && !shares_cores && !words.contains(&0);
    let mut shape = Shape::flat(words.len(), shares_cores);
    if is_asked || is_worth_it {
        shape.domains = words.iter().map(|&word| word as u32).collect();
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ranks_that_know_their_domains_meet_by_them_and_few_if_asked() {
        let of = |words: &[u64]| shape(words, false).domains;
        let many: Vec<u64> = (0..64).map(|rank| 1 + rank / 8).collect();
        assert_eq!(of(&many)[..9], [1, 1, 1, 1, 1, 1, 1, 1, 2]);
        assert_eq!(shape(&many, true), Shape::flat(64, true));
        assert_eq!(of(&many[..63]), [0; 63]);
        let unknown: Vec<u64> = (0..64).map(|rank| rank / 8).collect();
        assert_eq!(of(&unknown), [0; 64]);
        let asked = Asked {
            always: true,
            ranks: 3,
            domain_ranks: Some(2),
        };
        let told: Vec<u64> = (0..3).map(|rank| own_word(rank, asked, None)).collect();
        assert_eq!(of(&told), [1, 1, 2]);
    }
}
