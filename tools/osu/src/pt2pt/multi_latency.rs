// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `multi_lat`: the latency of several pairs at once, averaged over all ranks that take part.
//!
//! Made by pt2pt, called by runner.

use super::pairs::Pairs;
use super::ping_pong::PingPong;
use crate::agree;
use crate::benchmark::{Benchmark, Row};
use crate::options::Settings;
use crate::timing::Repetitions;
use weft_mpi::{Communicator, Result};

pub(super) struct MultiLatency<'a>(Pairs<'a, PingPong<'a>>);

impl<'a> MultiLatency<'a> {
    /// # Errors
    /// What the split of the communicator reports.
    pub(super) fn new(world: &'a Communicator<'a>, settings: &'a Settings) -> Result<Self> {
        let ping_pong = |partner| PingPong::new(world, settings, partner);
        Pairs::new(world, settings, |_| true, ping_pong).map(Self)
    }
}

impl Benchmark for MultiLatency<'_> {
    fn measure(&mut self, size_bytes: usize, repetitions: &Repetitions) -> Result<Row> {
        let pairs = &mut self.0;
        let timing = pairs.time(size_bytes, repetitions)?;
        for sample in &mut pairs.samples {
            *sample *= 1e6 / 2.0;
        }
        let own = timing.seconds * 1e6 / (2.0 * repetitions.iterations as f64);
        let spread = weft_ranks::agree::spread(&pairs.timed, own)?;
        let tails = agree::tails(&pairs.timed, &mut pairs.samples, pairs.settings)?;
        Ok(Row {
            size_bytes,
            value: spread.mean,
            extremes: Some((spread.least, spread.greatest)),
            iterations: repetitions.iterations,
            passed: agree::passed(pairs.world, timing.mismatches, pairs.settings)?,
            tails,
            median: agree::median(&pairs.timed, &mut pairs.samples)?,
            ..Row::default()
        })
    }
}
