// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `allreduce`: the time of MPI_Allreduce with MPI_SUM.
//!
//! Made by catalogue, called by runner. Validation adds small whole numbers, whose sum is exact in every type.

use super::{Collective, Resize};
use crate::options::Settings;
use crate::runner::Benchmark;
use crate::timing::Exercise;
use weft_mpi::{Buffer, Communicator, Datatype, Operation, Result};

struct Allreduce<'a> {
    world: &'a Communicator<'a>,
    kind: Datatype,
    given: Buffer,
    sums: Buffer,
    size_bytes: usize,
}

/// Elements repeat after this many; a prime, so that shifts by powers of two are found (chosen).
const PERIOD: usize = 61;

/// Makes it.
///
/// # Errors
/// None; the signature is the catalogue's.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
) -> Result<Box<dyn Benchmark + 'a>> {
    let (given, sums) = (
        Buffer::new(settings.max_bytes),
        Buffer::new(settings.max_bytes),
    );
    Ok(Collective::boxed(
        world,
        settings,
        Allreduce {
            world,
            kind: settings.kind,
            given,
            sums,
            size_bytes: 0,
        },
    ))
}

/// What rank 0 gives for an element; rank r gives r more.
fn base(element: usize, iteration: usize, size_bytes: usize) -> usize {
    (element + iteration * 7 + size_bytes) % PERIOD
}

/// The sum over the ranks.
fn sum(element: usize, iteration: usize, size_bytes: usize, ranks: usize) -> usize {
    base(element, iteration, size_bytes) * ranks + ranks * (ranks - 1) / 2
}

/// A whole number in the bytes of a type; the second is how many bytes count.
fn encode(value: usize, kind: Datatype) -> ([u8; 8], usize) {
    let mut bytes = [0; 8];
    match kind {
        Datatype::Char | Datatype::Byte => bytes[0] = value as u8,
        Datatype::Int => bytes[..4].copy_from_slice(&(value as i32).to_ne_bytes()),
        Datatype::Float => bytes[..4].copy_from_slice(&(value as f32).to_ne_bytes()),
        Datatype::Double => bytes = (value as f64).to_ne_bytes(),
    }
    (bytes, kind.size_bytes())
}

impl Resize for Allreduce<'_> {
    fn resize(&mut self, size_bytes: usize) -> Result<()> {
        self.size_bytes = size_bytes;
        self.given.bytes()[..size_bytes].fill(1);
        self.sums.bytes()[..size_bytes].fill(0);
        Ok(())
    }
}

impl Exercise for Allreduce<'_> {
    fn prepare(&mut self, iteration: usize) {
        let (kind, rank, size_bytes) = (self.kind, self.world.rank(), self.size_bytes);
        let given = &mut self.given.bytes()[..size_bytes];
        for (element, bytes) in given.chunks_exact_mut(kind.size_bytes()).enumerate() {
            let (value, length) = encode(base(element, iteration, size_bytes) + rank, kind);
            bytes.copy_from_slice(&value[..length]);
        }
        self.sums.bytes()[..size_bytes].fill(0xee);
    }

    fn settle(&mut self) -> Result<()> {
        self.world.barrier()
    }

    #[inline]
    fn exchange(&mut self, _iteration: usize) -> Result<()> {
        let given = &self.given.bytes()[..self.size_bytes];
        self.world.allreduce(
            given,
            &mut self.sums.bytes()[..self.size_bytes],
            self.kind,
            Operation::Sum,
        )
    }

    fn mismatches(&mut self, iteration: usize) -> u64 {
        let (kind, ranks, size_bytes) = (self.kind, self.world.size(), self.size_bytes);
        let sums = &self.sums.bytes()[..size_bytes];
        let wrong = sums
            .chunks_exact(kind.size_bytes())
            .enumerate()
            .filter(|(element, bytes)| {
                let (expected, length) = encode(sum(*element, iteration, size_bytes, ranks), kind);
                **bytes != expected[..length]
            });
        (wrong.count() * kind.size_bytes()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_sum_is_the_sum_of_what_the_ranks_give() {
        for ranks in 1..9 {
            for element in [0, 1, 60, 61, 1000] {
                let added: usize = (0..ranks).map(|rank| base(element, 3, 4096) + rank).sum();
                assert_eq!(sum(element, 3, 4096, ranks), added);
            }
        }
    }

    #[test]
    fn encoded_number_is_the_types_own() {
        assert_eq!(encode(300, Datatype::Int).0[..4], 300i32.to_ne_bytes());
        assert_eq!(encode(300, Datatype::Float).0[..4], 300f32.to_ne_bytes());
        assert_eq!(encode(300, Datatype::Double), (300f64.to_ne_bytes(), 8));
    }
}
