// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Figures of a row that the ranks compute together: percentiles, medians, whether all bytes were
//! right.
//!
//! Called by the benchmarks between sizes, never inside a timed loop; calls allreduce.

use crate::options::Settings;
use weft_mpi::{Communicator, Datatype, Operation, Result};
use weft_ranks::agree::over_ranks;
use weft_statistics as statistics;

/// Percentiles of -z over iterations, each iteration's value being the mean over the ranks.
/// `samples` has the same length on all ranks and holds the means afterwards, sorted.
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

/// Mean over the ranks of each rank's median sample; sorts `samples`. After [`tails`], not before:
/// that needs their order.
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
