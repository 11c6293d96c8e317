// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IS: ranks keys (finds each key's position in sorted order). The keys are exchanged by buckets,
//! so that each rank has all keys of a range.
//!
//! Called by npb. Each iteration changes two keys, ranks all, and verifies five ranks; at the end
//! the keys are sorted and compared. The exchange is an allreduce of bucket sizes, an alltoall of
//! counts and an alltoallv of keys. Source: RNR-94-007, section 2.8.

use std::time::Instant;

use weft_mpi::{Communicator, Datatype, Layout, Operation};

use crate::class::{Class, Keys};
use crate::clock::Clock;
use crate::kernel::Kernel;
use crate::output::{Detail, Outcome};
use crate::random::Random;
use weft_ranks::agree;
use weft_ranks::refusal::Failed;

/// Specified.
const ITERATIONS: usize = 10;

/// Runs it once. As in NPB, one untimed iteration comes first, and the time is that of the ranking
/// alone.
///
/// # Errors
/// What MPI reports.
pub fn run(world: &Communicator<'_>, class: Class) -> Result<Outcome, Failed> {
    let keys = class.keys();
    let mut sorter = Sorter::new(world, keys);
    sorter.rank(1)?;
    world.barrier()?;
    sorter.clock.take_s();
    let mut wrong = 0;
    let start = Instant::now();
    for iteration in 1..=ITERATIONS {
        wrong += sorter.rank(iteration)?;
    }
    let own_s = start.elapsed().as_secs_f64();
    let communication = agree::spread(world, sorter.clock.take_s())?.mean;
    let seconds = agree::over_ranks(world, own_s, Operation::Max)?;
    wrong += sorter.misplaced()?;
    let wrong = agree::over_ranks(world, wrong as f64, Operation::Sum)?;
    Ok(Outcome {
        kernel: Kernel::Is,
        class,
        detail: Detail::Keys(keys.count),
        iterations: ITERATIONS,
        seconds,
        communication,
        operations: (ITERATIONS * keys.count) as f64,
        is_verified: wrong == 0.0,
    })
}

/// A rank's keys, with the memory of the exchange.
struct Sorter<'a> {
    world: &'a Communicator<'a>,
    clock: Clock,
    keys: Keys,
    own: Vec<i32>,
    bucketed: Vec<i32>,
    taken: Vec<i32>,
    /// Keys in `taken` of the last iteration.
    taken_count: usize,
    /// The least key of this rank's range, and how many keys of others are below it.
    range_start: usize,
    below: usize,
    /// How often each key of the range occurs, or less.
    up_to: Vec<i32>,
}

impl<'a> Sorter<'a> {
    fn new(world: &'a Communicator<'a>, keys: Keys) -> Self {
        let count = keys.count / world.size();
        let mut random = Random::after(4 * (world.rank() * count) as u64);
        let quarter = (1_u64 << keys.range_log2) as f64 / 4.0;
        let mut key = || {
            let sum = random.draw() + random.draw() + random.draw() + random.draw();
            (quarter * sum) as i32
        };
        Self {
            world,
            clock: Clock::default(),
            keys,
            own: (0..count).map(|_| key()).collect(),
            bucketed: vec![0; count],
            taken: Vec::new(),
            taken_count: 0,
            range_start: 0,
            below: 0,
            up_to: Vec::new(),
        }
    }

    /// One iteration; answers how many of the verified ranks that this rank knows are wrong.
    fn rank(&mut self, iteration: usize) -> Result<u64, Failed> {
        if self.world.rank() == 0 {
            self.own[iteration] = iteration as i32;
            self.own[iteration + ITERATIONS] = (1 << self.keys.range_log2) - iteration as i32;
        }
        let verified = self.verified_keys()?;
        let sizes = self.sort_into_buckets();
        let mut totals = sizes.clone();
        self.sum(&mut totals)?;
        let bounds = share(&totals, self.keys.count, self.world.size());
        self.exchange(&sizes, &bounds)?;
        let rank = self.world.rank();
        let shift = self.keys.range_log2 - self.keys.buckets.ilog2();
        let count_of = |buckets: &[i32]| buckets.iter().map(|size| *size as usize).sum::<usize>();
        self.range_start = bounds[rank] << shift;
        self.below = count_of(&totals[..bounds[rank]]);
        self.count(bounds[rank + 1] << shift);
        Ok(self.wrong_ranks(&verified, iteration))
    }

    /// The keys at the verified places, which one rank each has.
    fn verified_keys(&self) -> Result<[i32; 5], Failed> {
        let first = self.world.rank() * self.own.len();
        let mut keys = self.keys.places.map(|place| {
            let is_here = (first..first + self.own.len()).contains(&place);
            if is_here { self.own[place - first] } else { 0 }
        });
        self.sum(&mut keys)?;
        Ok(keys)
    }

    /// The sum over all ranks, of each number.
    fn sum(&self, numbers: &mut [i32]) -> Result<(), Failed> {
        let bytes = bytemuck::cast_slice_mut(numbers);
        let sum = || {
            self.world
                .allreduce_in_place(bytes, Datatype::Int, Operation::Sum)
        };
        Ok(self.clock.during(sum)?)
    }

