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
use crate::statistics;
use crate::timing::{self, Plan};
use weft_mpi::{Communicator, Result};

struct Bandwidth<'a> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    window: Window<'a>,
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
    let partner = Partner {
        rank: world.rank(),
        other: 1 - world.rank(),
        leads: world.rank() == 0,
    };
    let window = Window::new(world, settings, partner, ways);
    let directions = if ways == Ways::Both { 2.0 } else { 1.0 };
    Box::new(Bandwidth {
        world,
        settings,
        window,
        directions,
        samples: Vec::new(),
    })
}

impl Benchmark for Bandwidth<'_> {
    fn measure(&mut self, size_bytes: usize, plan: &Plan) -> Result<Row> {
        self.samples.reserve(plan.iterations);
        self.window.resize(size_bytes);
        self.world.barrier()?;
        let timing = timing::time(&mut self.window, plan, &mut self.samples)?;
        let megabytes = size_bytes as f64 / 1e6 * self.settings.window as f64 * self.directions;
        for sample in &mut self.samples {
            *sample = megabytes / *sample;
        }
        let tails = agree::own_tails(&mut self.samples, self.settings);
        Ok(Row {
            size_bytes,
            value: megabytes * plan.iterations as f64 / timing.seconds,
            iterations: plan.iterations,
            passed: agree::passed(self.world, timing.mismatches, self.settings)?,
            median: statistics::nearest_rank(&self.samples, 50),
            tails,
            ..Row::default()
        })
    }
}
