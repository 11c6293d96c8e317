// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The benchmarks of `weft bench` with the options and output of the OSU micro-benchmarks.
//!
//! They run inside an MPI job, on the MPI that started it (weft-mpi finds it). So one binary
//! measures all MPIs, and their figures are comparable. Options, defaults and output lines are
//! those of OSU 7.5, so today's parsers (ReFrame, Ramble) can read them. The code is written from
//! the description of what those benchmarks do.
//!
//! In the order of a run:
//! - [`description`]: what a benchmark is: name, title, family, defaults; [`catalogue`]: the list
//! - [`options`]: the command line, checked, as [`options::Settings`]
//! - [`runner`]: initialise MPI, measure each size, print, agree on the exit code
//! - [`benchmark`]: what each does for one size. [`pt2pt`]: one small file each; [`collective`]:
//!   every collective in every form; [`one_sided`]: windows; [`startup`]: init and hello
//! - `pace`: fewer iterations where a size would take too long
//! - [`timing`]: the timed loops, the same for all; [`pattern`]: message contents that depend on
//!   size, iteration and rank
//! - `agree`: figures of a row that the ranks compute together
//! - `format`: rows as OSU 7.5 text, OSU 5 text or JSON lines
//!
//! What is measured: the plain loop is timed in 25 blocks of iterations, with a clock reading
//! between them. Options that need single iterations (-c, -z, -f) time each one; this adds the cost
//! of a clock reading (some 20 ns) to each. The clock is the system's monotonic one and not
//! MPI_Wtime, so that all MPIs are measured with the same clock.
#![forbid(unsafe_code)]

mod agree;
pub mod benchmark;
pub mod catalogue;
pub mod collective;
mod cpu;
pub mod description;
mod format;
pub mod one_sided;
pub mod options;
mod pace;
pub mod pattern;
pub mod pt2pt;
pub mod runner;
pub mod startup;
pub mod timing;
