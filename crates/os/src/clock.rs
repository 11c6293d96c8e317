// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time: the monotonic clock for deadlines, and the cheapest time stamp the processor has for
//! polling loops.

/// Nanoseconds of CLOCK_MONOTONIC. About 20 ns through the vDSO.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of CLOCK_REALTIME, in which the kernel stamps datagrams. As cheap; may jump.
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is ours to write; both clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A cheap monotonic stamp in an unknown unit (processor ticks on x86-64, nanoseconds elsewhere).
/// Fast path.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has rdtsc.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    monotonic_ns()
}
