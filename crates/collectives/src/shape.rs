// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the algorithms know of the machine: which ranks share a cache, and whether ranks share
//! cores. Made by whoever makes the team, from what the system says; all ranks must hand in the
//! same.

/// The ranks' places on the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// The cache domain (the ranks under one third-level cache, say) of each rank, by any numbers.
    /// Short calls go by domain where there are several (docs/collectives.md, clause 4.12).
    pub domains: Vec<u32>,
    /// Whether ranks outnumber the cores that they may run on.
    pub oversubscribed: bool,
}

impl Shape {
    /// All ranks in one cache domain.
    pub fn flat(ranks: usize, oversubscribed: bool) -> Self {
        Self {
            domains: vec![0; ranks],
            oversubscribed,
        }
    }
}
