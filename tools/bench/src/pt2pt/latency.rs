// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `latency`: half the time of a message to the other rank and back.
//!
//! Made by catalogue, called by runner. Rank 0's clock counts. With -f, the extremes are those of single iterations: with one
//! pair there is nothing else to spread over.

use super::Partner;
use super::ping_pong::PingPong;
use crate::agree;
use crate::format::Row;
use crate::options::Settings;
use crate::runner::Benchmark;
use crate::statistics;
use crate::timing::{self, Plan};
use weft_mpi::{Communicator, Result};

struct Latency<'a> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    ping_pong: PingPong<'a>,
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
    let partner = Partner {
        rank: world.rank(),
        other: 1 - world.rank(),
        leads: world.rank() == 0,
    };
    let ping_pong = PingPong::new(world, settings.kind, partner, settings.max_bytes);
    Ok(Box::new(Latency {
        world,
        settings,
        ping_pong,
        samples: Vec::new(),
    }))
}

impl Benchmark for Latency<'_> {
    fn measure(&mut self, size_bytes: usize, plan: &Plan) -> Result<Row> {
        self.samples.reserve(plan.iterations);
        self.ping_pong.resize(size_bytes);
        self.world.barrier()?;
        let timing = timing::time(&mut self.ping_pong, plan, &mut self.samples)?;
        for sample in &mut self.samples {
            *sample *= 1e6 / 2.0;
        }
        let tails = agree::own_tails(&mut self.samples, self.settings);
        Ok(Row {
            size_bytes,
            value: timing.seconds * 1e6 / (2.0 * plan.iterations as f64),
            extremes: self
                .samples
                .first()
                .copied()
                .zip(self.samples.last().copied()),
            iterations: plan.iterations,
            passed: agree::passed(self.world, timing.mismatches, self.settings)?,
            median: statistics::nearest_rank(&self.samples, 50),
            tails,
            ..Row::default()
        })
    }
}
