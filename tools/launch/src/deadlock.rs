// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A launcher that deadlocked: its first thread waits for another one, and that one waits for a
//! lock that nobody will release. Without `--timeout` the job would last for ever.
//!
//! Called by `supervise.rs`. Open MPI 5.0.11 does it in about 1 of 250 jobs whose ranks all fail
//! in MPI_Init: the thread that serves PMIx takes a lock that it holds already, while it refuses
//! the connection of a rank that ended meanwhile; the first thread then waits for that thread in
//! PMIx_server_deregister_client.

use std::time::Duration;

use weft_os::system_call::is_in_futex;

use crate::family::Family;
use crate::signals;

/// From one look to the next. Chosen: what a look costs, a few files of /proc, is then nothing.
const BETWEEN_LOOKS: Duration = Duration::from_secs(3);
/// After so many looks that saw the same, 15 s, it is a deadlock. Chosen: the calls in which a
/// sound launcher's first thread waits for another take milliseconds; a thread that waits for a
/// disk or a network is no deadlock however long it takes, because it does not wait for a lock.
const LOOKS: u32 = 5;

/// Whether the launcher of this family can be judged by its threads: its first thread runs the
/// event loop, which waits for descriptors and never for long for another thread.
pub fn can_be_seen(family: Family) -> bool {
    family == Family::OpenMpi
}

/// Looks at a process until it ends or deadlocks; then tells it and returns. Blocks; for a thread
/// of its own.
pub fn watch(process: u32, tell: impl FnOnce()) {
    let mut seen = Seen::default();
    loop {
        std::thread::sleep(BETWEEN_LOOKS);
        let Some(threads) = threads_of(process) else {
            return;
        };
        let is_suspect = threads
            .iter()
            .any(|thread| thread.id == process && thread.waits_for_thread);
        let ranks_ticks = if is_suspect { ranks_ticks(process) } else { 0 };
        if seen.is_deadlock(process, threads, ranks_ticks) {
            tell();
            return;
        }
    }
}

/// A thread at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Thread {
    id: u32,
    /// Whether it waits for a lock or a condition of its own process (futex(2)).
    waits_for_thread: bool,
    /// How often it has waited since it began: as long as this stays, it is the same waiting.
    waits: u64,
}

/// What the looks so far saw.
#[derive(Debug, Default)]
struct Seen {
    /// The threads that have been in the same waiting for another one at all these looks.
    stuck: Vec<Thread>,
    /// What the launcher's descendants had computed, in ticks.
    ranks_ticks: u64,
    /// How many looks in a row.
    looks: u32,
}

impl Seen {
    /// Adds a look. A deadlock takes two threads, one of them the first one, and ranks that are
    /// gone or compute nothing: those that do may still reach their end, or save their work.
    fn is_deadlock(&mut self, process: u32, threads: Vec<Thread>, ranks_ticks: u64) -> bool {
        let waiting = threads.into_iter().filter(|thread| thread.waits_for_thread);
        let stuck: Vec<Thread> = waiting.collect();
        let same: Vec<Thread> = self
            .stuck
            .iter()
            .filter(|thread| stuck.contains(thread))
            .cloned()
            .collect();
        let has_first = same.iter().any(|thread| thread.id == process);
        if has_first && same.len() >= 2 && ranks_ticks == self.ranks_ticks {
            self.stuck = same;
            self.looks += 1;
        } else {
            *self = Self {
                stuck,
                ranks_ticks,
                looks: 1,
            };
        }
        self.looks > LOOKS
    }
}

/// What all descendants of a process have computed. Reads all of /proc.
fn ranks_ticks(process: u32) -> u64 {
    let descendants = signals::descendants(process, &[]).into_iter();
    descendants.filter_map(signals::processor_ticks).sum()
}

