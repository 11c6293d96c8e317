// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two cores that two ranks run on: their caches, and the known tasks that show their speed.
//!
//! Called by environment for the description, and by compare beside every run. The launcher binds
//! ranks to cores in the order of the affinity mask, so these are the mask's first two cores. In
//! the hand-over task two threads answer each other through one cache line. Source for the caches:
//! sysfs (Linux, Documentation/ABI/testing/sysfs-devices-system-cpu).
// structure: allow atomics because two threads hand a cache line to each other; that is what is
// measured

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weft_statistics::speed::Speed;
use weft_statistics::{median, nearest_rank, sort};

/// Bytes of the copy (chosen: the largest message of the benchmarks).
pub const COPY_BYTES: usize = 4 << 20;
/// Copies of which the median counts.
const COPIES: usize = 7;
/// Blocks of hand-overs of which the median counts.
const BLOCKS: usize = 15;
/// Round trips in a block.
const ROUND_TRIPS: u64 = 100;
/// After this the hand-over is broken off: somebody else holds a core (chosen: a few slices of the
/// scheduler).
const PATIENCE: Duration = Duration::from_millis(60);

/// The chosen cores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cores {
    /// Their numbers: two, or one where there is no more.
    pub numbers: Vec<usize>,
    /// Caches that both use, as `L3 unified 32768K`.
    pub shared_caches: Vec<String>,
    /// Caches that each has for itself.
    pub own_caches: Vec<String>,
    /// Whether both belong to one NUMA node; `None` when the kernel does not say.
    pub same_node: Option<bool>,
}

/// The first two cores of the affinity mask, no two of which are threads of one core if that can be
/// helped.
pub fn chosen() -> Cores {
    let numbers = first_two(&allowed(), |number| {
        text(&format!("cpu{number}/topology/thread_siblings_list"))
    });
    let mut cores = Cores {
        numbers,
        ..Cores::default()
    };
    let [first, second] = cores.numbers[..] else {
        return cores;
    };
    for index in 0..8 {
        let of = |name: &str| text(&format!("cpu{first}/cache/index{index}/{name}"));
        if of("level").is_empty() {
            break;
        }
        let name = format!(
            "L{} {} {}",
            of("level"),
            of("type").to_lowercase(),
            of("size")
        );
        if list(&of("shared_cpu_list")).contains(&second) {
            cores.shared_caches.push(name);
        } else {
            cores.own_caches.push(name);
        }
    }
    cores.same_node = same_node(first, second);
    cores
}

fn allowed() -> Vec<usize> {
    let mask = sched_getaffinity(Pid::from_raw(0));
    (0..CpuSet::count())
        .filter(|number| mask.is_ok_and(|mask| mask.is_set(*number).unwrap_or(false)))
        .collect()
}

fn first_two(allowed: &[usize], siblings: impl Fn(usize) -> String) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let mut apart: Vec<usize> = allowed
        .iter()
        .copied()
        .filter(|number| {
            let core = siblings(*number);
            core.is_empty() || seen.insert(core)
        })
        .collect();
    if apart.len() < 2 {
        apart = allowed.to_vec();
    }
    apart.truncate(2);
    apart
}

fn same_node(first: usize, second: usize) -> Option<bool> {
    let nodes = fs::read_dir("/sys/devices/system/node").ok()?;
    let mut lists = nodes
        .flatten()
        .filter_map(|node| fs::read_to_string(node.path().join("cpulist")).ok());
    lists.find_map(|text| {
        let members = list(text.trim());
        members.contains(&first).then(|| members.contains(&second))
    })
}

fn text(path: &str) -> String {
    fs::read_to_string(format!("/sys/devices/system/cpu/{path}"))
        .map_or(String::new(), |text| text.trim().to_owned())
}

