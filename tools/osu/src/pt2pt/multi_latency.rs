// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `multi_lat`: the latency of several pairs at once, averaged over all ranks that take part.
//!
//! Made by catalogue, called by runner.

use super::Partner;
use super::ping_pong::PingPong;
use crate::agree;
use crate::format::Row;
use crate::options::Settings;
use crate::runner::Benchmark;
use crate::timing::{self, Plan, Resize, Timing};
use weft_mpi::{Communicator, Result};

struct MultiLatency<'a> {
    world: &'a Communicator<'a>,
    /// The ranks that take part; the others have a communicator of their own, which they do not use.
    players: Communicator<'a>,
    settings: &'a Settings,
    ping_pong: Option<PingPong<'a>>,
    samples: Vec<f64>,
}

/// Makes it.
///
/// # Errors
/// What the split of the communicator reports.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
) -> Result<Box<dyn Benchmark + 'a>> {
    let partner = Partner::of(world, settings);
    let players = world.split(i32::from(partner.is_none()), world.rank() as i32)?;
    let ping_pong =
        partner.map(|partner| PingPong::new(world, settings.kind, partner, settings.max_bytes));
    Ok(Box::new(MultiLatency {
        world,
        players,
        settings,
        ping_pong,
        samples: Vec::new(),
    }))
}

impl Benchmark for MultiLatency<'_> {
    fn measure(&mut self, size_bytes: usize, plan: &Plan) -> Result<Row> {
        self.samples.reserve(plan.iterations);
        let mut timing = Timing::default();
        if let Some(ping_pong) = &mut self.ping_pong {
            ping_pong.resize(size_bytes)?;
            self.players.barrier()?;
            timing = timing::time(ping_pong, plan, &mut self.samples)?;
            for sample in &mut self.samples {
                *sample *= 1e6 / 2.0;
            }
        }
        let own = timing.seconds * 1e6 / (2.0 * plan.iterations as f64);
        let (least, mean, greatest) = weft_ranks::agree::spread(&self.players, own)?;
        let tails = agree::tails(&self.players, &mut self.samples, self.settings)?;
        Ok(Row {
            size_bytes,
            value: mean,
            extremes: Some((least, greatest)),
            iterations: plan.iterations,
            passed: agree::passed(self.world, timing.mismatches, self.settings)?,
            tails,
            median: agree::median(&self.players, &mut self.samples)?,
            ..Row::default()
        })
    }
}
