// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who a process is: its number alone is given to another process after its end, its number and
//! start time together never. Made by shm for what an endpoint says of itself; asked by shm's care
//! for the dead. Sources: proc_pid_stat(5), namespaces(7), time_namespaces(7), kill(2).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use crate::proc_text;

/// Bits of a start time that are kept. Specified: docs/shm-layout.md, clause 1a. At 100 ticks a
/// second they last for tens of thousands of years.
pub const START_BITS: u32 = 48;

/// A process, told from every other one that has or had its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcessId {
    /// Its number, as its own namespace counts.
    pub pid: u32,
    /// Which namespaces the number and the time belong to; 0 if that is not known, and then nothing
    /// can be found out about the process.
    pub namespace: u32,
    /// When it started, in clock ticks since the machine did, the lowest [`START_BITS`] bits.
    pub started_ticks: u64,
}

/// What /proc says of a process.
struct Status {
    pid: u32,
    state: char,
    thread_count: u64,
    started_ticks: u64,
}

impl Status {
    /// Reads `pid (name) state ...`; the name may hold anything, so the fields are counted after
    /// it.
    fn parse(text: &str) -> Option<Self> {
        let (front, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
        // Fields 3, 20 and 22 of proc_pid_stat(5).
        Some(Self {
            pid: front.split_once(' ')?.0.parse().ok()?,
            state: fields.first()?.chars().next()?,
            thread_count: fields.get(17)?.parse().ok()?,
            started_ticks: fields.get(19)?.parse().ok()?,
        })
    }

    fn of(process: &str) -> Option<Self> {
        Self::parse(&proc_text::read(format!("/proc/{process}/stat")).ok()?)
    }

    fn kept_start(&self) -> u64 {
        self.started_ticks & ((1 << START_BITS) - 1)
    }

    /// Ended, and not yet waited for by its parent. One whose first thread alone has ended lives.
    fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.thread_count <= 1
    }
}

impl ProcessId {
    /// This process; without namespace if /proc is missing or another namespace's. Setup: reads
    /// /proc.
    pub fn own() -> Self {
        let pid = std::process::id();
        let found = Status::of("self").filter(|status| status.pid == pid);
        let nobody = Self {
            pid,
            ..Self::default()
        };
        found.map_or(nobody, |status| Self {
            pid,
            namespace: own_namespace(),
            started_ticks: status.kept_start(),
        })
    }

    /// The process that has a number now, as this process's namespace counts; None if it has ended
    /// or cannot be seen. Slow path: reads /proc.
    pub fn of(pid: u32, own: &Self) -> Option<Self> {
        let status = Status::of(&pid.to_string()).filter(|status| !status.is_zombie())?;
        (own.namespace != 0 && pid != 0).then_some(Self {
            pid,
            namespace: own.namespace,
            started_ticks: status.kept_start(),
        })
    }

    /// Whether it is known to have ended; `own` is the process that asks. False for a process of
    /// another namespace, or one that cannot be seen. Slow path: a system call, and a look into
    /// /proc if it has not ended, some ten microseconds.
    pub fn has_ended(&self, own: &Self) -> bool {
        let is_comparable = self.namespace != 0 && self.namespace == own.namespace;
        let Some(pid) = i32::try_from(self.pid).ok().filter(|&pid| pid > 0) else {
            return false;
        };
        if !is_comparable || self == own {
            return false;
        }
        is_unknown(pid)
            || Status::of(&pid.to_string()).is_some_and(|status| {
                status.is_zombie() || status.kept_start() != self.started_ticks
            })
    }
}

/// Whether no process that lives has a number now, as this process's namespace counts. Slow path,
/// as [`ProcessId::has_ended`].
pub fn has_ended(pid: u32) -> bool {
    let Some(number) = i32::try_from(pid).ok().filter(|&number| number > 0) else {
        return false;
    };
    let is_zombie = |status: Status| status.pid == pid && status.is_zombie();
    is_unknown(number) || Status::of(&pid.to_string()).is_some_and(is_zombie)
}

