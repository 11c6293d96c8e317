// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits the time of a message size (`--size-time`) by fewer iterations.
//!
//! Called by runner for each size; calls the benchmark. The size before, which has half the bytes,
//! tells how long this one will take; before the first size a few iterations are tried, and then
//! more of them, since the first ones also make contact. All ranks agree on the number, because
//! they must repeat equally often. With more ranks than cores an iteration can take a thousand
//! times as long as otherwise. A fixed number of iterations would then take minutes, or be too
//! small to say much.

use crate::benchmark::{Benchmark, Row};
use crate::cpu;
use crate::timing::Repetitions;
use std::time::Instant;
use weft_mpi::{Communicator, Operation, Result};
use weft_ranks::agree::over_ranks;

/// Iterations that remain at least (chosen: where even two take too long, what is around them takes
/// as long again).
const FEWEST: usize = 2;

/// A trial has so many times the iterations of the one before (chosen).
const TRIAL_GROWTH: usize = 10;
/// It has at most this part of the iterations that are then measured, a fifth (chosen).
const TRIAL_PART: usize = 5;

/// What an iteration takes, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    longest_seconds: Option<f64>,
    /// Messages of all ranks in an iteration.
    messages: usize,
    /// Of the size before, the work around the iterations included.
    iteration_seconds: Option<f64>,
}

impl Pace {
    /// For sizes that may take that long, or as long as they do, with so many messages in an
    /// iteration.
    pub fn new(longest_seconds: Option<f64>, messages: usize) -> Self {
        Self {
            longest_seconds,
            messages,
            iteration_seconds: None,
        }
    }

    /// Measures a size by its repetitions, or by a shorter one.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn measure(
        &mut self,
        world: &Communicator<'_>,
        benchmark: &mut dyn Benchmark,
        size_bytes: usize,
        repetitions: Repetitions,
    ) -> Result<Row> {
        if self.longest_seconds.is_none() {
            return benchmark.measure(size_bytes, &repetitions);
        }
        if self.iteration_seconds.is_none() {
            let mut trial = self.next_trial(&repetitions, 0);
            while let Some(tried) = trial {
                self.timed(world, benchmark, size_bytes, &tried)?;
                trial = self.next_trial(&repetitions, tried.iterations);
            }
        }
        let repetitions = self.fit(repetitions);
        self.timed(world, benchmark, size_bytes, &repetitions)
    }

    /// What to try before the first size, after a trial of so many iterations; nothing more if that
    /// was enough.
    fn next_trial(&self, repetitions: &Repetitions, tried: usize) -> Option<Repetitions> {
        let iterations = FEWEST.max(TRIAL_GROWTH * tried);
        let fitted = self.fit(*repetitions).iterations;
        let is_wanted = match tried {
            0 => iterations < fitted,
            _ => fitted < repetitions.iterations && TRIAL_PART * iterations <= fitted,
        };
        is_wanted.then_some(Repetitions {
            iterations,
            warmup: repetitions.warmup.min(1),
            ..*repetitions
        })
    }

    fn timed(
        &mut self,
        world: &Communicator<'_>,
        benchmark: &mut dyn Benchmark,
        size_bytes: usize,
        repetitions: &Repetitions,
    ) -> Result<Row> {
        let (start, cpu) = (Instant::now(), cpu::seconds());
        let row = benchmark.measure(size_bytes, repetitions)?;
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu::seconds() - cpu);
        let seconds = over_ranks(world, seconds, Operation::Max)?;
        let cpu = over_ranks(world, cpu, Operation::Sum)?;
        let iterations = (repetitions.warmup + repetitions.iterations) as f64;
        self.iteration_seconds = Some(seconds / iterations);
        Ok(Row {
            cpu_us: Some(cpu * 1e6 / (iterations * self.messages as f64)),
            ..row
        })
    }

    /// The repetitions, shortened where they would take too long; iterations and warm-up keep
    /// their proportion.
    fn fit(&self, repetitions: Repetitions) -> Repetitions {
        let (Some(longest), Some(iteration)) = (self.longest_seconds, self.iteration_seconds)
        else {
            return repetitions;
        };
        let wanted = (repetitions.iterations + repetitions.warmup) as f64 * iteration;
        if wanted <= longest {
            return repetitions;
        }
        let part = longest / wanted;
        let shortened = |count: usize| (count as f64 * part) as usize;
        Repetitions {
            iterations: shortened(repetitions.iterations).max(FEWEST.min(repetitions.iterations)),
            warmup: shortened(repetitions.warmup),
            ..repetitions
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Repetitions = Repetitions {
        iterations: 100,
        warmup: 50,
        validation_warmup: 0,
        validate: false,
        single: false,
    };

    fn fitted(iteration_seconds: f64, repetitions: Repetitions) -> (usize, usize) {
        let pace = Pace {
            longest_seconds: Some(0.15),
            messages: 1,
            iteration_seconds: Some(iteration_seconds),
        };
        let repetitions = pace.fit(repetitions);
        (repetitions.iterations, repetitions.warmup)
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(fitted(0.001, PLAN), (100, 50));
        let unlimited = Pace::new(None, 1);
        assert_eq!(unlimited.fit(PLAN), PLAN);
        assert_eq!(
            Pace::new(Some(1e-9), 1).fit(PLAN),
            PLAN,
            "nothing is known yet"
        );
    }

    /// The first exchange of two hosts takes a millisecond, and those after it some microseconds.
    #[test]
    fn contact_does_not_count_as_what_every_iteration_takes() {
        let plan = Repetitions {
            iterations: 1_000_000,
            ..PLAN
        };
        let mut pace = Pace::new(Some(0.1), 1);
        let mut tried = Vec::new();
        while let Some(trial) = pace.next_trial(&plan, tried.last().copied().unwrap_or(0)) {
            let iterations = trial.iterations as f64;
            pace.iteration_seconds = Some((0.001 + iterations * 10e-6) / iterations);
            tried.push(trial.iterations);
        }
        assert_eq!(tried, [2, 20, 200]);
        assert!(pace.fit(plan).iterations > 6_000);
        pace.iteration_seconds = Some(0.2);
        assert_eq!(pace.next_trial(&plan, FEWEST), None, "all take so long");
    }

    #[test]
    fn what_takes_too_long_is_shortened_in_proportion_down_to_a_few() {
        assert_eq!(fitted(0.0101, PLAN), (9, 4));
        assert_eq!(fitted(3.0, PLAN), (FEWEST, 0));
        let one = Repetitions {
            iterations: 1,
            ..PLAN
        };
        assert_eq!(fitted(3.0, one), (1, 0), "never more than was asked for");
    }
}
