// SPDX-License-Identifier: Apache-2.0 OR MIT
//! FT: solves a diffusion equation. It makes one forward transform; then each time step multiplies
//! by a factor per frequency and transforms back.
//!
//! Called by npb; calls field. Source: RNR-94-007, section 2.7, and NPB's formula for the number of
//! operations.

use std::f64::consts::PI;
use std::time::Instant;

use weft_mpi::{Communicator, Datatype, Operation};

use crate::class::Class;
use crate::clock::Clock;
use crate::field::{Extent, Number, Transforms};
use crate::kernel::Kernel;
use crate::output::{Detail, Outcome};
use crate::random::Random;
use weft_ranks::agree;
use weft_ranks::refusal::Failed;

/// Specified: time steps of classes S, W and A.
const STEPS: usize = 6;
/// Specified: how fast high frequencies fade.
const ALPHA: f64 = 1e-6;
/// Specified: points that a checksum adds up.
const SUMMED: usize = 1024;
/// Specified: the greatest relative deviation from the published checksums.
const TOLERANCE: f64 = 1e-12;

/// Runs it once. As in NPB, one untimed pass touches all memory first, and the time includes making
/// the data.
///
/// # Errors
/// What MPI reports.
pub fn run(world: &Communicator<'_>, class: Class) -> Result<Outcome, Failed> {
    let extent = Extent {
        grid: class.grid(),
        ranks: world.size(),
    };
    let clock = Clock::default();
    let mut transforms = Transforms::new(world, &clock, extent);
    let mut space = vec![Number::default(); extent.points()];
    let mut frequency = space.clone();
    let mut faded = space.clone();
    fill(&mut space, extent, world.rank());
    transforms.forward(&mut space, &mut frequency)?;

    world.barrier()?;
    clock.take_s();
    let start = Instant::now();
    let factors = Factors::new(extent, world.rank());
    fill(&mut space, extent, world.rank());
    transforms.forward(&mut space, &mut frequency)?;
    let mut sums = Vec::with_capacity(STEPS);
    for _ in 0..STEPS {
        factors.fade(&mut frequency, &mut faded);
        transforms.back(&mut faded, &mut space)?;
        let sum = clock.during(|| checksum(world, extent, &space))?;
        sums.push(sum);
    }
    let own_s = start.elapsed().as_secs_f64();
    let communication = agree::spread(world, clock.take_s())?.mean;
    let seconds = agree::over_ranks(world, own_s, Operation::Max)?;
    let is_verified = sums.iter().zip(class.checksums()).all(|(sum, published)| {
        let published = Number::new(published.0, published.1);
        // Written so that what is no number does not pass.
        ((sum - published) / published).norm() <= TOLERANCE
    });
    Ok(Outcome {
        kernel: Kernel::Ft,
        class,
        detail: Detail::Checksums(sums.iter().map(|sum| (sum.re, sum.im)).collect()),
        iterations: STEPS,
        seconds,
        communication,
        operations: operations(extent.points() * extent.ranks),
        is_verified,
    })
}

/// Floating point operations by NPB's formula.
fn operations(points: usize) -> f64 {
    let (points, steps) = (points as f64, STEPS as f64);
    points * (14.8157 + 7.19641 * points.ln() + (5.23518 + 7.21113 * points.ln()) * steps)
}

/// The initial field: the sequence of random numbers, x fastest, real part first.
fn fill(space: &mut [Number], extent: Extent, rank: usize) {
    let mut random = Random::after(2 * (rank * extent.points()) as u64);
    for number in space {
        let re = random.draw();
        *number = Number::new(re, random.draw());
    }
}

/// How much each frequency fades in one step: the product of one factor for each axis.
struct Factors {
    x: Vec<f64>,
    y: Vec<f64>,
    z: Vec<f64>,
}

impl Factors {
    fn new(extent: Extent, rank: usize) -> Self {
        let along = |axis: usize| -> Vec<f64> {
            let length = extent.grid[axis] as i64;
            let frequency = |place: i64| {
                if place >= length / 2 {
                    place - length
                } else {
                    place
                }
            };
            let factor = |place| (-4.0 * ALPHA * PI * PI * (frequency(place) as f64).powi(2)).exp();
            (0..length).map(factor).collect()
        };
        let rows = extent.rows();
        Self {
            x: along(0),
            y: along(1)[rank * rows..(rank + 1) * rows].to_vec(),
            z: along(2),
        }
    }

    /// One step further, kept in `frequency` and copied to `faded` for the transform.
    fn fade(&self, frequency: &mut [Number], faded: &mut [Number]) {
        let width = self.x.len();
        let rows = frequency
            .chunks_exact_mut(width)
            .zip(faded.chunks_exact_mut(width));
        for (place, (row, copy)) in rows.enumerate() {
            let factor = self.z[place / self.y.len()] * self.y[place % self.y.len()];
            for ((number, copy), x) in row.iter_mut().zip(copy).zip(&self.x) {
                *number *= factor * x;
                *copy = *number;
            }
        }
    }
}

/// The sum of points spread over the field, with the division that the transform back left out.
fn checksum(world: &Communicator<'_>, extent: Extent, space: &[Number]) -> Result<Number, Failed> {
    let [width, height, depth] = extent.grid;
    let planes = extent.planes();
    let mut sum = Number::default();
    for index in 1..=SUMMED {
        let (x, y, z) = (index % width, 3 * index % height, 5 * index % depth);
        if z / planes == world.rank() {
            sum += space[(z % planes * height + y) * width + x];
        }
    }
    let mut parts = [sum.re, sum.im].map(f64::to_ne_bytes).concat();
    world.allreduce_in_place(&mut parts, Datatype::Double, Operation::Sum)?;
    let part = |place: usize| {
        let bytes = parts[place..place + 8].try_into();
        f64::from_ne_bytes(bytes.unwrap_or_default())
    };
    Ok(Number::new(part(0), part(8)) / (width * height * depth) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_fade_alike_on_both_sides_of_zero() {
        let extent = Extent {
            grid: [8, 4, 2],
            ranks: 2,
        };
        let factors = Factors::new(extent, 1);
        assert_eq!(factors.x[1], factors.x[7]);
        assert_eq!(factors.x[0], 1.0);
        assert!(factors.x[4] < factors.x[3]);
        // The upper half of y is that of the second rank.
        assert_eq!(
            factors.y,
            Factors::new(Extent { ranks: 1, ..extent }, 0).y[2..]
        );
    }

    #[test]
    fn operations_of_class_s_are_those_of_a_published_run() {
        // 0.07 s at 2512.14 Mop/s would be some 176 million.
        assert!(
            (operations(1 << 18) / 1e6 - 177.0).abs() < 3.0,
            "{}",
            operations(1 << 18)
        );
    }
}
