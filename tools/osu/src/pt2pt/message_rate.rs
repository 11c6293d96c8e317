// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `mbw_mr`: the bandwidth of several pairs at once, added up, and the messages per second that it means.
//!
//! Made by catalogue, called by runner. The time is the mean over the sending ranks.

use super::Partner;
use super::window::{Ways, Window};
use crate::agree;
use crate::format::Row;
use crate::options::Settings;
use crate::runner::Benchmark;
use crate::timing::{self, Plan, Resize, Timing};
use weft_mpi::{Communicator, Operation, Result};

struct MessageRate<'a> {
    world: &'a Communicator<'a>,
    /// The sending ranks; the others have a communicator of their own.
    senders: Communicator<'a>,
    settings: &'a Settings,
    leads: bool,
    window: Option<Window<'a>>,
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
    let leads = partner.is_some_and(|partner| partner.leads);
    let senders = world.split(i32::from(!leads), world.rank() as i32)?;
    let window = partner.map(|partner| Window::new(world, settings, partner, Ways::One));
    Ok(Box::new(MessageRate {
        world,
        senders,
        settings,
        leads,
        window,
        samples: Vec::new(),
    }))
}

impl Benchmark for MessageRate<'_> {
    fn measure(&mut self, size_bytes: usize, plan: &Plan) -> Result<Row> {
        self.samples.reserve(plan.iterations);
        let mut timing = Timing::default();
        if let Some(window) = &mut self.window {
            window.resize(size_bytes)?;
        }
        self.world.barrier()?;
        if let Some(window) = &mut self.window {
            timing = timing::time(window, plan, &mut self.samples)?;
        }
        let mut row = Row {
            size_bytes,
            iterations: plan.iterations,
            ..Row::default()
        };
        row.passed = agree::passed(self.world, timing.mismatches, self.settings)?;
        if self.leads {
            let pairs = self.senders.size() as f64;
            let messages = pairs * self.settings.window as f64;
            let seconds =
                weft_ranks::agree::over_ranks(&self.senders, timing.seconds, Operation::Sum)?
                    / pairs;
            let rate = messages * plan.iterations as f64 / seconds;
            row.value = rate * size_bytes as f64 / 1e6;
            row.rate = Some(rate);
            for sample in &mut self.samples {
                *sample = messages * size_bytes as f64 / 1e6 / *sample;
            }
            row.tails = agree::tails(&self.senders, &mut self.samples, self.settings)?;
            row.median = agree::median(&self.senders, &mut self.samples)?;
        }
        Ok(row)
    }
}
