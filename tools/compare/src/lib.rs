// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Comparisons: the same programs over several MPIs and transports, in turns. The report gives the
//! confidence of each figure.
//!
//! - [`compare`]: the benchmarks of weft-osu
//! - [`app`]: whole programs: HPC Challenge, LAMMPS, GROMACS, OpenFOAM
//! - [`figures`]: published effects, measured again, on one page
//! - [`error`]: why something cannot be measured, read or written
//! - `exit`: why a comparison ends before anything runs
//! - `job`: a job of `weft run` that `compare` or `app` waits for
//! - [`testbed`]: hosts in network namespaces of this machine, for `compare` and `figures`
#![forbid(unsafe_code)]

pub mod app;
pub mod compare;
pub mod error;
mod exit;
pub mod figures;
mod job;
pub mod testbed;
