// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processors: how many this process may use, what holds them back, which caches they share, how the clock is read.
//!
//! Called by `lib.rs` and `info.rs`. Source: sysfs (Documentation/ABI/testing/sysfs-devices-system-cpu), cgroups(7).

use std::collections::BTreeSet;

use weft_launch::cores::{self, Cores};

use crate::cgroup;
use crate::check::{Check, Status};
use crate::tree::Tree;

/// All checks of this file.
#[must_use]
pub fn checks(tree: &Tree) -> Vec<Check> {
    let cores = cores::allowed();
    vec![
        allowance(&cores, online(tree), cgroup::processor_quota(tree)),
        caches(tree, &cores.processors),
        threads(
            tree.text("/sys/devices/system/cpu/smt/active").as_deref(),
            &cores,
        ),
        clock(
            tree.text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .as_deref(),
        ),
        sleeping(weft_os::sleep::join_barriers()),
    ]
}

/// Whether a rank that waits for long may give its processor away until a message comes.
fn sleeping(has_barrier: bool) -> Check {
    let why = "a rank that blocks in the MPI sleeps until a message comes only where membarrier(2) lets it announce its sleep to all senders; \
               elsewhere it looks for messages all the time, which takes a processor";
    let value = if has_barrier {
        "ranks that wait in a blocking call sleep (membarrier works)"
    } else {
        "ranks that wait in a blocking call poll (membarrier is refused)"
    };
    Check::ok("sleeping", value, why).but_if(
        !has_barrier,
        Status::Warn,
        "allow membarrier in the container's seccomp profile; Linux 4.16 or later has it",
    )
}

/// Processors that are switched on, whatever this process may use of them.
fn online(tree: &Tree) -> usize {
    tree.text("/sys/devices/system/cpu/online")
        .map_or(0, |list| parse_list(&list).len())
}

/// The numbers of a list such as `0-3,8`.
fn parse_list(list: &str) -> Vec<usize> {
    let ranges = list.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse::<usize>().ok()?)
    });
    ranges.flatten().collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of processors are small"
)]
fn allowance(cores: &Cores, online: usize, quota: Option<f64>) -> Check {
    let allowed = cores.processors.len();
    let short = quota.filter(|quota| *quota + 0.01 < allowed as f64);
    let limit = short.map_or_else(String::new, |quota| {
        format!(", but time for only {quota:.2}")
    });
    let value = format!(
        "{allowed} of {online} processors allowed, on {} cores{limit}",
        cores.core_count
    );
    let why = "ranks poll while they wait; more ranks than processors, or a time quota below their number, stops a rank that others wait for";
    let fix = "start at most as many ranks as the quota has processors, or raise the quota (docker --cpus, the Kubernetes limit) and pin processors instead";
    Check::ok("processors", value, why).but_if(short.is_some(), Status::Warn, fix)
}

fn caches(tree: &Tree, processors: &[usize]) -> Check {
    let mut groups: BTreeSet<(u64, String, String)> = BTreeSet::new();
    for processor in processors {
        for index in 0..8 {
            let folder = format!("/sys/devices/system/cpu/cpu{processor}/cache/index{index}");
            let Some(level) = tree.number(format!("{folder}/level")) else {
                continue;
            };
            if let (Some(shared), Some(size)) = (
                tree.text(format!("{folder}/shared_cpu_list")),
                tree.text(format!("{folder}/size")),
            ) {
                groups.insert((level, shared, size));
            }
        }
    }
    let last = groups.iter().map(|(level, ..)| *level).max();
    let shared: Vec<_> = groups
        .iter()
        .filter(|(level, ..)| Some(*level) == last)
        .collect();
    let value = match (last, shared.as_slice()) {
        (Some(level), [(_, list, size)]) => {
            format!("one L{level} of {} for processors {list}", readable(size))
        }
        (Some(level), [(_, _, size), ..]) => format!(
            "{} separate L{level} caches of {}",
            shared.len(),
            readable(size)
        ),
        _ => "not told by this machine".to_owned(),
    };
    let why = "a message between two cores is fastest through a cache that both share; ranks that talk most belong behind one";
    Check::ok("shared cache", value, why)
}