/// `0-2,5` as 0, 1, 2, 5.
fn list(text: &str) -> Vec<usize> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<usize>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// Measures how fast the machine is now; takes some ten milliseconds.
pub struct Calibration {
    numbers: Vec<usize>,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Calibration {
    /// On these cores; allocates what it copies.
    pub fn on(cores: &Cores) -> Self {
        Self {
            numbers: cores.numbers.clone(),
            from: vec![1; COPY_BYTES],
            to: vec![2; COPY_BYTES],
        }
    }

    /// Measures. In threads of its own, so that the caller, and what it starts, stays free to run
    /// on any core.
    pub fn measure(&mut self) -> Speed {
        let (numbers, from, to) = (&self.numbers, &self.from, &mut self.to);
        let copy_ns = std::thread::scope(|scope| {
            scope
                .spawn(move || copy(numbers.first(), from, to))
                .join()
                .unwrap_or(0.0)
        });
        let handover_ns = match numbers[..] {
            [first, second] => handover(first, second),
            _ => None,
        };
        Speed {
            copy_ns,
            handover_ns,
        }
    }
}

fn bind(core: usize) {
    let mut mask = CpuSet::new();
    // A core that was taken away meanwhile is no reason to stop: the figure then says so.
    let _ = mask
        .set(core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &mask));
}

fn copy(core: Option<&usize>, from: &[u8], to: &mut [u8]) -> f64 {
    if let Some(core) = core {
        bind(*core);
    }
    let mut times: Vec<f64> = (0..=COPIES)
        .map(|_| {
            let start = Instant::now();
            to.copy_from_slice(std::hint::black_box(from));
            std::hint::black_box(&mut *to);
            start.elapsed().as_nanos() as f64
        })
        .collect();
    // The first only warms the caches.
    median(&times.split_off(1))
}

/// One hand-over in nanoseconds: half a round trip; `None` when no block could be finished.
fn handover(first: usize, second: usize) -> Option<f64> {
    let ball = AtomicU64::new(0);
    let mut times = std::thread::scope(|scope| {
        scope.spawn(|| {
            bind(second);
            answer(&ball);
        });
        scope
            .spawn(|| {
                bind(first);
                let times = ask(&ball);
                ball.store(STOP, Ordering::Release);
                times
            })
            .join()
            .unwrap_or_default()
    });
    sort(&mut times);
    (!times.is_empty()).then(|| nearest_rank(&times, 50.0))
}

/// Ends the other thread.
const STOP: u64 = u64::MAX;

/// Odd numbers are questions, the next even one is the answer.
fn answer(ball: &AtomicU64) {
    loop {
        let seen = ball.load(Ordering::Acquire);
        if seen == STOP {
            return;
        }
        if seen % 2 == 1 {
            // The one that asks stores nothing but STOP before it has the answer, and STOP must not
            // be overwritten.
            let _ = ball.compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed);
        } else {
            std::hint::spin_loop();
        }
    }
}

fn ask(ball: &AtomicU64) -> Vec<f64> {
    let begin = Instant::now();
    let mut times = Vec::with_capacity(BLOCKS);
    let mut next = 1;
    for block in 0..=BLOCKS {
        let start = Instant::now();
        for _ in 0..ROUND_TRIPS {
            ball.store(next, Ordering::Release);
            let mut looks = 0_u32;
            while ball.load(Ordering::Acquire) != next + 1 {
                looks += 1;
                // Seldom: reading the clock takes a third of what is measured.
                if looks.is_multiple_of(4096) && begin.elapsed() > PATIENCE {
                    return times;
                }
                std::hint::spin_loop();
            }
            next += 2;
        }
        if block > 0 {
            times.push(start.elapsed().as_nanos() as f64 / ROUND_TRIPS as f64 / 2.0);
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(list("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(list("7"), [7]);
        assert!(list("").is_empty());
    }

    #[test]
    fn two_threads_of_one_core_are_not_chosen_while_there_is_another_core() {
        let siblings = |number: usize| format!("{},{}", number / 2 * 2, number / 2 * 2 + 1);
        assert_eq!(first_two(&[0, 1, 2, 3], siblings), [0, 2]);
        assert_eq!(first_two(&[0, 1], siblings), [0, 1]);
        assert_eq!(first_two(&[3], siblings), [3]);
    }

    #[test]
    fn calibration_yields_times_and_leaves_the_caller_unbound() {
        let before = allowed();
        let cores = chosen();
        let speed = Calibration::on(&cores).measure();
        assert!(speed.copy_ns > 0.0);
        assert!(speed.handover_ns.is_none_or(|time| time > 0.0));
        assert_eq!(allowed(), before);
    }
}
