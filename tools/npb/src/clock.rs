// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a rank spends in MPI's calls.
//!
//! Called by ft, field and is around each call that they time.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Time of one rank in MPI's calls since it was last set to zero.
#[derive(Debug, Default)]
pub struct Clock(Cell<Duration>);

impl Clock {
    /// Carries out a call and adds its time.
    pub fn during<T>(&self, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let answer = call();
        self.0.set(self.0.get() + start.elapsed());
        answer
    }

    /// The seconds until now; starts from zero again.
    pub fn take_s(&self) -> f64 {
        self.0.take().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_add_up_until_they_are_taken() {
        let clock = Clock::default();
        let pause = || std::thread::sleep(Duration::from_millis(2));
        clock.during(pause);
        clock.during(pause);
        assert!(clock.take_s() >= 0.004);
        assert_eq!(clock.take_s(), 0.0);
    }
}
