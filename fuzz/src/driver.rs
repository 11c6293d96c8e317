// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes inputs from a seed and runs a target on them for some time. Called by main and by the
//! short test.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::time::{Duration, Instant};

use weft_srd::random::Random;

/// Longest input. Chosen: some thousand decisions of the machine's world.
const INPUT_BYTES_MOST: u64 = 16 << 10;

/// The input that a seed stands for.
pub fn input_of(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    // Short ones are quick, long ones go deep.
    let most = 1 << random.below(INPUT_BYTES_MOST.ilog2().into());
    let length = 16 + random.below(most * 2);
    (0..length).map(|_| (random.number() >> 24) as u8).collect()
}

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
}

/// Says with each panic which seed it was, for builds in which a panic ends the process.
fn name_seeds() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            eprintln!("with the input of seed {}:", SEED.get());
            usual(panic);
        }));
    });
}

/// A panic of a target, with what brings it back.
#[derive(Debug)]
pub struct Finding {
    /// The seed of the input.
    pub seed: u64,
    /// Inputs that passed before.
    pub passed_count: u64,
}

/// Runs a target on the inputs of `first_seed` and the seeds after it, until the time is over.
///
/// # Errors
/// The first input that makes it panic; the panic's own words are on stderr.
pub fn run(target: fn(&[u8]), first_seed: u64, time: Duration) -> Result<u64, Finding> {
    name_seeds();
    let start = Instant::now();
    let mut passed_count = 0;
    while passed_count == 0 || start.elapsed() < time {
        let seed = first_seed.wrapping_add(passed_count);
        SEED.set(seed);
        let input = input_of(seed);
        panic::catch_unwind(AssertUnwindSafe(|| target(&input)))
            .map_err(|_| Finding { seed, passed_count })?;
        passed_count += 1;
    }
    Ok(passed_count)
}