/// sysfs writes KiB as K: `32768K` is 32 MiB.
fn readable(size: &str) -> String {
    match size
        .strip_suffix('K')
        .and_then(|number| number.parse::<u64>().ok())
    {
        Some(kib) => weft_launch::report::size(kib * 1024),
        None => size.to_owned(),
    }
}

fn threads(active: Option<&str>, cores: &Cores) -> Check {
    let value = match active {
        Some("1") if cores.processors.len() > cores.core_count as usize => {
            "on: some allowed processors share a core"
        }
        Some("1") => "on, one allowed processor for each core",
        Some(_) => "off",
        None => "not told by this machine",
    };
    let why = "two polling ranks on the hardware threads of one core slow each other; weft run counts cores, not threads";
    Check::ok("hardware threads", value, why)
}

fn clock(source: Option<&str>) -> Check {
    let why = "time-outs and adaptive choices read the clock often; other sources than the processor's own counter take a system call each time";
    let fix = "on virtual machines ask for an invariant TSC, or boot with tsc=reliable if the hypervisor keeps it steady";
    let cheap = matches!(
        source,
        Some("tsc" | "arch_sys_counter" | "kvm-clock" | "hyperv_clocksource_tsc_page")
    );
    let check = Check::ok("clock", source.unwrap_or("not told by this machine"), why);
    check.but_if(source.is_some() && !cheap, Status::Warn, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(processors: usize, core_count: u32) -> Cores {
        Cores {
            processors: (0..processors).collect(),
            core_count,
            usable_count: core_count,
        }
    }

    #[test]
    fn a_quota_below_the_allowed_processors_is_a_warning() {
        let check = allowance(&cores(8, 4), 16, Some(2.5));
        assert_eq!(
            (check.status, check.value.as_str()),
            (
                Status::Warn,
                "8 of 16 processors allowed, on 4 cores, but time for only 2.50"
            )
        );
        assert_eq!(allowance(&cores(8, 8), 8, Some(8.0)).status, Status::Ok);
        assert_eq!(allowance(&cores(8, 8), 8, None).status, Status::Ok);
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(parse_list("0-2,5,7-8\n"), [0, 1, 2, 5, 7, 8]);
        assert!(parse_list("").is_empty());
    }

    #[test]
    fn separate_last_level_caches_are_counted_once_each() {
        let folder = tempfile::tempdir().unwrap();
        for (processor, list) in [(0, "0-1"), (1, "0-1"), (2, "2-3")] {
            for (index, level, size) in [(0, "1", "32K"), (3, "3", "32768K")] {
                let place = folder.path().join(format!(
                    "sys/devices/system/cpu/cpu{processor}/cache/index{index}"
                ));
                std::fs::create_dir_all(&place).unwrap();
                std::fs::write(place.join("level"), level).unwrap();
                std::fs::write(place.join("size"), size).unwrap();
                std::fs::write(place.join("shared_cpu_list"), list).unwrap();
            }
        }
        let tree = Tree::below(folder.path());
        assert_eq!(
            caches(&tree, &[0, 1, 2]).value,
            "2 separate L3 caches of 32.0 MiB"
        );
        assert_eq!(
            caches(&tree, &[0, 1]).value,
            "one L3 of 32.0 MiB for processors 0-1"
        );
        assert_eq!(caches(&tree, &[9]).value, "not told by this machine");
    }

    #[test]
    fn a_slow_clock_is_a_warning_and_an_unknown_one_is_not() {
        assert_eq!(clock(Some("tsc")).status, Status::Ok);
        assert_eq!(clock(Some("hpet")).status, Status::Warn);
        assert_eq!(clock(None).status, Status::Ok);
    }
}