    fn sort_into_buckets(&mut self) -> Vec<i32> {
        let shift = self.keys.range_log2 - self.keys.buckets.ilog2();
        let mut sizes = vec![0_i32; self.keys.buckets];
        for key in &self.own {
            sizes[(key >> shift) as usize] += 1;
        }
        let mut next = Vec::with_capacity(sizes.len());
        let mut at = 0;
        for size in &sizes {
            next.push(at);
            at += *size as usize;
        }
        for key in &self.own {
            let place = &mut next[(key >> shift) as usize];
            self.bucketed[*place] = *key;
            *place += 1;
        }
        sizes
    }

    fn exchange(&mut self, sizes: &[i32], bounds: &[usize]) -> Result<(), Failed> {
        let given: Vec<i32> = bounds
            .windows(2)
            .map(|bound| sizes[bound[0]..bound[1]].iter().sum())
            .collect();
        let mut taken = vec![0_i32; given.len()];
        let (from, to) = (
            bytemuck::cast_slice(&given),
            bytemuck::cast_slice_mut(&mut taken),
        );
        let counts = || self.world.alltoall(from, to, Datatype::Int);
        self.clock.during(counts)?;
        let layout = |counts: &[i32]| {
            let mut at = 0;
            let parts: Vec<(usize, usize)> = counts
                .iter()
                .map(|count| {
                    at += *count as usize;
                    (*count as usize, at - *count as usize)
                })
                .collect();
            Layout::new(parts)
        };
        self.taken_count = taken.iter().map(|count| *count as usize).sum();
        if self.taken.len() < self.taken_count {
            self.taken.resize(self.taken_count, 0);
        }
        let (given, taken) = (layout(&given)?, layout(&taken)?);
        let from = (bytemuck::cast_slice(&self.bucketed), &given);
        let to = (bytemuck::cast_slice_mut(&mut self.taken), &taken);
        let keys = || self.world.alltoallv(from, to, Datatype::Int);
        Ok(self.clock.during(keys)?)
    }

    /// Counts the keys of this rank's range up to each.
    fn count(&mut self, range_end: usize) {
        self.up_to.clear();
        self.up_to.resize(range_end - self.range_start, 0);
        for key in &self.taken[..self.taken_count] {
            self.up_to[*key as usize - self.range_start] += 1;
        }
        let mut sum = 0;
        for count in &mut self.up_to {
            sum += *count;
            *count = sum;
        }
    }

    fn wrong_ranks(&self, verified: &[i32; 5], iteration: usize) -> u64 {
        let range = self.range_start..self.range_start + self.up_to.len();
        let mut wrong = 0;
        for (which, key) in verified.iter().enumerate() {
            let key = *key as usize;
            if !range.contains(&key) {
                continue;
            }
            let smaller = if key == range.start {
                0
            } else {
                self.up_to[key - range.start - 1] as usize
            };
            let rank = (self.below + smaller) as i64;
            wrong += u64::from(rank != self.keys.rank(which, iteration as i64));
        }
        wrong
    }

    /// Sorts by the counts, and answers how many keys are not where they belong; all ranks together
    /// must have all keys.
    fn misplaced(&mut self) -> Result<u64, Failed> {
        let mut sorted = vec![0_i32; self.taken_count];
        for key in &self.taken[..self.taken_count] {
            let place = &mut self.up_to[*key as usize - self.range_start];
            *place -= 1;
            sorted[*place as usize] = *key;
        }
        let mut wrong = sorted.windows(2).filter(|two| two[0] > two[1]).count() as u64;
        let ends = [
            sorted.first().copied().unwrap_or(i32::MAX),
            sorted.last().copied().unwrap_or(i32::MIN),
        ];
        let mut all = vec![0_i32; 2 * self.world.size()];
        self.world.allgather(
            bytemuck::cast_slice(&ends),
            bytemuck::cast_slice_mut(&mut all),
            Datatype::Int,
        )?;
        // Ranks without keys stand aside.
        let before = all[..2 * self.world.rank()].chunks(2).map(|ends| ends[1]);
        wrong += u64::from(before.max().is_some_and(|last| last > ends[0]));
        let total = agree::over_ranks(self.world, self.taken_count as f64, Operation::Sum)?;
        wrong += u64::from(total as usize != self.keys.count);
        Ok(wrong)
    }
}

/// Deals buckets out so that each rank has about as many keys: the first bucket of each rank, and
/// the end.
fn share(totals: &[i32], keys: usize, ranks: usize) -> Vec<usize> {
    let mut bounds = vec![0];
    let mut sum = 0;
    for (bucket, size) in totals.iter().enumerate() {
        sum += *size as usize;
        if bounds.len() < ranks && sum >= keys / ranks * bounds.len() {
            bounds.push(bucket + 1);
        }
    }
    bounds.resize(ranks + 1, totals.len());
    if let Some(last) = bounds.last_mut() {
        *last = totals.len();
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_dealt_out_evenly_and_completely() {
        assert_eq!(share(&[2, 2, 2, 2], 8, 2), [0, 2, 4]);
        assert_eq!(share(&[8, 0, 0, 0], 8, 2), [0, 1, 4]);
        assert_eq!(share(&[0, 0, 0, 8], 8, 2), [0, 4, 4]);
        assert_eq!(share(&[1, 1, 5, 1], 8, 4), [0, 2, 3, 4, 4]);
        assert_eq!(share(&[3, 5], 8, 1), [0, 2]);
    }
}
