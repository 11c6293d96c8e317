// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two kernels by name, and the numbers of ranks that each can run on.
//!
//! Called by everything else in this crate and by `weft bench`.

use crate::class::Class;

/// Which kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Fourier transforms.
    Ft,
    /// Sorting.
    Is,
}

impl Kernel {
    /// By its name on the command line.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ft" => Some(Self::Ft),
            "is" => Some(Self::Is),
            _ => None,
        }
    }

    /// As the benchmark calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ft => "FT",
            Self::Is => "IS",
        }
    }

    /// The most ranks that a class can be divided among.
    pub fn most_ranks(self, class: Class) -> usize {
        match self {
            Self::Ft => class.grid().iter().copied().min().unwrap_or(1),
            // Specified: 512 or 1024 buckets, of which each rank needs several.
            Self::Is => class.keys().buckets / 4,
        }
    }
}
