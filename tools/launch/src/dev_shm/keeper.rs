// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keeper: a process that makes the namespaces of a job's ranks on one host, and holds them for
//! ranks that come later. It ends when all ranks that came have ended.
//!
//! Started by `meeting.rs`, in the place of which it talks to every rank over one abstract socket:
//! it answers each connection with one line, and does nothing else. Whoever else holds the
//! namespaces then, as a child of a rank, holds them on.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Command, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use weft_job::size::ShmSize;
use weft_os::local_socket::{Connection, Listener};
use weft_os::process;
use weft_os::process_end::ProcessEnd;
use weft_os::process_id;

use super::answer::Answer;
use super::namespace;

/// How often ranks are looked for whose end the kernel does not tell, before Linux 5.3. Chosen.
const LOOK_MS: u16 = 1000;

/// Starts a keeper by this command, and waits until it listens, or has found that another one
/// does. Who calls this ends then, and the keeper is a child of nobody.
///
/// # Errors
/// When a process cannot be started.
pub(crate) fn start(mut keeper: Command) -> io::Result<()> {
    keeper.current_dir("/");
    keeper.stdout(Stdio::piped()).stderr(Stdio::null());
    // It closes its end when it listens, and when it ends.
    let mut told = keeper.spawn()?.stdout.into_iter();
    told.try_for_each(|mut end| io::copy(&mut end, &mut io::sink()).map(drop))
}

/// Listens under `name`, makes the namespaces, and serves until the ranks have ended; `first` is
/// the rank that wants it. Ends at once if somebody listens there.
///
/// # Errors
/// When it cannot listen.
pub(crate) fn keep(name: &str, size: ShmSize, first: u32) -> io::Result<()> {
    close_inherited();
    let listener = match Listener::bind(name) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Ok(()),
        bound => bound?,
    };
    let null = std::fs::File::options().write(true).open("/dev/null")?;
    nix::unistd::dup2_stdout(&null)?;
    let answer = match namespace::make(Some(size.bytes())) {
        Ok(()) => Answer::Ready(size),
        Err(refusal) => Answer::Refused {
            why: refusal.to_string(),
            is_first: false,
        },
    };
    let mut keeper = Keeper {
        listener,
        answer,
        first,
        ranks: Vec::new(),
    };
    keeper.add(first);
    keeper.serve()
}

/// The connections of the rank to its launcher among them, which would never end while a keeper
/// has them.
pub(crate) fn close_inherited() {
    let listed = std::fs::read_dir("/proc/self/fd").map(|entries| {
        let name = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        entries.flatten().filter_map(name).collect::<Vec<i32>>()
    });
    let all = listed.unwrap_or_else(|_| (3..1024).collect());
    for descriptor in all.into_iter().filter(|&number| number > 2) {
        // One that is not open is what was wanted.
        let _ = nix::unistd::close(descriptor);
    }
}

/// A rank that may still run.
#[derive(Debug)]
pub(crate) enum Rank {
    /// The kernel tells its end.
    Told(ProcessEnd),
    /// It must be looked for.
    Asked(u32),
}

impl Rank {
    /// The process with this number.
    pub(crate) fn of(pid: u32) -> Self {
        ProcessEnd::of(pid).map_or(Self::Asked(pid), Self::Told)
    }

    /// Whether it has.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::Told(end) => is_readable(end.as_fd()),
            Self::Asked(pid) => process_id::has_ended(*pid),
        }
    }
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut entry = [PollFd::new(descriptor, PollFlags::POLLIN)];
    poll(&mut entry, PollTimeout::ZERO).is_ok_and(|count| count > 0)
}

struct Keeper {
    listener: Listener,
    /// What each rank is told.
    answer: Answer,
    /// The rank that wanted this keeper.
    first: u32,
    /// Those that came, and have not been seen to end.
    ranks: Vec<Rank>,
}

impl Keeper {
    /// A rank that has ended already is not kept.
    fn add(&mut self, pid: u32) {
        self.ranks.push(Rank::of(pid));
    }

    fn serve(mut self) -> io::Result<()> {
        loop {
            // Those who wait come before the question whether anybody is left.
            while let Some(connection) = self.listener.accept() {
                self.receive(&connection);
            }
            self.ranks.retain(|rank| !rank.has_ended());
            if self.ranks.is_empty() {
                return Ok(());
            }
            self.wait()?;
        }
    }

    /// Who is no process of this user is not answered, and learns nothing.
    fn receive(&mut self, connection: &Connection) {
        let who = connection.credentials();
        let Some(who) = who.ok().filter(|who| who.uid == process::own_uid()) else {
            return;
        };
        self.add(who.pid);
        if let Answer::Refused { is_first, .. } = &mut self.answer {
            *is_first = who.pid == self.first;
        }
        // A rank that went away meanwhile is among those that have ended.
        let _ = connection.send_bytes(self.answer.to_line().as_bytes());
    }

    /// For a rank that comes, or one that ends.
    fn wait(&self) -> io::Result<()> {
        let mut entries = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        let mut timeout = PollTimeout::NONE;
        for rank in &self.ranks {
            match rank {
                Rank::Told(end) => entries.push(PollFd::new(end.as_fd(), PollFlags::POLLIN)),
                Rank::Asked(_) => timeout = PollTimeout::from(LOOK_MS),
            }
        }
        match poll(&mut entries, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
