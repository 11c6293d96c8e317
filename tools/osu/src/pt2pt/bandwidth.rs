// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `bw`: rank 0 sends windows of messages, and each window is answered once. `bibw`: both ranks
//! send windows at once, and the figure counts both directions.
//!
//! Made by pt2pt, called by runner. Rank 0's clock counts. MB = 10^6 bytes.

use crate::agree;
use crate::benchmark::{Benchmark, Row};
use crate::description::Directions;
use crate::options::Settings;
use crate::timing::{self, Repetitions, Resize};
use weft_mpi::{Communicator, Result};
use weft_statistics as statistics;

/// A repeated window of messages, and the samples it leaves.
pub(super) struct Bandwidth<'a, E> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    window: E,
    directions: Directions,
    samples: Vec<f64>,
}

impl<'a, E: Resize> Bandwidth<'a, E> {
    /// Of a window of `settings.window` messages in each direction.
    pub(super) fn new(
        world: &'a Communicator<'a>,
        settings: &'a Settings,
        window: E,
        directions: Directions,
    ) -> Self {
        Self {
            world,
            settings,
            window,
            directions,
            samples: Vec::new(),
        }
    }
}

/// MB in one window: `count` messages of a size in each of some directions. MB = 10^6 bytes.
pub(crate) fn megabytes(size_bytes: usize, count: usize, directions: Directions) -> f64 {
    size_bytes as f64 / 1e6 * count as f64 * directions.count() as f64
}

impl<E: Resize> Benchmark for Bandwidth<'_, E> {
    fn measure(&mut self, size_bytes: usize, repetitions: &Repetitions) -> Result<Row> {
        self.samples.reserve(repetitions.iterations);
        self.window.resize(size_bytes)?;
        self.world.barrier()?;
        let timing = timing::time(&mut self.window, repetitions, &mut self.samples)?;
        let megabytes = megabytes(size_bytes, self.settings.window, self.directions);
        for sample in &mut self.samples {
            *sample = megabytes / *sample;
        }
        let tails = agree::own_tails(&mut self.samples, self.settings);
        Ok(Row {
            size_bytes,
            value: megabytes * repetitions.iterations as f64 / timing.seconds,
            iterations: repetitions.iterations,
            passed: agree::passed(self.world, timing.mismatches, self.settings)?,
            median: statistics::nearest_rank(&self.samples, 50.0),
            tails,
            ..Row::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_counts_every_message_in_every_direction_in_millions_of_bytes() {
        assert_eq!(megabytes(1_000_000, 64, Directions::One), 64.0);
        assert_eq!(megabytes(500, 10, Directions::Both), 0.01);
    }
}
