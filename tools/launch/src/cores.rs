// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many processors and physical cores this process may use, from its affinity mask and sysfs.
//!
//! Called by `lib.rs` to decide on binding and oversubscription, and by the doctor. Source:
//! sched_getaffinity(2); /sys/devices/system/cpu/cpuN/topology (Linux,
//! Documentation/ABI/stable/sysfs-devices-system-cpu).

use std::collections::BTreeSet;

use nix::unistd::Pid;

/// The processors of the affinity mask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// Numbers of the processors (hardware threads) this process may run on, in order.
    pub processors: Vec<usize>,
    /// How many physical cores these belong to; at least 1.
    pub core_count: u32,
    /// How many ranks can run at once: the cores, or fewer where a control group's time quota
    /// allows less; at least 1.
    pub usable_count: u32,
}

/// Reads the mask of this process. On failure one processor is assumed, which binds nothing.
#[must_use]
pub fn allowed() -> Cores {
    allowed_to(Pid::this())
}

/// As `allowed`, of another process.
#[must_use]
pub fn allowed_to(process: Pid) -> Cores {
    let mask = nix::sched::sched_getaffinity(process);
    let processors: Vec<usize> = match mask {
        Ok(mask) => (0..nix::sched::CpuSet::count())
            .filter(|&number| mask.is_set(number).unwrap_or(false))
            .collect(),
        Err(_) => vec![0],
    };
    let core_count = u32::try_from(grouped(&processors).len().max(1)).unwrap_or(u32::MAX);
    // The standard library knows the quotas of both versions of control groups; its answer is
    // about this process, which may be bound to less than the other one.
    let parallel = std::thread::available_parallelism().map_or(core_count, |count| {
        u32::try_from(count.get()).unwrap_or(u32::MAX)
    });
    Cores {
        processors,
        core_count,
        usable_count: core_count.min(parallel),
    }
}

/// The names of the cores that this process may use: the same in every namespace of a machine.
#[must_use]
pub fn names() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = allowed().processors.into_iter().map(siblings).collect();
    names.retain(|name| !name.is_empty());
    names
}

/// What tells one start of one kernel from all others; `None` where it cannot be read.
#[must_use]
pub fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// The hardware threads that this process may run on, by core, in the order of the first of each.
#[must_use]
pub fn by_core() -> Vec<Vec<usize>> {
    grouped(&allowed().processors)
}

fn grouped(processors: &[usize]) -> Vec<Vec<usize>> {
    let mut cores: Vec<(String, Vec<usize>)> = Vec::new();
    for &number in processors {
        let threads = siblings(number);
        match cores.iter_mut().find(|(known, _)| *known == threads) {
            Some((_, core)) => core.push(number),
            None => cores.push((threads, vec![number])),
        }
    }
    cores.into_iter().map(|(_, core)| core).collect()
}

/// The list of the hardware threads that share a core with this one: the same text for each of
/// them.
fn siblings(processor: usize) -> String {
    let path = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
    std::fs::read_to_string(path)
        .map_or_else(|_| format!("{processor}"), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_are_no_more_cores_than_processors_and_at_least_one() {
        let cores = super::allowed();
        assert!(
            cores.usable_count >= 1 && cores.usable_count <= cores.core_count,
            "{cores:?}"
        );
        assert!(
            cores.core_count >= 1 && cores.core_count as usize <= cores.processors.len().max(1),
            "{cores:?}"
        );
    }
}
