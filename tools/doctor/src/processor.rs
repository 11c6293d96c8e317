// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processors: each that is allowed is run on, the clock is read, sleep is prepared for; and for
//! `weft info` what they share.
//!
//! Called by `lib.rs` and `info.rs`. Source: sched_setaffinity(2), membarrier(2), cgroups(7), sysfs
//! (Documentation/ABI/testing/sysfs-devices-system-cpu).

use std::collections::BTreeSet;
use std::time::Instant;

use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;
use weft_launch::cores::{self, Cores};

use crate::cgroup;
use crate::check::{Check, Status};
use crate::tree::Tree;

/// Processors that are run on. Chosen: hundreds take milliseconds.
const TRIED_PROCESSORS: usize = 1024;
/// A reading of the clock that takes longer is a system call. Chosen: 20 to 60 ns without one.
const SLOW_READING_NS: f64 = 200.0;
/// Readings of which the mean is taken, and how often; the least counts. Chosen: a millisecond.
const READINGS: (u32, u32) = (2000, 10);

/// All checks of this file.
#[must_use]
pub fn checks(tree: &Tree) -> Vec<Check> {
    let cores = cores::allowed();
    vec![
        allowance(
            &cores,
            run_on(&cores.processors),
            Around {
                online: online(tree),
                quota: cgroup::processor_quota(tree),
            },
        ),
        clock(
            reading_ns(),
            tree.text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .as_deref(),
        ),
        sleeping(weft_os::sleep::join_barriers() && weft_os::sleep::barrier_everywhere()),
    ]
}

/// What this machine's processors share, by name: for `weft info`, as there is nothing to try.
#[must_use]
pub fn facts(tree: &Tree) -> [(&'static str, String); 2] {
    let cores = cores::allowed();
    let active = tree.text("/sys/devices/system/cpu/smt/active");
    [
        ("shared cache", caches(tree, &cores.processors)),
        (
            "hardware threads",
            threads(active.as_deref(), &cores).to_owned(),
        ),
    ]
}

/// Runs a thread on each of the processors; answers on how many that went well.
fn run_on(processors: &[usize]) -> usize {
    let bound = |&number: &usize| {
        let mut mask = CpuSet::new();
        let set = mask.set(number);
        set.and_then(|()| sched_setaffinity(Pid::from_raw(0), &mask))
            .and_then(|()| sched_getcpu())
            .is_ok_and(|here| here == number)
    };
    let few = &processors[..processors.len().min(TRIED_PROCESSORS)];
    // In a thread of its own: the mask of this one stays.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| few.iter().filter(|number| bound(number)).count());
        thread.join().unwrap_or(0)
    })
}

