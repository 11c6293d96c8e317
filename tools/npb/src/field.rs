// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A field of complex numbers in slabs over the ranks, and its Fourier transforms.
//!
//! Called by ft; calls rustfft for one dimension and MPI_Alltoall for the transposition. In space a
//! rank has whole planes, `[z][y][x]` with a part of z. In frequency it has whole columns,
//! `[z][y][x]` with a part of y. All data for one rank lie together. So besides the exchange, the
//! transposition needs only one copy, on the space side.

use std::sync::Arc;

use num_complex::Complex;
use rustfft::{Fft, FftDirection, FftPlanner};
use weft_mpi::{Communicator, Datatype};

use crate::clock::Clock;
use weft_ranks::refusal::Failed;

/// One number.
pub type Number = Complex<f64>;
/// Columns that are transformed at a time. Chosen: what is gathered for them stays in the first
/// cache.
const BLOCK: usize = 16;

/// Extents of a field and of a rank's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Points in x, y and z.
    pub grid: [usize; 3],
    /// Ranks.
    pub ranks: usize,
}

impl Extent {
    /// Planes of a rank in space.
    pub fn planes(&self) -> usize {
        self.grid[2] / self.ranks
    }

    /// Rows of a rank in each plane in frequency.
    pub fn rows(&self) -> usize {
        self.grid[1] / self.ranks
    }

    /// Points of a rank.
    pub fn points(&self) -> usize {
        self.grid.iter().product::<usize>() / self.ranks
    }
}

/// Plans of all transforms, with their memory.
pub struct Transforms<'a> {
    world: &'a Communicator<'a>,
    clock: &'a Clock,
    extent: Extent,
    /// Forward and back, in x, y and z each.
    plans: [[Arc<dyn Fft<f64>>; 3]; 2],
    packed: Vec<Number>,
    gathered: Vec<Number>,
    scratch: Vec<Number>,
}

impl<'a> Transforms<'a> {
    /// Plans them. Setup.
    pub fn new(world: &'a Communicator<'a>, clock: &'a Clock, extent: Extent) -> Self {
        let mut planner = FftPlanner::new();
        let mut plan = |direction| {
            extent
                .grid
                .map(|length| planner.plan_fft(length, direction))
        };
        let plans = [plan(FftDirection::Forward), plan(FftDirection::Inverse)];
        let longest = extent.grid.iter().copied().max().unwrap_or(1);
        let room = plans
            .iter()
            .flatten()
            .map(|plan| plan.get_inplace_scratch_len());
        Self {
            world,
            clock,
            extent,
            scratch: vec![Number::default(); room.max().unwrap_or(0)],
            plans,
            packed: vec![Number::default(); extent.points()],
            gathered: vec![Number::default(); longest * BLOCK],
        }
    }

    /// From space to frequency; `space` is used up.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn forward(
        &mut self,
        space: &mut [Number],
        frequency: &mut [Number],
    ) -> Result<(), Failed> {
        let [width, height, _] = self.extent.grid;
        self.plans[0][0].process_with_scratch(space, &mut self.scratch);
        for plane in space.chunks_exact_mut(width * height) {
            self.columns(0, 1, plane, width);
        }
        self.pack(space);
        let (from, to) = (
            bytemuck::cast_slice(&self.packed),
            bytemuck::cast_slice_mut(frequency),
        );
        let exchange = || self.world.alltoall(from, to, Datatype::Double);
        self.clock.during(exchange)?;
        let rows = self.extent.rows();
        self.columns(0, 2, frequency, rows * width);
        Ok(())
    }

    /// From frequency to space, without the division by the number of points; `frequency` is used
    /// up.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn back(&mut self, frequency: &mut [Number], space: &mut [Number]) -> Result<(), Failed> {
        let [width, height, _] = self.extent.grid;
        let rows = self.extent.rows();
        self.columns(1, 2, frequency, rows * width);
        let (from, to) = (
            bytemuck::cast_slice(frequency),
            bytemuck::cast_slice_mut(&mut self.packed),
        );
        let exchange = || self.world.alltoall(from, to, Datatype::Double);
        self.clock.during(exchange)?;
        self.unpack(space);
        for plane in space.chunks_exact_mut(width * height) {
            self.columns(1, 1, plane, width);
        }
        self.plans[1][0].process_with_scratch(space, &mut self.scratch);
        Ok(())
    }

    /// Transforms each of `width` columns that lie side by side.
    fn columns(&mut self, way: usize, axis: usize, data: &mut [Number], width: usize) {
        let plan = &self.plans[way][axis];
        let length = plan.len();
        for first in (0..width).step_by(BLOCK) {
            let columns = BLOCK.min(width - first);
            let gathered = &mut self.gathered[..columns * length];
            for (place, row) in data.chunks_exact(width).enumerate() {
                for (column, number) in row[first..first + columns].iter().enumerate() {
                    gathered[column * length + place] = *number;
                }
            }
            plan.process_with_scratch(gathered, &mut self.scratch);
            for (place, row) in data.chunks_exact_mut(width).enumerate() {
                for (column, number) in row[first..first + columns].iter_mut().enumerate() {
                    *number = gathered[column * length + place];
                }
            }
        }
    }

    /// Puts together what goes to one rank: its rows of all planes.
    fn pack(&mut self, space: &[Number]) {
        let part = self.extent.rows() * self.extent.grid[0];
        let parts = self.packed.chunks_exact_mut(part).enumerate();
        for (place, target) in parts {
            let (rank, plane) = (place / self.extent.planes(), place % self.extent.planes());
            let from = (plane * self.extent.ranks + rank) * part;
            target.copy_from_slice(&space[from..from + part]);
        }
    }

    /// The other way round.
    fn unpack(&self, space: &mut [Number]) {
        let part = self.extent.rows() * self.extent.grid[0];
        for (place, source) in self.packed.chunks_exact(part).enumerate() {
            let (rank, plane) = (place / self.extent.planes(), place % self.extent.planes());
            let to = (plane * self.extent.ranks + rank) * part;
            space[to..to + part].copy_from_slice(source);
        }
    }
}
