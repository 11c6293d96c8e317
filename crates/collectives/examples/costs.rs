// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What collectives cost between threads of this process: nanoseconds of each call, the median of
//! rounds, beside the hand-over of one cache line and back, halved.
//!
//! `cargo run --release -p weft-collectives --example costs -- [RANKS]`, on a machine where each
//! rank has a core.

use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use weft_collectives::{
    Blocks, Element, Fault, Operation, Reduction, Reductions, Shape, Stopped, Team, Wait,
    segment_bytes,
};
use weft_memory::{BytesView, BytesViewMut};

/// Rounds, of which the median is told.
const ROUNDS: usize = 15;

struct Patient;

impl Wait for Patient {
    fn pause(&mut self, spins: u32) -> Result<(), Stopped> {
        if spins > 100_000 {
            std::thread::yield_now();
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Address(NonNull<u8>);
// SAFETY: shared memory for all threads.
unsafe impl Send for Address {}

/// One call of a rank.
type Work = fn(&mut Team, &mut [u8], &mut [u8]) -> Result<(), Fault>;

fn sum() -> Reduction {
    Reduction::new(Element::F64, Operation::Sum).expect("known")
}

const WORKS: [(&str, Work); 5] = [
    ("barrier", |team, _, _| team.barrier(&mut Patient)),
    ("bcast", |team, send, _| {
        team.bcast(&mut Patient, BytesViewMut::from_slice(send), 0)?;
        team.barrier(&mut Patient)
    }),
    ("allreduce", |team, send, recv| {
        let recv = BytesViewMut::from_slice(recv);
        team.allreduce(&mut Patient, Some(BytesView::from_slice(send)), recv, sum())
    }),
    ("allgather", |team, send, recv| {
        let ranks = team.ranks();
        let block = send.len() / ranks;
        let send = BytesView::from_slice(&send[..block]);
        let recv = BytesViewMut::from_slice(recv);
        team.allgather(&mut Patient, Some(send), recv, Blocks::Even(block))
    }),
    ("alltoall", |team, send, recv| {
        let blocks = Blocks::Even(send.len() / team.ranks());
        let recv = BytesViewMut::from_slice(recv);
        team.alltoall(
            &mut Patient,
            Some(BytesView::from_slice(send)),
            recv,
            blocks,
            blocks,
        )
    }),
];

/// Nanoseconds of one call, by the first rank's clock.
fn time(ranks: usize, work: Work, length_bytes: usize) -> f64 {
    let layout = Layout::from_size_align(segment_bytes(ranks), 4096).expect("layout");
    // SAFETY: the layout is not empty; the memory is never freed.
    let base = Address(NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory"));
    let count = (40_000_000 / (length_bytes + 2000)).clamp(20, 20_000);
    let start = Barrier::new(ranks);
    let mut medians = std::thread::scope(|scope| {
        let start = &start;
        let rank = |rank| {
            scope.spawn(move || {
                let Address(base) = { base };
                // SAFETY: the memory is as long as needed, zeroed, and never freed.
                let team = unsafe { Team::attach(base, ranks, rank, &Shape::flat(ranks, false)) };
                let mut team = team.expect("attached");
                let (mut send, mut recv) = (vec![1; length_bytes], vec![0; length_bytes]);
                start.wait();
                let round = |_| {
                    let begun = Instant::now();
                    for _ in 0..count {
                        work(&mut team, &mut send, &mut recv).expect("done");
                    }
                    begun.elapsed().as_nanos() as f64 / count as f64
                };
                (0..ROUNDS).map(round).collect::<Vec<f64>>()
            })
        };
        let threads: Vec<_> = (0..ranks).map(rank).collect();
        let mut rounds = threads
            .into_iter()
            .map(|thread| thread.join().expect("rank"));
        rounds.next().expect("a rank")
    });
    medians.sort_by(f64::total_cmp);
    medians[ROUNDS / 2]
}

/// Nanoseconds in which a line gets from one thread to another.
fn hand_over() -> f64 {
    #[repr(align(128))]
    struct Line(AtomicU64);
    let lines = [Line(AtomicU64::new(0)), Line(AtomicU64::new(0))];
    const COUNT: u64 = 200_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 1..=COUNT {
                while lines[0].0.load(Ordering::Acquire) != turn {}
                lines[1].0.store(turn, Ordering::Release);
            }
        });
        let begun = Instant::now();
        for turn in 1..=COUNT {
            lines[0].0.store(turn, Ordering::Release);
            while lines[1].0.load(Ordering::Acquire) != turn {}
        }
        begun.elapsed().as_nanos() as f64 / (2 * COUNT) as f64
    })
}

fn main() {
    let ranks = std::env::args()
        .nth(1)
        .map_or(2, |text| text.parse().expect("RANKS"));
    println!("hand-over {:.0} ns", hand_over());
    println!(
        "{:>9} {}",
        "bytes",
        WORKS.map(|(name, _)| format!("{name:>11}")).join("")
    );
    for power in [3, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22] {
        let length_bytes = 1 << power;
        let times = WORKS.map(|(_, work)| format!("{:>11.0}", time(ranks, work, length_bytes)));
        println!("{length_bytes:>9} {}", times.join(""));
    }
    println!("hand-over {:.0} ns", hand_over());
}