/// Nanoseconds that a reading of the clock takes, interruptions left out.
fn reading_ns() -> f64 {
    let (readings, times) = READINGS;
    let mean = || {
        let start = Instant::now();
        for _ in 0..readings {
            std::hint::black_box(Instant::now());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(readings)
    };
    (0..times).map(|_| mean()).fold(f64::INFINITY, f64::min)
}

/// Whether a rank that waits for long may give its processor away until a message comes.
fn sleeping(has_barrier: bool) -> Check {
    let why = "a rank that blocks in the MPI sleeps until a message comes only where membarrier(2) \
               lets it announce its sleep to all senders; elsewhere it looks for messages all the \
               time, which takes a processor";
    let value = if has_barrier {
        "membarrier(2) works: a rank that waits in a blocking call sleeps"
    } else {
        "membarrier(2) is refused: a rank that waits in a blocking call polls"
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

/// What surrounds the processors that this process may use.
#[derive(Debug, Clone, Copy)]
struct Around {
    /// Processors that are switched on.
    online: usize,
    /// Time of so many processors, where a control group limits it.
    quota: Option<f64>,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of processors are small"
)]
fn allowance(cores: &Cores, ran: usize, around: Around) -> Check {
    let Around { online, quota } = around;
    let allowed = cores.processors.len();
    let short = quota.filter(|quota| *quota + 0.01 < allowed as f64);
    let time = short.map_or_else(String::new, |quota| {
        format!(", but time for only {quota:.2}")
    });
    let value = format!(
        "a thread ran on {ran} of {allowed} allowed processors ({online} online), on {} cores\
         {time}",
        cores.core_count
    );
    let why = "ranks poll while they wait; more ranks than processors, or a time quota below their \
               number, stops a rank that others wait for";
    let fix = "start at most as many ranks as the quota has processors, or raise the quota (docker \
               --cpus, the Kubernetes limit) and pin processors instead";
    Check::ok("processors", value, why)
        .but_if(ran < allowed.min(TRIED_PROCESSORS), Status::Warn, UNBOUND)
        .but_if(short.is_some(), Status::Warn, fix)
        .limited_by(format!(
            "{allowed} processors are allowed by the affinity mask"
        ))
}

const UNBOUND: &str = "allow sched_setaffinity in the container's seccomp profile, or bind nothing \
                       (weft run --bind none)";

/// A message between two cores is fastest through a cache that both share.
fn caches(tree: &Tree, processors: &[usize]) -> String {
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
    match (last, shared.as_slice()) {
        (Some(level), [(_, list, size)]) => {
            format!("one L{level} of {} for processors {list}", readable(size))
        }
        (Some(level), [(_, _, size), ..]) => format!(
            "{} separate L{level} caches of {}",
            shared.len(),
            readable(size)
        ),
        _ => "not told by this machine".to_owned(),
    }
}

/// sysfs writes KiB as K: `32768K` is 32 MiB.
fn readable(size: &str) -> String {
    match size
        .strip_suffix('K')
        .and_then(|number| number.parse::<u64>().ok())
    {
        Some(kib) => weft_launch::number_text::size(kib * 1024),
        None => size.to_owned(),
    }
}

/// Two polling ranks on the hardware threads of one core slow each other.
fn threads(active: Option<&str>, cores: &Cores) -> &'static str {
    match active {
        Some("1") if cores.processors.len() > cores.core_count as usize => {
            "on: some allowed processors share a core"
        }
        Some("1") => "on, one allowed processor for each core",
        Some(_) => "off",
        None => "not told by this machine",
    }
}

fn clock(reading_ns: f64, source: Option<&str>) -> Check {
    let why = "time-outs and adaptive choices read the clock often; sources other than the \
               processor's own counter take a system call each time";
    let fix = "on virtual machines ask for an invariant TSC, or boot with tsc=reliable if the \
               hypervisor keeps it steady";
    let source = source.unwrap_or("its source cannot be read");
    Check::ok(
        "clock",
        format!("a reading takes {reading_ns:.0} ns ({source})"),
        why,
    )
    .but_if(reading_ns > SLOW_READING_NS, Status::Warn, fix)
    .limited_by(format!("at most {SLOW_READING_NS:.0} ns are wanted"))
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

    fn around(online: usize, quota: Option<f64>) -> Around {
        Around { online, quota }
    }

    #[test]
    fn a_quota_below_the_allowed_processors_is_a_warning() {
        let check = allowance(&cores(8, 4), 8, around(16, Some(2.5)));
        check.assert_wrong(Status::Warn, "raise the quota");
        assert_eq!(
            check.value,
            "a thread ran on 8 of 8 allowed processors (16 online), on 4 cores, but time for only \
             2.50"
        );
        let status = |ran, quota| allowance(&cores(8, 8), ran, around(8, quota)).status;
        assert_eq!(status(8, Some(8.0)), Status::Ok);
        assert_eq!(status(8, None), Status::Ok);
    }

    #[test]
    fn a_processor_that_cannot_be_run_on_is_a_warning() {
        let check = allowance(&cores(8, 8), 7, around(8, None));
        check.assert_wrong(Status::Warn, "--bind none");
        assert!(check.limit.contains("8 processors"), "{check:?}");
        // The mask of this thread stays as it was.
        let before = cores::allowed();
        assert_eq!(run_on(&before.processors), before.processors.len());
        assert_eq!(cores::allowed(), before);
        assert_eq!(run_on(&[100_000]), 0);
    }

    #[test]
    fn a_refused_membarrier_is_a_warning_since_ranks_then_poll() {
        assert_eq!(sleeping(true).status, Status::Ok);
        let check = sleeping(false);
        check.assert_wrong(Status::Warn, "allow membarrier");
        assert!(check.value.ends_with("polls"), "{check:?}");
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
            caches(&tree, &[0, 1, 2]),
            "2 separate L3 caches of 32.0 MiB"
        );
        assert_eq!(
            caches(&tree, &[0, 1]),
            "one L3 of 32.0 MiB for processors 0-1"
        );
        assert_eq!(caches(&tree, &[9]), "not told by this machine");
    }

    #[test]
    fn a_clock_is_judged_by_how_long_it_takes_to_read() {
        assert_eq!(clock(25.0, Some("tsc")).status, Status::Ok);
        let slow = clock(900.0, Some("hpet"));
        slow.assert_wrong(Status::Warn, "tsc=reliable");
        assert!(slow.value.contains("900 ns (hpet)") && slow.limit.contains("200 ns"));
        assert_eq!(clock(25.0, None).status, Status::Ok);
        assert!(reading_ns() > 0.0);
    }
}
