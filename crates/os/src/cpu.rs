// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processors this process may run on. Used to tell when ranks outnumber cores.

/// How many processors the scheduler may give us now (affinity mask; 1 if it cannot be read).
pub fn allowed_count() -> u32 {
    // SAFETY: cpu_set_t is plain data, for which zero is valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours to write and its size is given.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } != 0 {
        return 1;
    }
    // SAFETY: the set was filled by the kernel; the count reads it only.
    (unsafe { libc::CPU_COUNT(&set) }).max(1) as u32
}

/// How many processors are online on this machine, whatever we may use of them (1 if unknown).
pub fn online_count() -> u32 {
    // SAFETY: sysconf has no preconditions.
    (unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).max(1) as u32
}
