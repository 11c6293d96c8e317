// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processors this process may run on. Used to tell when ranks outnumber cores.

/// How many processors the scheduler may give us now (affinity mask; 1 if it cannot be read).
pub fn allowed_count() -> u32 {
    allowed().len().max(1) as u32
}

/// The processor that the scheduler gives us, if it may give us one only. Setup.
pub fn only_processor() -> Option<u32> {
    match allowed()[..] {
        [only] => Some(only),
        _ => None,
    }
}

/// The processors of the affinity mask; none if it cannot be read.
fn allowed() -> Vec<u32> {
    // SAFETY: cpu_set_t is plain data, for which zero is valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours to write and its size is given.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } != 0 {
        return Vec::new();
    }
    // SAFETY: the set was filled by the kernel; each number is one that it has a place for.
    let is_allowed = |&at: &u32| unsafe { libc::CPU_ISSET(at as usize, &set) };
    (0..libc::CPU_SETSIZE as u32).filter(is_allowed).collect()
}

/// How many processors are online on this machine, whatever we may use of them (1 if unknown).
pub fn online_count() -> u32 {
    // SAFETY: sysconf has no preconditions.
    (unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).max(1) as u32
}

/// Variables in which launchers say how many ranks run on this node. Specified by Open MPI, Hydra
/// (MPICH), Intel MPI and Slurm.
const LOCAL_SIZE_VARIABLES: [&str; 5] = [
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "I_MPI_LOCAL_SIZE",
    "PALS_LOCAL_SIZE",
    "SLURM_NTASKS_PER_NODE",
];

/// How many ranks run on this node, if the launcher says so. Setup.
pub fn ranks_of_node() -> Option<u32> {
    LOCAL_SIZE_VARIABLES
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Processors that the ranks of this node share. Ranks bound to one each are taken to have it to
/// themselves. Setup.
pub fn shared_count() -> u32 {
    match allowed_count() {
        1 => online_count(),
        allowed => allowed,
    }
}

/// Whether the ranks of this node need more processors than there are. Setup.
pub fn ranks_share_cores() -> bool {
    ranks_of_node().unwrap_or(1) > shared_count()
}
