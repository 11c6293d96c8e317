// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Figures that the ranks put together after a measurement.
//!
//! Called by the benchmarks between sizes, never inside a timed loop; calls allreduce.

use crate::options::Settings;
use crate::statistics;
use weft_mpi::{Communicator, Datatype, Operation, Result};

/// `value` combined over all ranks; every rank gets the result.
///
/// # Errors
/// What MPI reports; the same for all functions here.
pub fn over_ranks(world: &Communicator<'_>, value: f64, operation: Operation) -> Result<f64> {
    let mut bytes = value.to_ne_bytes();
    world.allreduce_in_place(&mut bytes, Datatype::Double, operation)?;
    Ok(f64::from_ne_bytes(bytes))
}

/// Least, mean and greatest of one value per rank.
///
/// # Errors
/// What MPI reports.
pub fn spread(world: &Communicator<'_>, value: f64) -> Result<(f64, f64, f64)> {
    // The least is the greatest of the negatives: one operation less, which takes tens of milliseconds where ranks wait for their turns.
    let mut ends = [value, -value].map(f64::to_ne_bytes).concat();
    world.allreduce_in_place(&mut ends, Datatype::Double, Operation::Max)?;
    let end =
        |index: usize| f64::from_ne_bytes(ends[8 * index..][..8].try_into().expect("8 bytes"));
    let mean = over_ranks(world, value, Operation::Sum)? / world.size() as f64;
    Ok((-end(1), mean, end(0)))
}

/// Percentiles of -z over iterations, each iteration's value being the mean over the ranks. `samples` has the same length on all
/// ranks and holds the means afterwards, sorted.
///
/// # Errors
/// What MPI reports.
pub fn tails(
    world: &Communicator<'_>,
    samples: &mut [f64],
    settings: &Settings,
) -> Result<Vec<f64>> {
    if settings.shown.tails.is_empty() {
        return Ok(Vec::new());
    }
    let mut bytes: Vec<u8> = samples
        .iter()
        .flat_map(|sample| sample.to_ne_bytes())
        .collect();
    world.allreduce_in_place(&mut bytes, Datatype::Double, Operation::Sum)?;
    for (sample, sum) in samples.iter_mut().zip(bytes.chunks_exact(8)) {
        *sample = f64::from_ne_bytes(sum.try_into().expect("chunks of 8")) / world.size() as f64;
    }
    Ok(own_tails(samples, settings))
}

/// Mean over the ranks of each rank's median sample; sorts `samples`. After [`tails`], not before: that needs their order.
///
/// # Errors
/// What MPI reports.
pub fn median(world: &Communicator<'_>, samples: &mut [f64]) -> Result<f64> {
    statistics::sort(samples);
    let own = statistics::nearest_rank(samples, 50.0);
    Ok(over_ranks(world, own, Operation::Sum)? / world.size() as f64)
}

/// Percentiles of -z over this rank's own iterations; sorts `samples`.
pub fn own_tails(samples: &mut [f64], settings: &Settings) -> Vec<f64> {
    statistics::sort(samples);
    settings
        .shown
        .tails
        .iter()
        .map(|percent| statistics::nearest_rank(samples, percent.value()))
        .collect()
}

/// Whether no rank found a wrong byte; `None` when not validating.
///
/// # Errors
/// What MPI reports.
pub fn passed(
    world: &Communicator<'_>,
    mismatches: u64,
    settings: &Settings,
) -> Result<Option<bool>> {
    if !settings.shown.validate {
        return Ok(None);
    }
    Ok(Some(
        over_ranks(world, mismatches as f64, Operation::Sum)? == 0.0,
    ))
}
