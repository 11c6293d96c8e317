// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The timed loops, the same for every benchmark: warm up, time, and check the received bytes if
//! asked.
//!
//! Called by the benchmarks through [`time`] and [`time_with_barriers`]; calls their [`Exercise`].
//! The loops allocate nothing: samples go into memory that was allocated before. Source: the loop
//! shapes of OSU 7.5.

use std::time::Instant;
use weft_mpi::{Communicator, Result};

/// What a benchmark repeats.
pub trait Exercise {
    /// Fills the buffers for an iteration; not timed. Called only when validating.
    fn prepare(&mut self, iteration: usize);
    /// Brings the ranks back in step after `prepare`; not timed.
    ///
    /// # Errors
    /// What MPI reports.
    fn settle(&mut self) -> Result<()>;
    /// One exchange; timed.
    ///
    /// # Errors
    /// What MPI reports.
    fn exchange(&mut self, iteration: usize) -> Result<()>;
    /// Makes sure that what was exchanged can be looked at on every rank; not timed. Called only
    /// when validating.
    ///
    /// # Errors
    /// What MPI reports.
    fn conclude(&mut self) -> Result<()> {
        Ok(())
    }
    /// How many bytes differ from what the iteration should have brought; not timed. Called only
    /// when validating.
    fn mismatches(&mut self, iteration: usize) -> u64;
}

/// An exercise that can change its size.
pub trait Resize: Exercise {
    /// Chooses the size and touches the memory it uses, so that no page is mapped inside a timed
    /// loop.
    ///
    /// # Errors
    /// What MPI reports.
    fn resize(&mut self, size_bytes: usize) -> Result<()>;
}

/// How often a size is repeated, and whether its bytes are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetitions {
    /// Timed iterations, at least 1.
    pub iterations: usize,
    /// Untimed iterations before.
    pub warmup: usize,
    /// Untimed [`Exercise::settle`] calls before each validated iteration.
    pub validation_warmup: usize,
    /// Whether to fill and check buffers.
    pub validate: bool,
    /// Whether single iterations must be timed (always so when validating).
    pub single: bool,
}

/// What the loop measured on this rank.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// Sum over the timed iterations.
    pub seconds: f64,
    /// Bytes that were wrong, over all iterations.
    pub mismatches: u64,
}

/// Clock readings in a loop that needs no single iterations: enough for a median that a few
/// interruptions do not move, and too few to cost anything (chosen).
const BLOCKS: usize = 25;

/// Times iterations back to back: in 25 blocks when nothing needs single ones, else each.
/// `samples_seconds` is emptied and filled with the seconds per iteration of each block or
/// iteration; it must have room for one per iteration.
///
/// # Errors
/// What the exercise reports.
pub fn time(
    exercise: &mut impl Exercise,
    repetitions: &Repetitions,
    samples_seconds: &mut Vec<f64>,
) -> Result<Timing> {
    if repetitions.single || repetitions.validate {
        return time_each(exercise, repetitions, samples_seconds, || Ok(()));
    }
    samples_seconds.clear();
    for iteration in 0..repetitions.warmup {
        exercise.exchange(iteration)?;
    }
    let block = repetitions.iterations.div_ceil(BLOCKS);
    let mut timing = Timing::default();
    let mut done = 0;
    let mut start = Instant::now();
    while done < repetitions.iterations {
        let end = (done + block).min(repetitions.iterations);
        for iteration in done..end {
            exercise.exchange(iteration)?;
        }
        let now = Instant::now();
        let seconds = (now - start).as_secs_f64();
        timing.seconds += seconds;
        samples_seconds.push(seconds / (end - done) as f64);
        (start, done) = (now, end);
    }
    Ok(timing)
}

/// Times each iteration, with a barrier of `world` after each, as is the custom for collectives:
/// ranks that finish early must not run ahead into the next one.
///
/// # Errors
/// What the exercise or the barrier reports.
pub fn time_with_barriers(
    world: &Communicator<'_>,
    exercise: &mut impl Exercise,
    repetitions: &Repetitions,
    samples_seconds: &mut Vec<f64>,
) -> Result<Timing> {
    world.barrier()?;
    time_each(exercise, repetitions, samples_seconds, || world.barrier())
}

fn time_each(
    exercise: &mut impl Exercise,
    repetitions: &Repetitions,
    samples_seconds: &mut Vec<f64>,
    between: impl Fn() -> Result<()>,
) -> Result<Timing> {
    let mut timing = Timing::default();
    samples_seconds.clear();
    for iteration in 0..repetitions.warmup + repetitions.iterations {
        if repetitions.validate {
            exercise.prepare(iteration);
            for _ in 0..repetitions.validation_warmup {
                exercise.settle()?;
            }
        }
        let start = Instant::now();
        exercise.exchange(iteration)?;
        let seconds = start.elapsed().as_secs_f64();
        if repetitions.validate {
            exercise.conclude()?;
            timing.mismatches += exercise.mismatches(iteration);
        }
        if iteration >= repetitions.warmup {
            timing.seconds += seconds;
            samples_seconds.push(seconds);
        }
        between()?;
    }
    Ok(timing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counted {
        prepared: usize,
        settled: usize,
        exchanged: usize,
    }

    impl Exercise for Counted {
        fn prepare(&mut self, _: usize) {
            self.prepared += 1;
        }
        fn settle(&mut self) -> Result<()> {
            self.settled += 1;
            Ok(())
        }
        fn exchange(&mut self, _: usize) -> Result<()> {
            self.exchanged += 1;
            Ok(())
        }
        fn mismatches(&mut self, iteration: usize) -> u64 {
            u64::from(iteration == 3)
        }
    }

    const PLAN: Repetitions = Repetitions {
        iterations: 7,
        warmup: 2,
        validation_warmup: 5,
        validate: false,
        single: false,
    };

    #[test]
    fn plain_loop_leaves_one_sample_for_each_block_and_never_prepares() {
        let (mut counted, mut samples) = (Counted::default(), vec![1.0]);
        let timing = time(&mut counted, &PLAN, &mut samples).expect("cannot fail");
        assert_eq!(
            (counted.prepared, counted.exchanged, samples.len()),
            (0, 9, 7)
        );
        let long = Repetitions {
            iterations: 1000,
            ..PLAN
        };
        let timing_of_long = time(&mut counted, &long, &mut samples).expect("cannot fail");
        assert_eq!(samples.len(), BLOCKS);
        assert!(timing.seconds > 0.0 && timing_of_long.seconds > 0.0);
    }

    #[test]
    fn single_iterations_leave_one_sample_each_without_the_warm_up() {
        let (mut counted, mut samples) = (Counted::default(), Vec::new());
        let timing = time(
            &mut counted,
            &Repetitions {
                single: true,
                ..PLAN
            },
            &mut samples,
        )
        .expect("cannot fail");
        assert_eq!(
            (counted.prepared, counted.exchanged, samples.len()),
            (0, 9, 7)
        );
        assert!((timing.seconds - samples.iter().sum::<f64>()).abs() < 1e-9);
    }

    #[test]
    fn validation_prepares_settles_and_checks_every_iteration_also_in_the_warm_up() {
        let (mut counted, mut samples) = (Counted::default(), Vec::new());
        let timing = time(
            &mut counted,
            &Repetitions {
                validate: true,
                ..PLAN
            },
            &mut samples,
        )
        .expect("cannot fail");
        assert_eq!(
            (
                counted.prepared,
                counted.settled,
                counted.exchanged,
                timing.mismatches
            ),
            (9, 45, 9, 1)
        );
    }
}
