// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processors this process may run on, and which of them share a cache. Used to tell when ranks
//! outnumber cores, and which ranks are near each other.

use std::path::Path;

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

/// The first processor of those that share the last cache with this one (the third level, as Linux
/// tells it in sysfs), or of its socket where there is no such cache; `None` if Linux does not say.
/// Setup.
pub fn cache_domain(processor: u32) -> Option<u32> {
    cache_domain_in("/sys/devices/system/cpu".as_ref(), processor)
}

fn cache_domain_in(folder: &Path, processor: u32) -> Option<u32> {
    let folder = folder.join(format!("cpu{processor}"));
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).ok();
    // Linux counts the caches of a processor from 0: two of the first level, and one of each other.
    let third = (0..8).find(|index| {
        let level = read(&format!("cache/index{index}/level"));
        level.is_some_and(|level| level.trim() == "3")
    });
    let list = match third {
        Some(index) => read(&format!("cache/index{index}/shared_cpu_list")),
        None => read("topology/package_cpus_list"),
    };
    // As `0-7,64-71`.
    let first = list?;
    let end = first.find(|other: char| !other.is_ascii_digit());
    first[..end.unwrap_or(first.len())].parse().ok()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn processors_of_one_cache_have_one_domain_and_without_a_third_level_those_of_a_socket() {
        let folder = std::env::temp_dir().join(format!("weft-caches-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        for (index, level) in [(0, "1\n"), (1, "1\n"), (2, "2\n"), (3, "3\n")] {
            write(&format!("cpu70/cache/index{index}/level"), level);
        }
        write("cpu70/cache/index2/shared_cpu_list", "6,70\n");
        write("cpu70/cache/index3/shared_cpu_list", "4-7,68-71\n");
        write("cpu9/cache/index0/level", "1\n");
        write("cpu9/topology/package_cpus_list", "8\n");
        assert_eq!(cache_domain_in(&folder, 70), Some(4));
        assert_eq!(cache_domain_in(&folder, 9), Some(8));
        assert_eq!(cache_domain_in(&folder, 1), None);
        fs::remove_dir_all(&folder).expect("removed");
    }
}
