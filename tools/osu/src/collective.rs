// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Benchmarks of collectives: every collective in every form, by one measurement for each form.
//!
//! Made by catalogue through [`make`]. A benchmark is a planned collective of weft-mpi and the [`contents`] that it moves;
//! blocking and persistent ones are timed here, non-blocking ones by [`overlap`].

pub mod compute;
pub mod contents;
pub mod neighbours;
pub mod overlap;
pub mod sums;

use crate::agree;
use crate::format::Row;
use crate::options::{Root, Settings};
use crate::runner::Benchmark;
use crate::timing::{self, Exercise, Plan, Resize};
use contents::Contents;
use weft_mpi::{Collective, Communicator, Form, Operation, Planned, Result};

/// A planned collective with its contents; what the measurements repeat.
pub struct Exchange<'a> {
    /// The collective.
    pub(super) planned: Planned<'a>,
    world: &'a Communicator<'a>,
    root: Root,
    contents: Contents,
}

/// Makes the benchmark of a collective in a form. `world` has neighbours when the collective needs them.
///
/// # Errors
/// `Unusable` when this MPI lacks the function; what MPI reports.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    which: Collective,
    form: Form,
) -> Result<Box<dyn Benchmark + 'a>> {
    let parts = which.parts(world)?;
    let limit = settings.memory_limit_bytes / parts.0.max(parts.1).max(1);
    let plan = weft_mpi::Plan {
        which,
        form,
        kind: settings.kind,
        operation: Operation::Sum,
        largest_bytes: settings.max_bytes.min(limit),
    };
    let exchange = Exchange {
        planned: Planned::new(world, plan)?,
        world,
        root: settings.root,
        contents: Contents::new(which, settings.kind, world, settings.special.neighbours)?,
    };
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

impl Exchange<'_> {
    #[inline]
    pub(super) fn root(&self, iteration: usize) -> usize {
        match self.root {
            Root::Fixed(root) => root,
            Root::Rotate => iteration % self.world.size(),
        }
    }
}

impl Resize for Exchange<'_> {
    fn resize(&mut self, size_bytes: usize) -> Result<()> {
        self.contents.resize(size_bytes);
        self.planned.resize(size_bytes)?;
        self.planned.given().fill(1);
        self.planned.taken().fill(2);
        Ok(())
    }
}

impl Exercise for Exchange<'_> {
    fn prepare(&mut self, iteration: usize) {
        let root = self.root(iteration);
        self.contents.prepare(&mut self.planned, iteration, root);
    }

    fn settle(&mut self) -> Result<()> {
        self.world.barrier()
    }

    #[inline]
    fn exchange(&mut self, iteration: usize) -> Result<()> {
        self.planned.set_root(self.root(iteration))?;
        self.planned.run()
    }

    fn mismatches(&mut self, iteration: usize) -> u64 {
        let root = self.root(iteration);
        self.contents.mismatches(&mut self.planned, iteration, root)
    }
}

/// A blocking or persistent collective: the mean over the ranks of each rank's mean time.
struct Timed<'a> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    exchange: Exchange<'a>,
    samples: Vec<f64>,
}

impl Benchmark for Timed<'_> {
    fn measure(&mut self, size_bytes: usize, plan: &Plan) -> Result<Row> {
        self.samples.reserve(plan.iterations);
        self.exchange.resize(size_bytes)?;
        let timing =
            timing::time_with_barriers(self.world, &mut self.exchange, plan, &mut self.samples)?;
        let (least, mean, greatest) =
            weft_ranks::agree::spread(self.world, timing.seconds * 1e6 / plan.iterations as f64)?;
        for sample in &mut self.samples {
            *sample *= 1e6;
        }
        let tails = agree::tails(self.world, &mut self.samples, self.settings)?;
        Ok(Row {
            size_bytes,
            value: mean,
            extremes: Some((least, greatest)),
            iterations: plan.iterations,
            passed: agree::passed(self.world, timing.mismatches, self.settings)?,
            tails,
            median: agree::median(self.world, &mut self.samples)?,
            ..Row::default()
        })
    }
}
