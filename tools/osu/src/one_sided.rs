// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Benchmarks of one-sided communication: put, get and the atomic accesses, with each method to
//! make a window and each method to complete an access.
//!
//! Made by runner through [`make`]; [`access`] has the accesses and their contents, [`synchronise`]
//! the order of calls. Each size has a new window of the length that it needs. Source: the
//! description of OSU's one-sided benchmarks.

pub mod access;
pub mod synchronise;

use crate::agree;
use crate::benchmark::{Benchmark, Row};
use crate::description::{Directions, OneSided};
use crate::options::Settings;
use crate::pt2pt::bandwidth::megabytes;
use crate::pt2pt::latency::spread_of;
use crate::timing::{self, Exercise, Repetitions};
use access::Contents;
use synchronise::Synchronisation;
use weft_mpi::{Communicator, Result, Window};

/// Makes a benchmark; its memory comes with each size.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    which: OneSided,
) -> Box<dyn Benchmark + 'a> {
    Box::new(Measured {
        world,
        settings,
        which,
        samples: Vec::new(),
    })
}

struct Measured<'a> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    which: OneSided,
    samples: Vec<f64>,
}

impl Measured<'_> {
    /// Accesses between two synchronisations.
    fn depth(&self) -> usize {
        match self.which {
            OneSided::Latency(_) => 1,
            _ => self.settings.window,
        }
    }

    fn synchronisation(&self) -> Synchronisation {
        let chosen = self.settings.special.synchronisation;
        chosen.unwrap_or(self.which.default_synchronisation())
    }

    /// Whether an iteration has an access there and one back, so that its time counts half.
    fn is_round_trip(&self) -> bool {
        matches!(self.which, OneSided::Latency(_)) && self.synchronisation().is_active()
    }
}

impl Benchmark for Measured<'_> {
    fn measure(&mut self, size_bytes: usize, repetitions: &Repetitions) -> Result<Row> {
        self.samples.reserve(repetitions.iterations);
        let (world, depth) = (self.world, self.depth());
        let mut window = Window::new(world, self.settings.special.origin, size_bytes * depth)?;
        window.pair_with(1 - world.rank() as i32)?;
        window.outgoing().fill(1);
        window.incoming().fill(2);
        let mut exercise = Repeated {
            window,
            world,
            which: self.which,
            synchronisation: self.synchronisation(),
            contents: Contents {
                access: self.which.access(),
                kind: self.settings.kind,
                rank: world.rank(),
                size_bytes,
                depth,
            },
        };
        world.barrier()?;
        exercise.begin()?;
        // The window's contents are set by one rank and changed by the other, so that there must be
        // a barrier in between.
        let repetitions = Repetitions {
            validation_warmup: repetitions.validation_warmup.max(1),
            ..*repetitions
        };
        let timing = timing::time(&mut exercise, &repetitions, &mut self.samples)?;
        exercise.end()?;
        world.barrier()?;
        drop(exercise);
        let passed = agree::passed(world, timing.mismatches, self.settings)?;
        let mean_seconds = timing.seconds / repetitions.iterations as f64;
        let (value, scale) = self.figure(size_bytes, mean_seconds);
        self.samples
            .iter_mut()
            .for_each(|sample| *sample = scale(*sample));
        Ok(Row {
            size_bytes,
            value,
            iterations: repetitions.iterations,
            passed,
            ..spread_of(&mut self.samples, self.settings)
        })
    }
}

impl Measured<'_> {
    /// The figure for a mean time, and how to turn one sample's seconds into it.
    fn figure(&self, size_bytes: usize, mean_seconds: f64) -> (f64, Box<dyn Fn(f64) -> f64>) {
        let scale: Box<dyn Fn(f64) -> f64> = match self.which {
            OneSided::Latency(_) => {
                let accesses = if self.is_round_trip() { 2.0 } else { 1.0 };
                Box::new(move |seconds| seconds * 1e6 / accesses)
            }
            OneSided::Bandwidth(_) | OneSided::Bidirectional(_) => {
                let directions = match self.which {
                    OneSided::Bidirectional(_) => Directions::Both,
                    _ => Directions::One,
                };
                let megabytes = megabytes(size_bytes, self.settings.window, directions);
                Box::new(move |seconds| megabytes / seconds)
            }
        };
        (scale(mean_seconds), scale)
    }
}

/// A window with its accesses; what timing repeats.
struct Repeated<'a> {
    window: Window<'a>,
    world: &'a Communicator<'a>,
    which: OneSided,
    synchronisation: Synchronisation,
    contents: Contents,
}

impl Repeated<'_> {
    /// Whether this rank accesses the other's window in a one-way exercise.
    fn leads(&self) -> bool {
        self.world.rank() == 0
    }

    /// Before the first iteration: the lock that flushes need is held throughout.
    fn begin(&mut self) -> Result<()> {
        match self.leads() && self.synchronisation.holds_lock() {
            true => self.window.lock(1),
            false => Ok(()),
        }
    }

    fn end(&mut self) -> Result<()> {
        match self.leads() && self.synchronisation.holds_lock() {
            true => self.window.unlock(1),
            false => Ok(()),
        }
    }

    /// Which ranks an iteration has accesses from: rank 0, and rank 1 when it is bidirectional.
    fn is_two_way(&self) -> bool {
        match self.which {
            OneSided::Latency(_) => self.synchronisation.is_active(),
            OneSided::Bandwidth(_) => false,
            OneSided::Bidirectional(_) => true,
        }
    }
}

impl Exercise for Repeated<'_> {
    fn prepare(&mut self, iteration: usize) {
        let accesses = self.leads() || self.is_two_way();
        let is_accessed = !self.leads() || self.is_two_way();
        self.contents
            .prepare(&mut self.window, iteration, accesses, is_accessed);
    }

    fn settle(&mut self) -> Result<()> {
        self.world.barrier()
    }

    #[inline]
    fn exchange(&mut self, _iteration: usize) -> Result<()> {
        let other = 1 - self.world.rank() as i32;
        let contents = self.contents;
        let accesses = |window: &mut Window<'_>| contents.access_all(window, other);
        match self.which {
            OneSided::Latency(_) if self.synchronisation.is_active() => self
                .synchronisation
                .round_trip(&mut self.window, self.world.rank() == 0, accesses),
            OneSided::Bidirectional(_) => self.synchronisation.both(&mut self.window, accesses),
            _ => self
                .synchronisation
                .one_way(&mut self.window, self.world.rank() == 0, accesses),
        }
    }

    /// Local completion is not arrival; and the other rank must be done as well.
    fn conclude(&mut self) -> Result<()> {
        if self.leads() && self.synchronisation.holds_lock() {
            self.window.flush(1)?;
        }
        self.world.barrier()
    }

    fn mismatches(&mut self, iteration: usize) -> u64 {
        let accesses = self.leads() || self.is_two_way();
        let is_accessed = !self.leads() || self.is_two_way();
        self.contents
            .mismatches(&mut self.window, iteration, accesses, is_accessed)
    }
}
