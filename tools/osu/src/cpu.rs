// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processor time of this rank, of all its threads together.
//!
//! Called by pace around the measurement of a size. Source: getrusage(2). The kernel's network work
//! in interrupts counts only if the kernel charges it to the process.

use nix::sys::resource::{UsageWho, getrusage};

/// Seconds in the program and in the kernel since the process began; 0 where the kernel does not
/// say. One system call.
pub fn seconds() -> f64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| {
        let both = usage.user_time() + usage.system_time();
        both.tv_sec() as f64 + both.tv_usec() as f64 / 1e6
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn time_grows_with_work_in_any_thread_and_not_with_sleep() {
        let before = seconds();
        std::thread::sleep(Duration::from_millis(20));
        let slept = seconds() - before;
        let worker = std::thread::spawn(|| {
            let begin = seconds();
            while seconds() - begin < 0.05 {
                std::hint::black_box(0);
            }
        });
        worker.join().expect("it ends");
        let worked = seconds() - before - slept;
        assert!(worked >= 0.05, "{worked}");
    }
}
