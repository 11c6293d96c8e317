// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signals: those that a user, a shell or a batch system sends to `weft run` go on to the launcher,
//! and at the very end to every process that the launcher left behind.
//!
//! Called by `supervise.rs` and `node_agent.rs`. The launcher stays in the process group of
//! `weft run`, so that a terminal's Ctrl-C, Ctrl-Z and standard input reach it as they would
//! without Weft; signals that the terminal sends are therefore not sent a second time.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use signal_hook::low_level::siginfo::Cause;

/// The signals that are taken.
const TAKEN: [i32; 6] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];

/// PF_EXITING of linux/sched.h, in the flags of a process.
const EXITING: u64 = 4;

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Which.
    pub signal: Signal,
    /// Whether the terminal sent it, which sends it to the launcher too.
    pub from_terminal: bool,
    /// When it came, however long nobody had time for it since.
    pub at: Instant,
}

impl Arrival {
    /// Whether who sent it wants the job to end; the others are for the program.
    #[must_use]
    pub fn asks_to_end(self) -> bool {
        !matches!(self.signal, Signal::SIGUSR1 | Signal::SIGUSR2)
    }
}

/// A thread that reports signals as they come, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts to take signals in place of their default action; `deliver` gets each one, until it
    /// returns false.
    ///
    /// # Errors
    /// When handlers or the thread cannot be set up.
    pub fn start(mut deliver: impl FnMut(Arrival) -> bool + Send + 'static) -> io::Result<Self> {
        let mut signals = SignalsInfo::<WithOrigin>::new(TAKEN)?;
        let handle = signals.handle();
        let thread = std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                for origin in signals.forever() {
                    let at = Instant::now();
                    // A terminal that goes away tells its session's leader alone.
                    let from_terminal =
                        matches!(origin.cause, Cause::Kernel) && origin.signal != SIGHUP;
                    let Ok(signal) = Signal::try_from(origin.signal) else {
                        continue;
                    };
                    if !deliver(Arrival {
                        signal,
                        from_terminal,
                        at,
                    }) {
                        break;
                    }
                }
            })?;
        Ok(Self {
            handle,
            thread: Some(thread),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Makes this process the parent of whatever its descendants leave behind, so that nothing of a job
/// can hide from `kill_descendants`.
pub fn adopt_orphans() {
    // Only kernels before 3.4 lack this, and then merely a rank that outlives its launcher could be
    // missed.
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// Sends a signal to one process; a process that is gone is no error.
pub fn send(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// The exit code of what a signal ended, as shells have it.
pub(crate) fn killed_by(signal: i32) -> u8 {
    u8::try_from(128 + (signal & 0x7f)).unwrap_or(128)
}

/// Sends KILL to every descendant of this process but those spared and their own, and again to
/// those that were born meanwhile. Returns how many processes it hit.
pub fn kill_descendants(spared: &[u32]) -> usize {
    let mut hit = std::collections::HashSet::new();
    loop {
        let fresh: Vec<u32> = descendants(std::process::id(), spared)
            .into_iter()
            .filter(|pid| hit.insert(*pid))
            .collect();
        if fresh.is_empty() {
            return hit.len();
        }
        for pid in fresh {
            send(pid, Signal::SIGKILL);
        }
    }
}

/// All living descendants of a process, from the parents that /proc names, without those spared and
/// whatever descends from them.
#[must_use]
pub fn descendants(ancestor: u32, spared: &[u32]) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    for pid in entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
    {
        if let Some((parent, _)) = parent_and_start(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut waiting = vec![ancestor];
    while let Some(pid) = waiting.pop() {
        let mut next = children.remove(&pid).unwrap_or_default();
        next.retain(|child| !spared.contains(child));
        found.extend(&next);
        waiting.extend(next);
    }
    found
}

/// /proc/PID/stat (proc(5)) from its third field on, the state; `None` if the process is gone. The
/// second, a name in parentheses, may hold anything.
pub(crate) fn stat_after_name(pid: u32) -> Option<String> {
    let text = weft_os::proc_text::read(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.to_owned())
}

/// The parent and the time of start (in ticks since the machine started) in /proc/PID/stat; `None`
/// for zombies and processes that are gone.
#[must_use]
pub fn parent_and_start(pid: u32) -> Option<(u32, u64)> {
    let text = stat_after_name(pid)?;
    let mut fields = text.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    let parent = fields.next()?.parse().ok()?;
    // Field 22; the state is field 3.
    Some((parent, fields.nth(17)?.parse().ok()?))
}

/// Whether a process is there and has not ended. A zombie has ended.
#[must_use]
pub(crate) fn lives(pid: u32) -> bool {
    parent_and_start(pid).is_some()
}

/// Whether any process has begun to end and may hold files yet. The kernel takes its environment
/// away before its files; from then on nobody can tell what job it was of.
pub(crate) fn are_some_ending() -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return false;
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(stat_after_name)
        .any(|text| is_ending(&text).unwrap_or(false))
}

/// From /proc/PID/stat after the name. One whose first thread has ended alone is a zombie, and
/// holds what its other threads hold.
fn is_ending(text: &str) -> Option<bool> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let state = *fields.first()?;
    // Fields 9 and 20; the state is field 3.
    let flags: u64 = fields.get(6)?.parse().ok()?;
    let thread_count: u64 = fields.get(17)?.parse().ok()?;
    Some(match state {
        "Z" | "X" => thread_count > 1,
        _ => flags & EXITING != 0,
    })
}

/// What a process has computed, in user mode and in the kernel, in ticks; `None` if it is gone.
#[must_use]
pub fn processor_ticks(pid: u32) -> Option<u64> {
    let text = stat_after_name(pid)?;
    // Fields 14 and 15; the state is field 3.
    let mut fields = text.split_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// How often the thread of this folder, /proc/PID/task/TID, has waited since it began: as long as
/// this stays, it is the same waiting. `None` if it is gone.
pub(crate) fn waits_of(thread_folder: &Path) -> Option<u64> {
    waits_in(&weft_os::proc_text::read(thread_folder.join("status")).ok()?)
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
    use super::*;

    #[test]
    fn what_the_kernel_says_of_a_thread_is_read() {
        let counts = "voluntary_ctxt_switches:\t94\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(waits_in(&format!("Name:\tprterun\n{counts}")), Some(94));
        assert_eq!(waits_in("Name:\tprterun\n"), None);
    }

    #[test]
    fn what_a_process_has_computed_only_grows() {
        let ticks = || processor_ticks(std::process::id()).unwrap();
        let before = ticks();
        while ticks() < before + 2 {}
        assert_eq!(processor_ticks(0), None);
    }

    #[test]
    fn who_ends_may_hold_files_until_its_last_thread_has_ended() {
        let ending = |state: &str, flags: u32, threads: u32| {
            let text = format!(" {state} 1 2 2 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 {threads} 0 77 0");
            is_ending(&text).unwrap()
        };
        assert!(ending("R", 0x40_0004, 1) && ending("D", 4, 3) && ending("Z", 4, 2));
        assert!(!ending("S", 0x40_0100, 2) && !ending("Z", 4, 1) && !ending("X", 4, 0));
        assert_eq!(is_ending(" S 1"), None);
    }

    #[test]
    fn children_and_their_children_are_found() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 300 & wait"])
            .spawn()
            .unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(100);
        let grandchild = loop {
            if let [one] = descendants(child.id(), &[])[..] {
                break one;
            }
            assert!(
                std::time::Instant::now() < deadline,
                "no grandchild appeared"
            );
            std::thread::yield_now();
        };
        assert!(descendants(std::process::id(), &[]).contains(&grandchild));
        assert!(!descendants(std::process::id(), &[child.id()]).contains(&grandchild));
        send(grandchild, Signal::SIGKILL);
        child.wait().unwrap();
        assert_eq!(parent_and_start(u32::MAX), None);
    }
}
