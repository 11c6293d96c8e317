// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What one MPI call costs through this crate: a send to and a receive from nobody, which return at
//! once.
//!
//! `call_cost.c` does the same in C, linked directly: `mpicc -O2 call_cost.c -o call_cost &&
//! mpiexec -n 1 ./call_cost`, and `mpiexec -n 1 target/release/examples/call_cost`. Both print the
//! median over blocks in nanoseconds per pair of calls.

use std::time::Instant;
use weft_mpi::{Communicator, Datatype, Result, Session};

const BLOCKS: usize = 201;
const PAIRS: usize = 20_000;

fn main() -> Result<()> {
    let session = Session::init()?;
    let world = Communicator::world(&session)?;
    let nobody = session.library().abi().null_process();
    let (given, mut taken) = ([1u8; 8], [0u8; 8]);
    let mut blocks: Vec<f64> = Vec::with_capacity(BLOCKS);
    for _ in 0..BLOCKS {
        let start = Instant::now();
        for _ in 0..PAIRS {
            world.send(&given, Datatype::Char, nobody, 1)?;
            world.recv(&mut taken, Datatype::Char, nobody, 1)?;
        }
        blocks.push(start.elapsed().as_secs_f64() * 1e9 / PAIRS as f64);
    }
    blocks.sort_by(f64::total_cmp);
    println!(
        "rust {:.2} ns per pair (P10 {:.2})",
        blocks[BLOCKS / 2],
        blocks[BLOCKS / 10]
    );
    drop(world);
    session.finalize()
}
