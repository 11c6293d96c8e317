// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Non-blocking collectives: how long one takes alone, how long together with work of the same
//! length, and how much of the communication the work hides.
//!
//! Made by collective. Each size has two passes:
//!
//! - The first starts the collective and waits. This is the pure communication.
//! - The second starts it, works for as long as the first pass took (with -t calls of MPI_Test in
//!   between), and waits.
//!
//! Source: the description of OSU's non-blocking collectives; the formula is [`overlap_percent`].

use super::compute::Work;
use super::exchange::Exchange;
use crate::agree;
use crate::benchmark::{Benchmark, Overlap, Row};
use crate::options::Settings;
use crate::timing::{self, Exercise, Repetitions, Resize};
use std::time::Instant;
use weft_mpi::{Communicator, Operation, Result};

struct Overlapped<'a> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    exchange: Exchange<'a>,
    work: Work,
    samples: Vec<f64>,
}

/// Seconds of one rank's second pass, summed over the timed iterations.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    overall: f64,
    start: f64,
    /// Work and tests together.
    compute: f64,
    test: f64,
    wait: f64,
}

/// Makes the benchmark around an exchange.
pub(super) fn boxed<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    exchange: Exchange<'a>,
) -> Box<dyn Benchmark + 'a> {
    Box::new(Overlapped {
        world,
        settings,
        exchange,
        work: Work::new(),
        samples: Vec::new(),
    })
}

/// How much of the pure communication was hidden behind the work, in percent: all of it when
/// overall time is no longer than the work, none when it is the sum of both. All in the same unit.
pub fn overlap_percent(overall: f64, compute: f64, communication: f64) -> f64 {
    (100.0 - (overall - compute) / communication * 100.0).max(0.0)
}

impl Benchmark for Overlapped<'_> {
    fn measure(&mut self, size_bytes: usize, repetitions: &Repetitions) -> Result<Row> {
        self.samples.reserve(repetitions.iterations);
        self.exchange.resize(size_bytes)?;
        let pure = timing::time_with_barriers(
            self.world,
            &mut self.exchange,
            repetitions,
            &mut self.samples,
        )?;
        let pure_seconds = pure.seconds / repetitions.iterations as f64;
        let (parts, mismatches) = self.second_pass(repetitions, pure_seconds)?;
        let overlap = self.agree_on(&parts, pure_seconds, repetitions.iterations)?;
        let mean = |seconds: f64| -> Result<f64> {
            let sum = weft_ranks::agree::over_ranks(self.world, seconds, Operation::Sum)?;
            Ok(sum * 1e6 / (repetitions.iterations * self.world.size()) as f64)
        };
        let value = mean(parts.overall)?;
        for sample in &mut self.samples {
            *sample *= 1e6;
        }
        let tails = agree::tails(self.world, &mut self.samples, self.settings)?;
        Ok(Row {
            size_bytes,
            value,
            iterations: repetitions.iterations,
            passed: agree::passed(self.world, pure.mismatches + mismatches, self.settings)?,
            tails,
            median: agree::median(self.world, &mut self.samples)?,
            overlap: Some(Overlap {
                percent: overlap_percent(value, overlap.compute, overlap.communication),
                ..overlap
            }),
            ..Row::default()
        })
    }
}

impl Overlapped<'_> {
    /// Starts, works, waits. Leaves each iteration's overall seconds in `samples`.
    fn second_pass(
        &mut self,
        repetitions: &Repetitions,
        pure_seconds: f64,
    ) -> Result<(Parts, u64)> {
        let (mut sum, mut mismatches) = (Parts::default(), 0);
        self.samples.clear();
        self.world.barrier()?;
        for iteration in 0..repetitions.warmup + repetitions.iterations {
            if repetitions.validate {
                self.exchange.prepare(iteration);
                for _ in 0..repetitions.validation_warmup {
                    self.exchange.settle()?;
                }
            }
            let parts = self.once(iteration, pure_seconds)?;
            if repetitions.validate {
                mismatches += self.exchange.mismatches(iteration);
            }
            if iteration >= repetitions.warmup {
                sum.add(&parts);
                self.samples.push(parts.overall);
            }
            self.world.barrier()?;
        }
        Ok((sum, mismatches))
    }

    fn once(&mut self, iteration: usize, pure_seconds: f64) -> Result<Parts> {
        let root = self.exchange.root(iteration);
        let prepared = &mut self.exchange.prepared;
        let begin = Instant::now();
        prepared.set_root(root)?;
        prepared.start()?;
        let started = Instant::now();
        let tests = self.settings.special.test_calls;
        let test = self
            .work
            .run(pure_seconds, tests, || prepared.test().map(drop))?;
        let worked = Instant::now();
        prepared.wait()?;
        let end = Instant::now();
        Ok(Parts {
            overall: (end - begin).as_secs_f64(),
            start: (started - begin).as_secs_f64(),
            compute: (worked - started).as_secs_f64(),
            test,
            wait: (end - worked).as_secs_f64(),
        })
    }

    /// Means over ranks and iterations in microseconds; the percentage is left out.
    fn agree_on(&self, parts: &Parts, pure_seconds: f64, iterations: usize) -> Result<Overlap> {
        let mean = |seconds: f64| -> Result<f64> {
            let sum = weft_ranks::agree::over_ranks(self.world, seconds, Operation::Sum)?;
            Ok(sum * 1e6 / (iterations * self.world.size()) as f64)
        };
        let spread = weft_ranks::agree::spread(self.world, pure_seconds * 1e6)?;
        Ok(Overlap {
            compute: mean(parts.compute - parts.test)?,
            start: mean(parts.start)?,
            test: mean(parts.test)?,
            wait: mean(parts.wait)?,
            communication: spread.mean,
            least_communication: spread.least,
            greatest_communication: spread.greatest,
            percent: 0.0,
        })
    }
}

impl Parts {
    fn add(&mut self, other: &Self) {
        self.overall += other.overall;
        self.start += other.start;
        self.compute += other.compute;
        self.test += other.test;
        self.wait += other.wait;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_whole_when_the_work_hides_all_and_none_when_the_times_add_up() {
        assert_eq!(overlap_percent(10.0, 10.0, 10.0), 100.0);
        assert_eq!(overlap_percent(20.0, 10.0, 10.0), 0.0);
        assert_eq!(overlap_percent(12.5, 10.0, 10.0), 75.0);
    }

    #[test]
    fn overlap_is_never_below_none() {
        assert_eq!(overlap_percent(35.0, 10.0, 10.0), 0.0);
    }
}
