// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Figures that the ranks compute together after a measurement.
//!
//! Called by the benchmarks between sizes, never inside a timed loop; calls allreduce.

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

/// One value of each rank, summed up.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The least of them.
    pub least: f64,
    /// Their arithmetic mean.
    pub mean: f64,
    /// The greatest of them.
    pub greatest: f64,
}

/// How one value differs between ranks; every rank gets the result.
///
/// # Errors
/// What MPI reports.
pub fn spread(world: &Communicator<'_>, value: f64) -> Result<Spread> {
    // The least is the greatest of the negatives: one operation less, which takes tens of
    // milliseconds where ranks wait for their turns.
    let mut ends = [value, -value].map(f64::to_ne_bytes).concat();
    world.allreduce_in_place(&mut ends, Datatype::Double, Operation::Max)?;
    let end =
        |index: usize| f64::from_ne_bytes(ends[8 * index..][..8].try_into().expect("8 bytes"));
    let mean = over_ranks(world, value, Operation::Sum)? / world.size() as f64;
    Ok(Spread {
        least: -end(1),
        mean,
        greatest: end(0),
    })
}
