// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `mbw_mr`: the total bandwidth of several pairs at once, and the messages per second.
//!
//! Made by pt2pt, called by runner. The time is the mean over the sending ranks.

use super::pairs::Pairs;
use super::window::Window;
use crate::agree;
use crate::benchmark::{Benchmark, Row};
use crate::description::Directions;
use crate::options::Settings;
use crate::timing::Repetitions;
use weft_mpi::{Communicator, Operation, Result};

pub(super) struct MessageRate<'a>(Pairs<'a, Window<'a>>);

impl<'a> MessageRate<'a> {
    /// # Errors
    /// What the split of the communicator reports.
    pub(super) fn new(world: &'a Communicator<'a>, settings: &'a Settings) -> Result<Self> {
        let window = |partner| Window::new(world, settings, partner, Directions::One);
        Pairs::new(world, settings, |partner| partner.leads, window).map(Self)
    }
}

impl Benchmark for MessageRate<'_> {
    fn measure(&mut self, size_bytes: usize, repetitions: &Repetitions) -> Result<Row> {
        let pairs = &mut self.0;
        let timing = pairs.time(size_bytes, repetitions)?;
        let mut row = Row {
            size_bytes,
            iterations: repetitions.iterations,
            passed: agree::passed(pairs.world, timing.mismatches, pairs.settings)?,
            ..Row::default()
        };
        if pairs.is_timed {
            let senders = &pairs.timed;
            let count = senders.size() as f64;
            let sum = weft_ranks::agree::over_ranks(senders, timing.seconds, Operation::Sum)?;
            let messages = count * pairs.settings.window as f64;
            let rate = messages * repetitions.iterations as f64 / (sum / count);
            row.value = rate * size_bytes as f64 / 1e6;
            row.rate = Some(rate);
            for sample in &mut pairs.samples {
                *sample = messages * size_bytes as f64 / 1e6 / *sample;
            }
            row.tails = agree::tails(senders, &mut pairs.samples, pairs.settings)?;
            row.median = agree::median(senders, &mut pairs.samples)?;
        }
        Ok(row)
    }
}
