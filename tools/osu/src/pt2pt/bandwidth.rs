// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `bw`: rank 0 sends windows of messages, each answered once; and what it shares with `bibw`.
//!
//! Made by catalogue, called by runner. Rank 0's clock counts. MB = 10^6 bytes.

use super::Partner;
use super::window::{Ways, Window};
use crate::agree;
use crate::format::Row;
use crate::options::Settings;
use crate::runner::Benchmark;
use crate::timing::{self, Plan, Resize};
use weft_mpi::{Communicator, Result};
use weft_statistics as statistics;

/// A repeated window of messages, and the samples it leaves.
struct Bandwidth<'a, E> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    window: E,
    directions: f64,
    samples: Vec<f64>,
}

/// Makes it.
///
/// # Errors
/// None; the signature is the catalogue's.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
) -> Result<Box<dyn Benchmark + 'a>> {
    Ok(make_with(world, settings, Ways::One))
}

/// Makes it for one direction or both.
pub(super) fn make_with<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    ways: Ways,
) -> Box<dyn Benchmark + 'a> {
    let window = Window::new(world, settings, Partner::of_two(world), ways);
    boxed(world, settings, window, ways.count())
}

/// The benchmark around a window of `settings.window` messages in each of `directions`.
pub(crate) fn boxed<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    window: impl Resize + 'a,
    directions: usize,
) -> Box<dyn Benchmark + 'a> {
    Box::new(Bandwidth {
        world,
        settings,
        window,
        directions: directions as f64,
        samples: Vec::new(),
    })
}

/// MB in one window: `count` messages of a size in each of some directions. MB = 10^6 bytes.
pub(crate) fn megabytes(size_bytes: usize, count: usize, directions: f64) -> f64 {
    size_bytes as f64 / 1e6 * count as f64 * directions
}

impl<E: Resize> Benchmark for Bandwidth<'_, E> {
    fn measure(&mut self, size_bytes: usize, plan: &Plan) -> Result<Row> {
        self.samples.reserve(plan.iterations);
        self.window.resize(size_bytes)?;
        self.world.barrier()?;
        let timing = timing::time(&mut self.window, plan, &mut self.samples)?;
        let megabytes = megabytes(size_bytes, self.settings.window, self.directions);
        for sample in &mut self.samples {
            *sample = megabytes / *sample;
        }
        let tails = agree::own_tails(&mut self.samples, self.settings);
        Ok(Row {
            size_bytes,
            value: megabytes * plan.iterations as f64 / timing.seconds,
            iterations: plan.iterations,
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
        assert_eq!(megabytes(1_000_000, 64, 1.0), 64.0);
        assert_eq!(megabytes(500, 10, 2.0), 0.01);
    }
}
