// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `latency_mp`: latency while each rank has child processes. They were forked after MPI was
//! initialised, and only sleep.
//!
//! Called by pt2pt; the exchange is latency's. It shows whether an MPI and its transport still work
//! after a fork: parent and child then share memory until one of them writes, and the child
//! inherits open files.

use crate::benchmark::{Benchmark, Row};
use crate::options::Settings;
use crate::timing::Repetitions;
use weft_mpi::{Communicator, Result, SleepingChildren};

/// A benchmark beside sleeping children.
pub(super) struct Processes<B> {
    benchmark: B,
    _children: SleepingChildren,
}

impl<B> Processes<B> {
    /// Forks the children of this rank, then makes the benchmark.
    ///
    /// # Errors
    /// `Argument` when the system refuses a process.
    pub(super) fn fork(
        world: &Communicator<'_>,
        settings: &Settings,
        make: impl FnOnce() -> B,
    ) -> Result<Self> {
        let _children = SleepingChildren::fork(settings.special.helpers.of(world.rank()))?;
        Ok(Self {
            benchmark: make(),
            _children,
        })
    }
}

impl<B: Benchmark> Benchmark for Processes<B> {
    fn measure(&mut self, size_bytes: usize, repetitions: &Repetitions) -> Result<Row> {
        self.benchmark.measure(size_bytes, repetitions)
    }
}
