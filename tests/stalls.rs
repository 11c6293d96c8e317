// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of what happens within a time, on a machine that stands still now and then. Included by the
//! tests of mount/files and crates/udp.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often a law is tried at most. Chosen.
const TRIES: usize = 5;
/// How long the thread that notices a stall sleeps.
const TICK: Duration = Duration::from_millis(5);

/// Tries a law once more where it failed and this machine had let a thread wait for a processor for
/// `stall` or longer meanwhile. A law that is broken fails without that.
///
/// # Panics
/// If the law does, each time or on a machine that did not stand still.
pub fn unless_stalled(stall: Duration, law: impl Fn()) {
    for _ in 1..TRIES {
        let (outcome, longest) = watched(&law);
        match outcome {
            Ok(()) => return,
            Err(failure) if longest < stall => resume_unwind(failure),
            Err(_) => eprintln!("a thread waited for {longest:?}: once more"),
        }
    }
    law();
}

/// What came of it, and for how long a thread that wanted to run did not at most.
fn watched(law: impl Fn()) -> (std::thread::Result<()>, Duration) {
    let (law_is_over, is_over) = channel::<()>();
    let watcher = std::thread::spawn(move || {
        let (mut longest, mut began) = (Duration::ZERO, Instant::now());
        while is_over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            longest = longest.max(began.elapsed().saturating_sub(TICK));
            began = Instant::now();
        }
        longest.max(began.elapsed().saturating_sub(TICK))
    });
    let outcome = catch_unwind(AssertUnwindSafe(law));
    drop(law_is_over);
    (outcome, watcher.join().unwrap_or(Duration::MAX))
}

#[test]
fn a_law_that_is_broken_is_tried_once_on_a_machine_that_runs() {
    let tries = std::cell::Cell::new(0);
    let law = || {
        tries.set(tries.get() + 1);
        panic!("it is broken");
    };
    let long = Duration::from_secs(1000);
    let failure = catch_unwind(AssertUnwindSafe(|| unless_stalled(long, law)));
    assert!(failure.is_err() && tries.get() == 1);
}

#[test]
fn a_law_that_a_stall_breaks_is_tried_again_and_not_for_ever() {
    for (broken, wanted) in [(2, Some(3)), (usize::MAX, None)] {
        let tries = std::cell::Cell::new(0);
        let law = || {
            tries.set(tries.get() + 1);
            assert!(tries.get() > broken, "it is broken");
        };
        let failure = catch_unwind(AssertUnwindSafe(|| unless_stalled(Duration::ZERO, law)));
        assert_eq!(failure.is_err(), wanted.is_none());
        assert_eq!(tries.get(), wanted.unwrap_or(TRIES));
    }
}
