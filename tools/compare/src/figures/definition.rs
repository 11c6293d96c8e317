// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The definition of a figure: the published effect, its claims, and what is measured here.
//!
//! Filled by list; read by all other modules of figures.

use super::claim::Claim;

/// The definition of a figure.
#[derive(Debug)]
pub struct Definition {
    /// Its name on the command line and of its file.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Where the effect was published, by its title.
    pub source: &'static str,
    /// What was compared there, and what is here.
    pub shown: &'static str,
    /// The published numbers, each with what is measured here in its place.
    pub claims: &'static [Claim],
    /// What is done here.
    pub subject: Subject,
}

/// Where its numbers come from.
#[derive(Debug)]
pub enum Subject {
    /// A benchmark with several settings of the provider.
    Measured(Measured),
    /// A whole program with several settings of the provider.
    Whole(Whole),
    /// A kernel of the NAS Parallel Benchmarks with several settings; its case is the class.
    Kernel(Whole),
    /// `weft bench ior` with growing numbers of processes.
    Files,
    /// Two hosts in network namespaces, where root is; a scenario of `weft sim` elsewhere.
    Hosts(Fault, Simulated),
    /// A scenario of `weft sim`.
    Simulated(Simulated),
}

/// What happens to the network between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Every path drops packets at random.
    Loss,
    /// The path that carries most drops everything for a while.
    Hole,
}

/// A scenario of `weft sim` with its options.
#[derive(Clone, Copy, Debug)]
pub struct Simulated(pub &'static [&'static str]);

/// A benchmark with several settings of the provider.
#[derive(Debug)]
pub struct Measured {
    /// As `weft bench` knows it.
    pub benchmark: &'static str,
    /// What it measures.
    pub label: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Sizes in bytes, as -m takes them.
    pub sizes: &'static str,
    /// Sizes for a quick look.
    pub quick_sizes: &'static str,
    /// First the one that the effect speaks for; the others are what it is divided by.
    pub variants: &'static [Variant],
}

/// A whole program with several settings.
#[derive(Debug)]
pub struct Whole {
    /// As `weft bench app` knows it.
    pub program: &'static str,
    /// Its case, where it has several.
    pub case: &'static str,
    /// The unit of the figure that counts.
    pub unit: &'static str,
    /// First the one that the effect speaks for.
    pub variants: &'static [Variant],
}

/// A setting.
#[derive(Debug)]
pub struct Variant {
    /// In words.
    pub name: &'static str,
    /// As `weft run --transport` knows it.
    pub transport: &'static str,
    /// Variables of the ranks.
    pub environment: &'static [&'static str],
}
