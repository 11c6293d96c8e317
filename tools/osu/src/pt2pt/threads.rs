// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `latency_mt`: the latency between threads of two ranks, all of which call MPI at once.
//!
//! Made by catalogue, called by runner. Rank 0 has the sending threads, rank 1 the receiving ones; each exchange is one message
//! there and one back, thread r of n does every n-th exchange. The figure is half the mean time of an exchange over all sending
//! threads, so that it compares with latency; OSU's is this times the number of sending threads.

use super::latency::spread_of;
use crate::agree;
use crate::format::Row;
use crate::options::Settings;
use crate::pattern::{self, Message};
use crate::runner::Benchmark;
use crate::timing::{Plan, Timing};
use std::sync::Barrier;
use std::time::Instant;
use weft_mpi::{Buffer, Communicator, Result, Shared};

/// Tags of a message and its answer when one thread sends all (specified by OSU).
const SHARED_TAGS: (i32, i32) = (1, 2);
/// Tags go up to here and then start again; every MPI allows this one (specified: MPI_TAG_UB is at least 32767).
const TAG_LIMIT: usize = 32_768;

struct Threads<'a> {
    world: &'a Communicator<'a>,
    shared: Shared<'a>,
    settings: &'a Settings,
    buffers: Vec<[Buffer; 2]>,
    samples: Vec<f64>,
}

/// What one thread does.
struct Task<'a> {
    shared: Shared<'a>,
    settings: &'a Settings,
    plan: &'a Plan,
    size_bytes: usize,
    thread: usize,
}

/// Makes it. The runner has asked MPI for threads.
///
/// # Errors
/// `Argument` when MPI does not allow threads.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
) -> Result<Box<dyn Benchmark + 'a>> {
    let shared = world.shared().ok_or_else(|| {
        let limit =
            "latency_mt needs MPI_THREAD_MULTIPLE; this MPI or its transport does not grant it";
        weft_mpi::Error::refused(
            "thread level",
            format!("{:?}", world.session().granted()),
            limit,
        )
    })?;
    let (senders, receivers) = settings.special.threads;
    let own = if world.rank() == 0 {
        senders
    } else {
        receivers
    };
    let pair = || [0, 1].map(|_| Buffer::new(settings.max_bytes));
    Ok(Box::new(Threads {
        world,
        shared,
        settings,
        buffers: (0..own).map(|_| pair()).collect(),
        samples: Vec::new(),
    }))
}

impl Benchmark for Threads<'_> {
    fn measure(&mut self, size_bytes: usize, plan: &Plan) -> Result<Row> {
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
                        plan,
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
            value: whole * 1e6 / (2.0 * plan.iterations as f64),
            iterations: plan.iterations,
            passed: agree::passed(self.world, mismatches, self.settings)?,
            ..spread_of(&mut self.samples, self.settings)
        })
    }
}

impl Task<'_> {
    /// Every n-th exchange, of which those after the warm-up are timed, each by itself.
    fn run(&self, buffers: &mut [Buffer; 2], line: &Barrier) -> Result<(Timing, Vec<f64>)> {
        let (senders, receivers) = self.settings.special.threads;
        let leads = self.shared.rank() == 0;
        let step = if leads { senders } else { receivers };
        let mut samples = Vec::with_capacity(self.plan.iterations / step + 1);
        let mut timing = Timing::default();
        for buffer in buffers.iter_mut() {
            buffer.bytes()[..self.size_bytes].fill(b'a');
        }
        line.wait();
        for exchange in (self.thread..self.plan.warmup + self.plan.iterations).step_by(step) {
            if self.plan.validate {
                self.prepare(buffers, exchange);
            }
            let start = Instant::now();
            self.exchange(buffers, exchange)?;
            let seconds = start.elapsed().as_secs_f64();
            if self.plan.validate {
                let expected = self.message(exchange, !leads);
                let bytes = &buffers[1].bytes()[..self.size_bytes];
                timing.mismatches += pattern::mismatches(bytes, expected);
            }
            if exchange >= self.plan.warmup {
                timing.seconds += seconds;
                samples.push(seconds);
            }
        }
        Ok((timing, samples))
    }

    fn prepare(&self, [outgoing, incoming]: &mut [Buffer; 2], exchange: usize) {
        let leads = self.shared.rank() == 0;
        pattern::fill(
            &mut outgoing.bytes()[..self.size_bytes],
            self.message(exchange, leads),
        );
        pattern::spoil(
            &mut incoming.bytes()[..self.size_bytes],
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
    fn exchange(&self, [outgoing, incoming]: &mut [Buffer; 2], exchange: usize) -> Result<()> {
        let shared = &self.shared;
        let (out, into) = (
            &outgoing.bytes()[..self.size_bytes],
            &mut incoming.bytes()[..self.size_bytes],
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

    /// With one sending thread any receiving one may take a message. With several, or when contents are checked, each exchange
    /// has its own tag, by which the two threads find each other.
    fn tags(&self, exchange: usize) -> (i32, i32) {
        if self.settings.special.threads.0 == 1 && !self.plan.validate {
            return SHARED_TAGS;
        }
        let tag = (exchange % TAG_LIMIT) as i32;
        (tag, tag)
    }
}
