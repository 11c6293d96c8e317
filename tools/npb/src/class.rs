// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The classes: sizes and published results. All of them are specified by the NAS Parallel
//! Benchmarks (NPB 3.4).
//!
//! Read by ft and is.

use std::fmt;

use clap::ValueEnum;

/// How large a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum Class {
    /// The sample.
    S,
    /// The size for a workstation of the 1990s.
    W,
    /// The smallest standard size.
    A,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The problem of IS.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// How many keys.
    pub count: usize,
    /// Keys are below this power of two.
    pub range_log2: u32,
    /// Buckets that keys are sorted into before they are sent.
    pub buckets: usize,
    /// Places of the keys whose ranks are verified in each iteration.
    pub places: [usize; 5],
    /// Their ranks but for the iteration's number, see [`Keys::rank`].
    pub ranks: [i64; 5],
    /// The first so many of them grow with the iterations, the others fall.
    growing: usize,
    /// What is added to growing and to falling ranks.
    offsets: [i64; 2],
}

impl Keys {
    /// The rank that a verified key has in an iteration, from 1.
    pub fn rank(&self, which: usize, iteration: i64) -> i64 {
        if which < self.growing {
            self.ranks[which] + iteration + self.offsets[0]
        } else {
            self.ranks[which] - iteration + self.offsets[1]
        }
    }
}

impl Class {
    /// Points of FT in x, y and z.
    pub fn grid(self) -> [usize; 3] {
        match self {
            Self::S => [64, 64, 64],
            Self::W => [128, 128, 32],
            Self::A => [256, 256, 128],
        }
    }

    /// FT's checksums, one for each iteration: real and imaginary part.
    pub fn checksums(self) -> [(f64, f64); 6] {
        match self {
            Self::S => [
                (5.546087004964E+02, 4.845363331978E+02),
                (5.546385409189E+02, 4.865304269511E+02),
                (5.546148406171E+02, 4.883910722336E+02),
                (5.545423607415E+02, 4.901273169046E+02),
                (5.544255039624E+02, 4.917475857993E+02),
                (5.542683411902E+02, 4.932597244941E+02),
            ],
            Self::W => [
                (5.673612178944E+02, 5.293246849175E+02),
                (5.631436885271E+02, 5.282149986629E+02),
                (5.594024089970E+02, 5.270996558037E+02),
                (5.560698047020E+02, 5.260027904925E+02),
                (5.530898991250E+02, 5.249400845633E+02),
                (5.504159734538E+02, 5.239212247086E+02),
            ],
            Self::A => [
                (5.046735008193E+02, 5.114047905510E+02),
                (5.059412319734E+02, 5.098809666433E+02),
                (5.069376896287E+02, 5.098144042213E+02),
                (5.077892868474E+02, 5.101336130759E+02),
                (5.085233095391E+02, 5.104914655194E+02),
                (5.091487099959E+02, 5.107917842803E+02),
            ],
        }
    }

    /// The problem of IS.
    pub fn keys(self) -> Keys {
        match self {
            Self::S => Keys {
                count: 1 << 16,
                range_log2: 11,
                buckets: 1 << 9,
                places: [48_427, 17_148, 23_627, 62_548, 4431],
                ranks: [0, 18, 346, 64_917, 65_463],
                growing: 3,
                offsets: [0, 0],
            },
            Self::W => Keys {
                count: 1 << 20,
                range_log2: 16,
                buckets: 1 << 10,
                places: [357_773, 934_767, 875_723, 898_999, 404_505],
                ranks: [1249, 11_698, 1_039_987, 1_043_896, 1_048_018],
                growing: 2,
                offsets: [-2, 0],
            },
            Self::A => Keys {
                count: 1 << 23,
                range_log2: 19,
                buckets: 1 << 10,
                places: [2_112_377, 662_041, 5_336_171, 3_642_833, 4_250_760],
                ranks: [104, 17_523, 123_928, 8_288_932, 8_388_264],
                growing: 3,
                offsets: [-1, 1],
            },
        }
    }
}
