// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Benchmarks of collectives: one file each, and the measurement that they share.
//!
//! Made by catalogue; the files implement Exercise and wrap it in `Collective`.

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod alltoallv;
pub mod alltoallw;
pub mod barrier;
pub mod bcast;

use crate::agree;
use crate::format::Row;
use crate::options::Settings;
use crate::runner::Benchmark;
use crate::timing::{self, Exercise, Plan};
use weft_mpi::{Communicator, Result};

/// An exercise of all ranks that can change its size.
trait Resize: Exercise {
    /// Chooses the size and touches the memory it uses.
    fn resize(&mut self, size_bytes: usize) -> Result<()>;
}

/// A collective benchmark: the mean over the ranks of each rank's mean time.
struct Collective<'a, E> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    exercise: E,
    samples: Vec<f64>,
}

impl<'a, E: Resize + 'a> Collective<'a, E> {
    fn boxed(
        world: &'a Communicator<'a>,
        settings: &'a Settings,
        exercise: E,
    ) -> Box<dyn Benchmark + 'a> {
        Box::new(Self {
            world,
            settings,
            exercise,
            samples: Vec::new(),
        })
    }
}

impl<E: Resize> Benchmark for Collective<'_, E> {
    fn measure(&mut self, size_bytes: usize, plan: &Plan) -> Result<Row> {
        self.samples.reserve(plan.iterations);
        self.exercise.resize(size_bytes)?;
        let timing =
            timing::time_with_barriers(self.world, &mut self.exercise, plan, &mut self.samples)?;
        let (least, mean, greatest) =
            agree::spread(self.world, timing.seconds * 1e6 / plan.iterations as f64)?;
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
