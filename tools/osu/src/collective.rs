// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Benchmarks of collectives: every collective in every form. Each form has one measurement.
//!
//! Made by runner through [`make`]. A benchmark is a prepared collective of weft-mpi and the
//! [`contents`] that it moves. Blocking and persistent ones are timed here, non-blocking ones by
//! [`overlap`].

mod compute;
mod contents;
pub(crate) mod exchange;
pub mod neighbours;
mod overlap;
pub mod sums;

use crate::agree;
use crate::benchmark::{Benchmark, Row};
use crate::options::Settings;
use crate::timing::{self, Repetitions, Resize};
use exchange::Exchange;
use weft_mpi::{Collective, Communicator, Form, Result};

/// Makes the benchmark of a collective in a form. `world` has neighbours when the collective needs
/// them.
///
/// # Errors
/// `Unusable` when this MPI lacks the function; what MPI reports.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    which: Collective,
    form: Form,
) -> Result<Box<dyn Benchmark + 'a>> {
    let exchange = Exchange::new(world, settings, which, form)?;
    if form == Form::Nonblocking {
        return Ok(overlap::boxed(world, settings, exchange));
    }
    Ok(Box::new(Timed {
        world,
        settings,
        exchange,
        samples: Vec::new(),
    }))
}

/// A blocking or persistent collective: the mean over the ranks of each rank's mean time.
struct Timed<'a> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    exchange: Exchange<'a>,
    samples: Vec<f64>,
}

impl Benchmark for Timed<'_> {
    fn measure(&mut self, size_bytes: usize, repetitions: &Repetitions) -> Result<Row> {
        self.samples.reserve(repetitions.iterations);
        self.exchange.resize(size_bytes)?;
        let timing = timing::time_with_barriers(
            self.world,
            &mut self.exchange,
            repetitions,
            &mut self.samples,
        )?;
        let spread = weft_ranks::agree::spread(
            self.world,
            timing.seconds * 1e6 / repetitions.iterations as f64,
        )?;
        for sample in &mut self.samples {
            *sample *= 1e6;
        }
        let tails = agree::tails(self.world, &mut self.samples, self.settings)?;
        Ok(Row {
            size_bytes,
            value: spread.mean,
            extremes: Some((spread.least, spread.greatest)),
            iterations: repetitions.iterations,
            passed: agree::passed(self.world, timing.mismatches, self.settings)?,
            tails,
            median: agree::median(self.world, &mut self.samples)?,
            ..Row::default()
        })
    }
}
