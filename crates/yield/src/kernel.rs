// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is asked of the kernel. Called by `sched_yield` and its pace.
//! Sources: sched_yield(2), getrusage(2), clock_gettime(2).

/// Gives the core to whoever waits for it.
pub fn yield_truly() {
    // SAFETY: the call takes nothing. By number, since the C library's name is ours.
    unsafe { libc::syscall(libc::SYS_sched_yield) };
}

/// How often this thread left its core, of its own accord or not, since it began.
#[must_use]
pub fn times_taken_off() -> u64 {
    // SAFETY: plain data, for which zero is valid.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `used` is ours to write, as large as the call expects.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut used) };
    (used.ru_nvcsw as u64).wrapping_add(used.ru_nivcsw as u64)
}

/// A clock that only goes forwards, in nanoseconds; no system call where the vDSO has it.
#[must_use]
pub fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is ours to write.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}
