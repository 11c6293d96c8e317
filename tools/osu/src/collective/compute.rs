// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Work for the processor while a collective is in flight, with tests of the collective in between.
//!
//! Called by overlap. The work multiplies a small matrix and a vector, which stay in the
//! first-level cache, again and again until the time is over.

use std::time::{Duration, Instant};
use weft_mpi::Result;

/// Rows and columns of the matrix (specified by OSU).
const SIDE: usize = 25;

/// The matrix and the vectors.
pub struct Work {
    matrix: [[f32; SIDE]; SIDE],
    vector: [f32; SIDE],
    product: [f32; SIDE],
}

impl Work {
    /// Any numbers will do, as long as they do not overflow.
    pub fn new() -> Self {
        Self {
            matrix: [[0.02; SIDE]; SIDE],
            vector: [1.0; SIDE],
            product: [0.0; SIDE],
        }
    }

    fn once(&mut self) {
        for (row, product) in self.matrix.iter().zip(&mut self.product) {
            let sum: f32 = row.iter().zip(&self.vector).map(|(a, x)| a * x).sum();
            *product = std::hint::black_box(*product * 0.5 + sum);
        }
    }

    fn for_duration(&mut self, duration: Duration) {
        let start = Instant::now();
        while start.elapsed() < duration {
            self.once();
        }
    }

    /// Works for `seconds` in all, in `tests` equal pieces with a call of `test` after each, or in
    /// one piece without a test. Returns the seconds that the tests took; the work's own time is
    /// not cut short by them.
    ///
    /// # Errors
    /// What `test` reports.
    pub fn run(
        &mut self,
        seconds: f64,
        tests: usize,
        mut test: impl FnMut() -> Result<()>,
    ) -> Result<f64> {
        let piece = Duration::from_secs_f64(seconds.max(0.0) / tests.max(1) as f64);
        if tests == 0 {
            self.for_duration(piece);
            return Ok(0.0);
        }
        let mut tested = 0.0;
        for _ in 0..tests {
            self.for_duration(piece);
            let start = Instant::now();
            test()?;
            tested += start.elapsed().as_secs_f64();
        }
        Ok(tested)
    }
}

impl Default for Work {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_at_least_the_time_asked_for_and_tests_as_often_as_asked() {
        let mut work = Work::new();
        for tests in [0, 1, 7] {
            let (start, mut calls) = (Instant::now(), 0);
            let count = || {
                calls += 1;
                Ok(())
            };
            let tested = work.run(0.002, tests, count).expect("cannot fail");
            assert!(start.elapsed().as_secs_f64() >= 0.0019);
            assert_eq!((calls, tested > 0.0), (tests, tests > 0));
        }
    }

    #[test]
    fn no_time_means_no_work_but_the_tests() {
        let mut calls = 0;
        let mut count = || {
            calls += 1;
            Ok(())
        };
        let tested = Work::new().run(0.0, 3, &mut count).expect("cannot fail");
        assert!(tested >= 0.0);
        assert_eq!(calls, 3);
    }
}
