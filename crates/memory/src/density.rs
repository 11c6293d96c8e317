// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether long messages, or calls with long data, follow each other closely, by size class. Pure
//! but for the clock that is passed in. Asked by shm before it offers a message's memory to be
//! shared, and by intercept before it shows a call's data.
//!
//! Where a program computes between two messages it writes its buffer anew. The sender's processor
//! then takes back each line that the receiver has copied out of shared memory, which costs about
//! what the second copy costs otherwise (docs/lab/2026-11-29-what-sharing-brings-programs.md). So
//! sharing brings nothing there, and only costs. It pays where little but messages goes on.

use std::time::Instant;

/// Messages in a row, each timed, that must have followed each other closely before they are taken
/// to do so. Chosen: benchmarks send ten to warm up, so that one of these may come late; programs
/// with neighbours in three dimensions send six at a time, and compute then.
const RUN: u8 = 6;

/// Messages of a window, by which it is seen that they do so no longer. Chosen: as those of a
/// sender's tuner.
const WINDOW: u8 = 8;

/// Time from one message to the next in which they follow each other closely: so much and a
/// nanosecond a byte, which is about ten copies. Measured, as above: ranks that send each other
/// messages, and read and write all of them in between, take 0.9 ns a byte; programs from 1.8 on.
const SLACK_NS: u64 = 8_000;

/// Windows in a row that must be longer before messages are taken to be far apart. Chosen: one may
/// have been interrupted.
const FAR_WINDOWS: u8 = 2;

/// Size classes by the binary logarithm of the length; longer ones are of the last.
const CLASSES: usize = 32;

/// What is known of a size class.
#[derive(Clone, Copy, Debug)]
struct Class {
    is_close: bool,
    /// When the run or the window began.
    began: Option<Instant>,
    /// Its messages so far, and their bytes.
    count: u8,
    bytes: u64,
    /// Windows in a row that were longer.
    far_windows: u8,
}

impl Class {
    const NEW: Self = Self {
        is_close: false,
        began: None,
        count: 0,
        bytes: 0,
        far_windows: 0,
    };

    fn begin(&mut self, now: Instant) {
        (self.began, self.count, self.bytes) = (Some(now), 0, 0);
    }

    /// Whether what was sent since the beginning took no longer than it may, up to now.
    fn is_within(&self, now: Instant) -> bool {
        let limit_ns = u128::from(self.bytes) + u128::from(u64::from(self.count) * SLACK_NS);
        self.began
            .is_some_and(|began| now.saturating_duration_since(began).as_nanos() <= limit_ns)
    }

    /// Of messages that were close: for how many the next one counts.
    fn go_on(&mut self, clock: impl FnOnce() -> Instant) -> u64 {
        if self.count == WINDOW {
            let now = clock();
            self.far_windows = match self.is_within(now) {
                true => 0,
                false => self.far_windows + 1,
            };
            self.is_close = self.far_windows < FAR_WINDOWS;
            self.begin(now);
        }
        u64::from(self.is_close)
    }

    /// Of messages that were far apart, or are the first: for how many the next one counts.
    fn look(&mut self, now: Instant) -> u64 {
        if !self.is_within(now) {
            self.begin(now);
            return 0;
        }
        if self.count < RUN {
            return 0;
        }
        let run = u64::from(self.count) + 1;
        (self.is_close, self.far_windows) = (true, 0);
        self.begin(now);
        run
    }
}

/// What is known of all classes.
#[derive(Debug)]
pub struct Density {
    classes: [Class; CLASSES],
}

impl Density {
    /// Nothing was sent yet: then messages are taken to be far apart.
    pub const fn new() -> Self {
        Self {
            classes: [Class::NEW; CLASSES],
        }
    }

    /// Notes a message that is about to be sent; for how many messages it counts that followed each
    /// other closely: 0 if those of its class are far apart, 1 if they are close, and the whole run
    /// at the message by which that is found out. The clock is asked for each message as long as
    /// they are far apart, then once for eight.
    #[inline]
    pub fn note(&mut self, bytes: usize, clock: impl FnOnce() -> Instant) -> u64 {
        let index = (bytes.max(1).ilog2() as usize).min(CLASSES - 1);
        let class = &mut self.classes[index];
        let counts = match class.is_close {
            true => class.go_on(clock),
            false => class.look(clock()),
        };
        class.count += 1;
        class.bytes = class.bytes.saturating_add(bytes as u64);
        counts
    }
}

impl Default for Density {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// For how many messages each of some counts, of which each comes `apart` after the one before.
    fn counts_of(
        density: &mut Density,
        now: &mut Instant,
        bytes: usize,
        messages: usize,
        apart: Duration,
    ) -> Vec<u64> {
        let count = |_| {
            *now += apart;
            density.note(bytes, || *now)
        };
        (0..messages).map(count).collect()
    }

    fn close_of(
        density: &mut Density,
        now: &mut Instant,
        bytes: usize,
        messages: usize,
        apart: Duration,
    ) -> usize {
        let counts = counts_of(density, now, bytes, messages, apart);
        counts.into_iter().filter(|&count| count > 0).count()
    }

    const KIB: usize = 1024;
    const NEAR: Duration = Duration::from_micros(50);
    const FAR: Duration = Duration::from_millis(1);

    #[test]
    fn messages_are_close_once_a_run_of_them_was_and_then_all_of_it_counts() {
        let (mut density, mut now) = (Density::new(), Instant::now());
        let counts = counts_of(&mut density, &mut now, 64 * KIB, 100, NEAR);
        assert_eq!(counts[..8], [0, 0, 0, 0, 0, 0, 7, 1]);
        assert_eq!(counts.iter().sum::<u64>(), 100);
        assert_eq!(close_of(&mut density, &mut now, 256 * KIB, 7, NEAR), 1);
    }

    #[test]
    fn messages_are_close_within_a_warm_up_of_ten_though_one_came_late() {
        for late in 0..3 {
            let (mut density, mut now) = (Density::new(), Instant::now());
            close_of(&mut density, &mut now, 64 * KIB, late, NEAR);
            close_of(&mut density, &mut now, 64 * KIB, 1, FAR);
            let close = close_of(&mut density, &mut now, 64 * KIB, 9 - late, NEAR);
            assert!(close >= 1, "{late}");
        }
    }

    #[test]
    fn messages_are_far_apart_where_a_program_computes_between_them() {
        let (mut density, mut now) = (Density::new(), Instant::now());
        assert_eq!(close_of(&mut density, &mut now, 64 * KIB, 1000, FAR), 0);
        let second = Duration::from_millis(60);
        assert_eq!(close_of(&mut density, &mut now, 32 << 20, 100, second), 0);
    }

    #[test]
    fn six_at_a_time_are_not_close() {
        let (mut density, mut now) = (Density::new(), Instant::now());
        for _ in 0..100 {
            assert_eq!(close_of(&mut density, &mut now, 64 * KIB, 1, FAR), 0);
            assert_eq!(close_of(&mut density, &mut now, 64 * KIB, 5, NEAR), 0);
        }
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
    fn the_clock_is_asked_once_in_a_window_where_messages_are_close() {
        let (mut density, now, mut asked) = (Density::new(), Instant::now(), 0);
        for _ in 0..usize::from(RUN) + 1 + 80 {
            density.note(KIB, || {
                asked += 1;
                now
            });
        }
        assert_eq!(asked, usize::from(RUN) + 1 + 10);
        for _ in 0..100 {
            density.note(usize::MAX, || now + FAR);
        }
    }
}
