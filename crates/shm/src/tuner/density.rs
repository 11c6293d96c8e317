// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether long messages follow each other closely, by size class. Pure but for the clock that is
//! passed in. Asked by send before it offers a message's memory to be shared.
//!
//! Where a program computes between two messages it writes its buffer anew. The sender's processor
//! then takes back each line that the receiver has copied out of shared memory, which costs about
//! what the second copy costs otherwise (docs/lab/2026-11-29-what-sharing-brings-programs.md). So
//! sharing brings nothing there, and only costs. It pays where little but messages goes on.

use std::time::Instant;

/// Messages of a window. Chosen: as those of a sender's tuner.
const WINDOW: u8 = 8;

/// Time from one message to the next in which they follow each other closely: so much and a
/// nanosecond a byte, which is about ten copies. Measured, as above: ranks that send each other
/// messages, and read and write all of them in between, take 0.9 ns a byte; programs from 1.8 on.
const SLACK_NS: u64 = 8_000;

/// Windows in a row that must be longer before messages are taken to be far apart. Chosen: one may
/// have been interrupted.
const SPARSE_WINDOWS: u8 = 2;

/// Size classes by the binary logarithm of the length; longer ones are of the last.
const CLASSES: usize = 32;

/// What is known of a size class.
#[derive(Clone, Copy, Debug)]
struct Class {
    began: Option<Instant>,
    /// Messages of this window so far, and their bytes.
    count: u8,
    bytes: u64,
    /// Windows in a row that were longer.
    sparse_windows: u8,
}

/// What is known of all classes.
#[derive(Debug)]
pub(crate) struct Density {
    classes: [Class; CLASSES],
}

impl Density {
    /// Nothing was sent yet: then messages are taken to be far apart.
    pub(crate) fn new() -> Self {
        let class = Class {
            began: None,
            count: 0,
            bytes: 0,
            sparse_windows: SPARSE_WINDOWS,
        };
        Self {
            classes: [class; CLASSES],
        }
    }

    /// Counts a message that is about to be sent; whether those of its class follow each other
    /// closely. The clock is asked at the ends of windows only.
    pub(crate) fn is_close(&mut self, bytes: usize, clock: impl FnOnce() -> Instant) -> bool {
        let index = (bytes.max(1).ilog2() as usize).min(CLASSES - 1);
        let class = &mut self.classes[index];
        if class.count == 0 {
            let now = clock();
            if let Some(began) = class.began.replace(now) {
                let took_ns = now.saturating_duration_since(began).as_nanos();
                let limit_ns = u64::from(WINDOW) * SLACK_NS + class.bytes;
                class.sparse_windows = match took_ns <= u128::from(limit_ns) {
                    true => 0,
                    false => class.sparse_windows.saturating_add(1),
                };
            }
            class.bytes = 0;
        }
        class.count = (class.count + 1) % WINDOW;
        class.bytes = class.bytes.saturating_add(bytes as u64);
        class.sparse_windows < SPARSE_WINDOWS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// How many of some messages are found to be close, each of which comes `apart` after the one
    /// before.
    fn close_of(
        density: &mut Density,
        now: &mut Instant,
        bytes: usize,
        messages: usize,
        apart: Duration,
    ) -> usize {
        let is_close = |_: &usize| {
            *now += apart;
            density.is_close(bytes, || *now)
        };
        (0..messages).filter(is_close).count()
    }

    const KIB: usize = 1024;
    const NEAR: Duration = Duration::from_micros(50);
    const FAR: Duration = Duration::from_millis(1);

    #[test]
    fn messages_are_close_once_a_window_of_them_was() {
        let (mut density, mut now) = (Density::new(), Instant::now());
        assert_eq!(close_of(&mut density, &mut now, 64 * KIB, 100, NEAR), 92);
        assert_eq!(close_of(&mut density, &mut now, 256 * KIB, 9, NEAR), 1);
    }

    #[test]
    fn messages_are_far_apart_where_a_program_computes_between_them() {
        let (mut density, mut now) = (Density::new(), Instant::now());
        assert_eq!(close_of(&mut density, &mut now, 64 * KIB, 1000, FAR), 0);
        let second = Duration::from_millis(60);
        assert_eq!(close_of(&mut density, &mut now, 32 << 20, 100, second), 0);
    }

    #[test]
    fn an_interruption_changes_nothing_but_computing_does() {
        let (mut density, mut now) = (Density::new(), Instant::now());
        close_of(&mut density, &mut now, 64 * KIB, 100, NEAR);
        for _ in 0..10 {
            assert_eq!(close_of(&mut density, &mut now, 64 * KIB, 1, 4 * FAR), 1);
            assert_eq!(close_of(&mut density, &mut now, 64 * KIB, 23, NEAR), 23);
        }
        assert!(close_of(&mut density, &mut now, 64 * KIB, 100, FAR) < 32);
        assert_eq!(close_of(&mut density, &mut now, 64 * KIB, 100, FAR), 0);
        assert!(close_of(&mut density, &mut now, 64 * KIB, 100, NEAR) > 80);
    }

    #[test]
    fn the_clock_is_asked_once_in_a_window() {
        let (mut density, now, mut asked) = (Density::new(), Instant::now(), 0);
        for _ in 0..80 {
            density.is_close(KIB, || {
                asked += 1;
                now
            });
        }
        assert_eq!(asked, 10);
        assert!(density.is_close(usize::MAX, || now + NEAR) || asked == 10);
    }
}
