// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The trait of every benchmark: measures one size at a time and returns a row.
//!
//! The files of pt2pt, collective and one_sided implement [`Benchmark`]; runner calls it through
//! pace, and format prints the rows.

use crate::timing::Repetitions;
use weft_mpi::Result;

/// A benchmark with the memory it needs.
pub trait Benchmark {
    /// Measures one size on all ranks. Rank 0's row is the one that counts, except for `passed`, on
    /// which all agree.
    ///
    /// # Errors
    /// What MPI reports.
    fn measure(&mut self, size_bytes: usize, repetitions: &Repetitions) -> Result<Row>;
}

/// One size's result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Message size.
    pub size_bytes: usize,
    /// Microseconds or MB/s.
    pub value: f64,
    /// The same from the median block of iterations, which a few interruptions do not move; only in
    /// JSON.
    pub median: f64,
    /// Messages per second, where measured.
    pub rate: Option<f64>,
    /// Least and greatest latency in microseconds, where asked for.
    pub extremes: Option<(f64, f64)>,
    /// Timed iterations.
    pub iterations: usize,
    /// Processor time of all ranks for a message, or for an operation of a collective, in
    /// microseconds, warm-up included; only where --size-time limits a size, and only in JSON.
    pub cpu_us: Option<f64>,
    /// Result of the validation, when validating.
    pub passed: Option<bool>,
    /// Percentiles, in the order of `Shown::tails`.
    pub tails: Vec<f64>,
    /// What a non-blocking collective's time is made of.
    pub overlap: Option<Overlap>,
}

/// What a non-blocking collective's time is made of: means over ranks and iterations in
/// microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overlap {
    /// The work.
    pub compute: f64,
    /// The call that starts the collective.
    pub start: f64,
    /// The calls of MPI_Test.
    pub test: f64,
    /// MPI_Wait.
    pub wait: f64,
    /// The collective by itself, and its least and greatest mean of one rank.
    pub communication: f64,
    /// Least.
    pub least_communication: f64,
    /// Greatest.
    pub greatest_communication: f64,
    /// How much of the communication the work has hidden, in percent.
    pub percent: f64,
}
