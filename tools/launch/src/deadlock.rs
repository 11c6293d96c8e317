// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A launcher that deadlocked: two of its threads wait for each other, its ranks are gone, and
//! without `--timeout` the job would last for ever.
//!
//! Called by `supervise.rs`. Open MPI 5.0.11 does it in about 1 of 250 jobs whose ranks all fail
//! in MPI_Init: the thread that serves PMIx takes a lock that it holds already, while it refuses
//! the connection of a rank that ended meanwhile; the first thread then waits for that thread in
//! PMIx_server_deregister_client.

use std::time::Duration;

use weft_os::futex_wait::is_in_futex;

use crate::family::Family;

/// From one look to the next. Chosen: what a look costs, some 0.1 ms, is then nothing.
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
        if seen.is_deadlock(stuck(process, &threads)) {
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
    /// The threads that waited for others at the last look.
    stuck: Vec<Thread>,
    /// How many looks in a row saw just these.
    looks: u32,
}

impl Seen {
    /// Adds a look. A deadlock takes two threads, and the same ones in the same waiting.
    fn is_deadlock(&mut self, stuck: Vec<Thread>) -> bool {
        if stuck.len() < 2 || stuck != self.stuck {
            self.looks = 0;
        }
        self.looks += 1;
        self.stuck = stuck;
        self.stuck.len() >= 2 && self.looks > LOOKS
    }
}

/// The threads that wait for another one, if the first thread is among them.
fn stuck(process: u32, threads: &[Thread]) -> Vec<Thread> {
    let waiting = threads.iter().filter(|thread| thread.waits_for_thread);
    let stuck: Vec<Thread> = waiting.cloned().collect();
    let has_first = stuck.iter().any(|thread| thread.id == process);
    if has_first { stuck } else { Vec::new() }
}

/// All threads of a process by their numbers; `None` when it is gone.
fn threads_of(process: u32) -> Option<Vec<Thread>> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let mut threads: Vec<Thread> = entries
        .flatten()
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
            Some(Thread {
                id,
                waits_for_thread: is_in_futex(&entry.path()),
                waits: waits_in(&status)?,
            })
        })
        .collect();
    threads.sort_by_key(|thread| thread.id);
    Some(threads)
}

fn waits_in(status: &str) -> Option<u64> {
    let line = |line: &str| {
        let count = line.strip_prefix("voluntary_ctxt_switches:")?;
        count.trim().parse().ok()
    };
    status.lines().find_map(line)
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
        let mut seen = Seen::default();
        (1..50).find(|look| seen.is_deadlock(stuck(7, &at(*look))))
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
    fn a_pause_begins_the_count_again() {
        let goes_on_once = |look: u32| {
            let waits = if look < 4 { 40 } else { 41 };
            vec![thread(7, true, waits), thread(8, true, 9)]
        };
        assert_eq!(judged(goes_on_once), Some(3 + LOOKS + 1));
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
        // Each has told its number, and waits a moment later; on a busy machine not at once.
        while !waits_for_thread(waiter_id) || waits_for_thread(reader_id) {
            std::thread::yield_now();
        }
        drop((go, end));
        waiter.join().unwrap();
        reader.join().unwrap();
    }

    #[test]
    fn what_the_kernel_says_is_read() {
        let counts = "voluntary_ctxt_switches:\t94\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(waits_in(&format!("Name:\tprterun\n{counts}")), Some(94));
        assert_eq!(waits_in("Name:\tprterun\n"), None);
    }

    #[test]
    fn a_process_that_is_gone_has_no_threads() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(threads_of(child.id()), None);
    }
}
