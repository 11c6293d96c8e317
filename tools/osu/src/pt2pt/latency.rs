// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `latency`: half the time of a message to the other rank and back.
//!
//! Made by pt2pt, called by runner. Rank 0's clock counts. With -f, the minimum and the maximum are
//! those of single iterations, because one pair has no other spread.

use crate::agree;
use crate::benchmark::{Benchmark, Row};
use crate::options::Settings;
use crate::timing::{self, Repetitions, Resize};
use weft_mpi::{Communicator, Result};
use weft_statistics as statistics;

/// A round trip of two ranks, and the samples it leaves.
pub(super) struct Latency<'a, E> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    round_trip: E,
    samples: Vec<f64>,
}

impl<'a, E: Resize> Latency<'a, E> {
    /// Of a round trip, whose time is halved.
    pub(super) fn new(world: &'a Communicator<'a>, settings: &'a Settings, round_trip: E) -> Self {
        Self {
            world,
            settings,
            round_trip,
            samples: Vec::new(),
        }
    }
}

impl<E: Resize> Benchmark for Latency<'_, E> {
    fn measure(&mut self, size_bytes: usize, repetitions: &Repetitions) -> Result<Row> {
        self.samples.reserve(repetitions.iterations);
        self.round_trip.resize(size_bytes)?;
        self.world.barrier()?;
        let timing = timing::time(&mut self.round_trip, repetitions, &mut self.samples)?;
        for sample in &mut self.samples {
            *sample *= 1e6 / 2.0;
        }
        Ok(Row {
            size_bytes,
            value: timing.seconds * 1e6 / (2.0 * repetitions.iterations as f64),
            iterations: repetitions.iterations,
            passed: agree::passed(self.world, timing.mismatches, self.settings)?,
            ..spread_of(&mut self.samples, self.settings)
        })
    }
}

/// What a row says about its samples, which are microseconds; sorts them.
pub(crate) fn spread_of(samples: &mut [f64], settings: &Settings) -> Row {
    let tails = agree::own_tails(samples, settings);
    Row {
        extremes: samples.first().copied().zip(samples.last().copied()),
        median: statistics::nearest_rank(samples, 50.0),
        tails,
        ..Row::default()
    }
}