/// Whether nobody has a number, zombies counted.
fn is_unknown(pid: i32) -> bool {
    // SAFETY: kill takes plain numbers; the signal 0 only asks whether there is such a process.
    let answer = unsafe { libc::kill(pid, 0) };
    answer != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// A number for the namespaces in which this process counts processes and time: not 0, unless it
/// cannot be told.
fn own_namespace() -> u32 {
    let number = |kind: &str| fs::metadata(format!("/proc/self/ns/{kind}")).map(|file| file.ino());
    let Ok(processes) = number("pid") else {
        return 0;
    };
    // Kernels before 5.6 have one time for all.
    let times = number("time").unwrap_or(0);
    // The numbers begin at 0xF0000000 and go up: most differ in their lowest bits.
    (processes as u32 ^ (times as u32).rotate_left(16)).max(1)
}

#[cfg(test)]
#[cfg_attr(miri, allow(unused_imports))]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    #[cfg_attr(miri, ignore = "needs /proc")]
    fn a_process_lives_until_it_ends_whether_or_not_it_is_waited_for() {
        let own = ProcessId::own();
        assert_eq!(own.pid, std::process::id());
        assert!(!own.has_ended(&own));
        if own.namespace == 0 {
            eprintln!("skip: /proc does not show processes here");
            return;
        }
        let mut child = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::null())
            .spawn()
            .expect("sleep");
        let theirs = ProcessId::of(child.id(), &own).expect("it is seen");
        assert!(!theirs.has_ended(&own));
        child.kill().expect("killed");
        // Not waited for: a zombie.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !theirs.has_ended(&own) {
            assert!(std::time::Instant::now() < end, "a zombie counts as alive");
        }
        assert_eq!(ProcessId::of(child.id(), &own), None);
        assert!(has_ended(child.id()) && !has_ended(own.pid) && !has_ended(0));
        child.wait().expect("waited for");
        assert!(theirs.has_ended(&own));
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs /proc")]
    fn a_later_process_with_the_same_number_is_another_one() {
        let own = ProcessId::own();
        if own.namespace == 0 {
            eprintln!("skip: /proc does not show processes here");
            return;
        }
        let earlier = ProcessId {
            started_ticks: own.started_ticks ^ 1,
            ..own
        };
        assert!(earlier.has_ended(&own));
        let elsewhere = ProcessId {
            namespace: own.namespace ^ 1,
            ..earlier
        };
        assert!(!elsewhere.has_ended(&own), "nothing is known of it");
        for pid in [0, u32::MAX, 1 << 31] {
            assert!(!ProcessId { pid, ..earlier }.has_ended(&own));
        }
    }

    #[test]
    fn a_process_is_known_although_its_name_is_cut_in_a_letter() {
        let before = fs::read("/proc/self/comm").expect("a name");
        fs::write("/proc/self/comm", b"thirteen lett\xc3").expect("a name");
        let own = ProcessId::own();
        let found = ProcessId::of(std::process::id(), &own);
        fs::write("/proc/self/comm", before).expect("a name");
        assert_ne!(own.namespace, 0);
        assert_eq!(found, Some(own));
    }

    #[test]
    fn a_name_may_hold_anything() {
        let text = "12 (a) Z 3 (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 99 20";
        let status = Status::parse(text).expect("a status");
        assert_eq!((status.pid, status.state), (12, 'S'));
        assert_eq!((status.thread_count, status.started_ticks), (17, 99));
        let zombie = |state: char, thread_count: u64| {
            let status = Status {
                pid: 1,
                state,
                thread_count,
                started_ticks: 0,
            };
            status.is_zombie()
        };
        assert!(zombie('Z', 1) && zombie('X', 0) && !zombie('S', 1));
        assert!(!zombie('Z', 2), "its other threads go on");
    }
}
