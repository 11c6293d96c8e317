// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ranks that have ended and whose launcher does not ask how: their status stands in /proc.
//!
//! Called by `rank_ends.rs`. Intel's Hydra leaves a rank that ends before MPI_Init so, until the
//! job ends. Sources: pidfd_open(2), and proc(5) on `stat`.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit};
use weft_os::process_end::ProcessEnd;

use crate::signals;

/// How long a launcher has to ask. Chosen: others ask at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// So many ranks are looked at, each by a descriptor of this process, of which 1024 are usual.
const MOST: usize = 256;

/// The ranks that nobody has told the end of.
#[derive(Debug, Default)]
pub(crate) struct Zombies {
    living: HashMap<u32, ProcessEnd>,
    /// Those that have ended, and when that was seen.
    ended: Vec<(u32, Instant)>,
}

impl Zombies {
    /// A rank has begun. Where the system cannot tell its end, its launcher has to.
    pub(crate) fn begin(&mut self, process: u32) {
        if self.living.len() >= most() {
            return;
        }
        if let Ok(end) = ProcessEnd::of(process) {
            self.living.insert(process, end);
        }
    }

    /// Its launcher has told how it ended.
    pub(crate) fn is_told(&mut self, process: u32) {
        self.living.remove(&process);
        self.ended.retain(|(ended, _)| *ended != process);
    }

    /// Waits until the socket has something, a rank ends, or a launcher had time to ask. Answers
    /// whether it is the socket, which comes first.
    pub(crate) fn wait(&mut self, socket: BorrowedFd<'_>) -> bool {
        let processes: Vec<u32> = self.living.keys().copied().collect();
        let ends = self.living.values().map(AsFd::as_fd);
        let mut entries: Vec<PollFd<'_>> = std::iter::once(socket)
            .chain(ends)
            .map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN))
            .collect();
        let limit = self.ended.first().map_or(PollTimeout::NONE, |(_, seen)| {
            let left = PATIENCE.saturating_sub(seen.elapsed());
            // One more, for the part of a millisecond.
            PollTimeout::from(u16::try_from(left.as_millis() + 1).unwrap_or(u16::MAX))
        });
        if poll(&mut entries, limit).is_err() {
            return false;
        }
        let is_ready = |entry: &PollFd<'_>| entry.any().unwrap_or(false);
        if is_ready(&entries[0]) {
            return true;
        }
        let over: Vec<u32> = (processes.into_iter().zip(&entries[1..]))
            .filter_map(|(process, entry)| is_ready(entry).then_some(process))
            .collect();
        for process in over {
            self.living.remove(&process);
            self.ended.push((process, Instant::now()));
        }
        false
    }

    /// Those for which nobody has asked in time, with their status as of waitpid(2).
    pub(crate) fn left(&mut self) -> Vec<(u32, i32)> {
        let (late, ended) = std::mem::take(&mut self.ended)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, seen)| seen.elapsed() >= PATIENCE);
        self.ended = ended;
        late.into_iter()
            .filter_map(|(process, _)| Some((process, status_of_zombie(process)?)))
            .collect()
    }
}

/// How many ranks may be looked at: a quarter of the descriptors that this process may have.
fn most() -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
    usize::try_from(limit / 4).unwrap_or(MOST).min(MOST)
}

/// How a process has ended for which its parent has not asked; `None` for others.
fn status_of_zombie(process: u32) -> Option<i32> {
    let text = signals::stat_after_name(process)?;
    let mut fields = text.split_whitespace();
    // Field 52 is the status; the state is field 3.
    (fields.next()? == "Z").then_some(())?;
    fields.nth(48)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_rank_that_nobody_asks_for_is_found_with_its_status() {
        let mut child = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
        let (socket, _other) = UnixDatagram::pair().unwrap();
        let mut zombies = Zombies::default();
        zombies.begin(child.id());
        // Linux before 5.3 cannot tell.
        let is_seen = !zombies.living.is_empty();
        let left = loop {
            if !is_seen {
                break vec![(child.id(), 7 << 8)];
            }
            assert!(!zombies.wait(socket.as_fd()));
            let left = zombies.left();
            if !left.is_empty() {
                break left;
            }
        };
        assert_eq!(left, [(child.id(), 7 << 8)]);
        child.wait().unwrap();
        assert_eq!(status_of_zombie(child.id()), None);
    }

    #[test]
    fn descriptors_are_left_for_the_rest_of_weft_run() {
        let mut zombies = Zombies::default();
        for pretended in 0..2 * MOST {
            if let Ok(end) = ProcessEnd::of(std::process::id()) {
                zombies
                    .living
                    .insert(u32::try_from(pretended).unwrap() + 1, end);
            }
            if zombies.living.len() >= most() {
                break;
            }
        }
        let before = zombies.living.len();
        zombies.begin(std::process::id());
        // Linux before 5.3 looks at none.
        assert!(before == 0 || zombies.living.len() == before);
    }

    #[test]
    fn words_come_first_and_who_is_told_of_is_no_more_waited_for() {
        let mut child = Command::new("true").spawn().unwrap();
        let (socket, other) = UnixDatagram::pair().unwrap();
        let mut zombies = Zombies::default();
        zombies.begin(child.id());
        other.send(b"x").unwrap();
        assert!(zombies.wait(socket.as_fd()));
        zombies.is_told(child.id());
        assert!(zombies.living.is_empty() && zombies.ended.is_empty());
        child.wait().unwrap();
        assert_eq!(status_of_zombie(std::process::id()), None);
    }
}