/// All threads of a process by their numbers; `None` when it is gone.
fn threads_of(process: u32) -> Option<Vec<Thread>> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let mut threads: Vec<Thread> = entries
        .flatten()
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            Some(Thread {
                id,
                waits_for_thread: is_in_futex(&entry.path()),
                waits: signals::waits_of(&entry.path())?,
            })
        })
        .collect();
    threads.sort_by_key(|thread| thread.id);
    Some(threads)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn thread(id: u32, waits_for_thread: bool, waits: u64) -> Thread {
        Thread {
            id,
            waits_for_thread,
            waits,
        }
    }

    /// At which look the same threads count as a deadlock of process 7.
    fn judged(at: impl Fn(u32) -> Vec<Thread>) -> Option<u32> {
        judged_beside(at, |_| 90)
    }

    /// The same while its ranks have computed so many ticks.
    fn judged_beside(at: impl Fn(u32) -> Vec<Thread>, ticks: impl Fn(u32) -> u64) -> Option<u32> {
        let mut seen = Seen::default();
        (1..50).find(|look| seen.is_deadlock(7, at(*look), ticks(*look)))
    }

    #[test]
    fn two_threads_that_stay_in_the_same_waiting_are_a_deadlock() {
        let others_may_go_on = |look: u32| {
            vec![
                thread(7, true, 40),
                thread(8, true, 9),
                thread(9, false, look.into()),
            ]
        };
        assert_eq!(judged(others_may_go_on), Some(LOOKS + 1));
    }

    #[test]
    fn nothing_else_is_one() {
        let event_loop = |_| vec![thread(7, false, 40), thread(8, true, 9), thread(9, true, 3)];
        assert_eq!(judged(event_loop), None);
        // The other one waits for a disk or a network.
        let slow = |_| vec![thread(7, true, 40), thread(8, false, 9)];
        assert_eq!(judged(slow), None);
        // They hand work to each other.
        let busy = |look: u32| vec![thread(7, true, look.into()), thread(8, true, 9)];
        assert_eq!(judged(busy), None);
        let single = |_| vec![thread(7, true, 40)];
        assert_eq!(judged(single), None);
    }

    #[test]
    fn ranks_that_compute_are_left_alone_and_a_thread_that_only_pauses_hides_nothing() {
        let stuck = |_| vec![thread(7, true, 40), thread(8, true, 9)];
        assert_eq!(judged_beside(stuck, u64::from), None);
        let ended_at_3 = |look: u32| look.min(3).into();
        assert_eq!(judged_beside(stuck, ended_at_3), Some(3 + LOOKS));
        let with_pauses = |look: u32| {
            vec![
                thread(7, true, 40),
                thread(8, true, 9),
                thread(9, true, look.into()),
            ]
        };
        assert_eq!(judged(with_pauses), Some(LOOKS + 1));
    }

    #[test]
    fn a_pause_begins_the_count_again() {
        let goes_on_once = |look: u32| {
            let waits = if look < 4 { 40 } else { 41 };
            vec![thread(7, true, waits), thread(8, true, 9)]
        };
        assert_eq!(judged(goes_on_once), Some(4 + LOOKS));
    }

    #[test]
    fn a_thread_that_waits_for_another_is_seen_and_one_that_reads_is_not() {
        let (go, wait) = channel::<()>();
        let (tell, told) = channel();
        let (mut nothing_comes, end) = std::os::unix::net::UnixStream::pair().unwrap();
        let tell_too = tell.clone();
        let waiter = std::thread::spawn(move || {
            tell.send(nix::unistd::gettid()).unwrap();
            let _ = wait.recv();
        });
        let waiter_id = told.recv().unwrap().as_raw();
        let reader = std::thread::spawn(move || {
            tell_too.send(nix::unistd::gettid()).unwrap();
            let _ = std::io::Read::read(&mut nothing_comes, &mut [0]);
        });
        let reader_id = told.recv().unwrap().as_raw();
        let waits_for_thread = |id: i32| {
            let threads = threads_of(std::process::id()).unwrap();
            let is_it = |thread: &&Thread| thread.id == id.unsigned_abs();
            threads.iter().find(is_it).unwrap().waits_for_thread
        };
        // Without it, as under gVisor, no deadlock is ever seen.
        if !std::path::Path::new("/proc/self/syscall").exists() {
            return;
        }
        // Each has told its number, and waits a moment later; on a busy machine not at once.
        while !waits_for_thread(waiter_id) || waits_for_thread(reader_id) {
            std::thread::yield_now();
        }
        drop((go, end));
        waiter.join().unwrap();
        reader.join().unwrap();
    }

    #[test]
    fn a_process_that_is_gone_has_no_threads() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(threads_of(child.id()), None);
    }
}
