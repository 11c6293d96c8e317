// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The place of a thread among all that want a processor (sched(7), setpriority(2)).
//!
//! Called by the relay.

/// Niceness of the threads that stand for a network. Chosen: before all processes of users, behind
/// those of the kernel.
const NICE: libc::c_int = -15;

/// Puts the calling thread before the others, where this user may; else nothing changes. A network
/// carries packets while its hosts compute. One that waits for its turn behind all builds of a busy
/// machine would take a second for each round trip.
pub fn raise() {
    // SAFETY: plain numbers; 0 stands for the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}
