// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `latency_mt`: the latency between threads of two ranks, all of which call MPI at once.
//!
//! Made by pt2pt, called by runner. Rank 0 has the sending threads, rank 1 the receiving ones. Each
//! exchange is one message there and one back; thread r of n does every n-th exchange. The figure
//! is half the mean time of an exchange over all sending threads, so it can be compared with
//! latency. OSU's figure is this one times the number of sending threads.

use super::latency::spread_of;
use crate::agree;
use crate::benchmark::{Benchmark, Row};
use crate::options::Settings;
use crate::pattern::{self, Message};
use crate::timing::{Repetitions, Timing};
use std::sync::Barrier;
use std::time::Instant;
use weft_mpi::{Buffer, Communicator, Result, Shared};

/// Tags of a message and its answer when one thread sends all (specified by OSU).
const SHARED_TAGS: (i32, i32) = (1, 2);
/// Tags go up to here and then start again; every MPI allows this one (specified: MPI_TAG_UB is at
/// least 32767).
const TAG_LIMIT: usize = 32_768;

pub(super) struct Threads<'a> {
    world: &'a Communicator<'a>,
    shared: Shared<'a>,
    settings: &'a Settings,
    buffers: Vec<Buffers>,
    samples: Vec<f64>,
}

/// What one thread does.
struct Task<'a> {
    shared: Shared<'a>,
    settings: &'a Settings,
    repetitions: &'a Repetitions,
    size_bytes: usize,
    thread: usize,
}

/// What a thread sends from and receives into.
struct Buffers {
    outgoing: Buffer,
    incoming: Buffer,
}

impl<'a> Threads<'a> {
    /// The runner has asked MPI for threads.
    ///
    /// # Errors
    /// `Argument` when MPI does not allow threads.
    pub(super) fn new(world: &'a Communicator<'a>, settings: &'a Settings) -> Result<Self> {
        let shared = Shared::of(world).ok_or_else(|| {
            weft_mpi::Error::refused(
                "thread level",
                format!("{:?}", world.session().granted()),
                "latency_mt needs MPI_THREAD_MULTIPLE; this MPI or its transport does not grant it",
            )
        })?;
        let buffers = |_| Buffers {
            outgoing: Buffer::new(settings.max_bytes),
            incoming: Buffer::new(settings.max_bytes),
        };
        let own = settings.special.helpers.of(world.rank());
        Ok(Self {
            world,
            shared,
            settings,
            buffers: (0..own).map(buffers).collect(),
            samples: Vec::new(),
        })
    }
}

impl Benchmark for Threads<'_> {
    fn measure(&mut self, size_bytes: usize, repetitions: &Repetitions) -> Result<Row> {
        self.world.barrier()?;
        let (shared, settings) = (self.shared, self.settings);
        let line = Barrier::new(self.buffers.len());
        let results: Vec<Result<(Timing, Vec<f64>)>> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .buffers
                .iter_mut()
                .enumerate()
                .map(|(thread, buffers)| {
                    let task = Task {
                        shared,
                        settings,
                        repetitions,
                        size_bytes,
                        thread,
                    };
                    let line = &line;
                    scope.spawn(move || task.run(buffers, line))
                })
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined
                .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let (mut whole, mut mismatches) = (0.0, 0);
        self.samples.clear();
        for result in results {
            let (timing, samples) = result?;
            whole += timing.seconds;
            mismatches += timing.mismatches;
            self.samples
                .extend(samples.iter().map(|seconds| seconds * 1e6 / 2.0));
        }
        Ok(Row {
            size_bytes,
            value: whole * 1e6 / (2.0 * repetitions.iterations as f64),
            iterations: repetitions.iterations,
            passed: agree::passed(self.world, mismatches, self.settings)?,
            ..spread_of(&mut self.samples, self.settings)
        })
    }
}

impl Task<'_> {
    /// Every n-th exchange, of which those after the warm-up are timed, each by itself.
    fn run(&self, buffers: &mut Buffers, line: &Barrier) -> Result<(Timing, Vec<f64>)> {
        let leads = self.shared.rank() == 0;
        let step = self.settings.special.helpers.of(self.shared.rank());
        let mut samples = Vec::with_capacity(self.repetitions.iterations / step + 1);
        let mut timing = Timing::default();
        for buffer in [&mut buffers.outgoing, &mut buffers.incoming] {
            buffer.bytes()[..self.size_bytes].fill(b'a');
        }
        line.wait();
        for exchange in
            (self.thread..self.repetitions.warmup + self.repetitions.iterations).step_by(step)
        {
            if self.repetitions.validate {
                self.prepare(buffers, exchange);
            }
            let start = Instant::now();
            self.exchange(buffers, exchange)?;
            let seconds = start.elapsed().as_secs_f64();
            if self.repetitions.validate {
                let expected = self.message(exchange, !leads);
                let bytes = &buffers.incoming.bytes()[..self.size_bytes];
                timing.mismatches += pattern::mismatches(bytes, expected);
            }
            if exchange >= self.repetitions.warmup {
                timing.seconds += seconds;
                samples.push(seconds);
            }
        }
        Ok((timing, samples))
    }

    fn prepare(&self, buffers: &mut Buffers, exchange: usize) {
        let leads = self.shared.rank() == 0;
        pattern::fill(
            &mut buffers.outgoing.bytes()[..self.size_bytes],
            self.message(exchange, leads),
        );
        pattern::spoil(
            &mut buffers.incoming.bytes()[..self.size_bytes],
            self.message(exchange, !leads),
        );
    }

    fn message(&self, exchange: usize, of_leader: bool) -> Message {
        Message {
            size_bytes: self.size_bytes,
            iteration: exchange,
            sender: usize::from(!of_leader),
            receiver: usize::from(of_leader),
        }
    }

    #[inline]
    fn exchange(&self, buffers: &mut Buffers, exchange: usize) -> Result<()> {
        let shared = &self.shared;
        let (out, into) = (
            &buffers.outgoing.bytes()[..self.size_bytes],
            &mut buffers.incoming.bytes()[..self.size_bytes],
        );
        let (there, back) = self.tags(exchange);
        let kind = self.settings.kind;
        if shared.rank() == 0 {
            shared.send(out, kind, 1, there)?;
            shared.recv(into, kind, 1, back)
        } else {
            shared.recv(into, kind, 0, there)?;
            shared.send(out, kind, 0, back)
        }
    }

    /// With one sending thread any receiving one may take a message. With several, or when contents
    /// are checked, each exchange has its own tag, by which the two threads find each other.
    fn tags(&self, exchange: usize) -> (i32, i32) {
        if self.settings.special.helpers.senders == 1 && !self.repetitions.validate {
            return SHARED_TAGS;
        }
        let tag = (exchange % TAG_LIMIT) as i32;
        (tag, tag)
    }
}
