// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the ranks of one job on one host find each other: by the launcher's process above them,
//! whose number and time of start make the name of their keeper's socket.
//!
//! Called by `dev_shm.rs` in each rank, before it becomes the program. The first one starts the
//! keeper (`keeper.rs`); all enter the keeper's namespaces. The kernel says whose socket it is, so
//! another user who has taken the name is found out.

use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use nix::unistd::Pid;
use weft_job::size::ShmSize;
use weft_os::local_socket::{Connection, Credentials};
use weft_os::process;

use super::answer::{Answer, LONGEST_BYTES};
use super::namespace::{Namespaces, PLACE};
use super::refusal::Refusal;
use super::subcommand;
use crate::signals;

/// How long a keeper may take to answer. Chosen: it takes milliseconds, on a machine that swaps
/// seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a keeper is looked for again that ended before it answered. Chosen: one ends when its
/// ranks have, so the next is of this rank's making.
const TRIES: u32 = 20;
/// Between two looks at a keeper who has too many guests waiting. Chosen.
const PAUSE: Duration = Duration::from_millis(10);

/// Why a rank did not come in.
#[derive(Debug)]
pub(crate) enum Apart {
    /// The host refuses namespaces: why, and what to do. `is_first` on one rank of the host.
    Refused {
        /// Why.
        why: Refusal,
        /// Whether this rank is the one to say so.
        is_first: bool,
    },
    /// Something that `try:` does not go on from: some ranks would be in and others not.
    Failed(String),
}

/// The ranks that a launcher's process has below it, on this host.
#[derive(Debug)]
pub(crate) struct Meeting {
    name: String,
    size: ShmSize,
}

impl Meeting {
    /// That of the ranks below this process.
    ///
    /// # Errors
    /// `Apart::Failed` where it cannot be seen.
    pub(crate) fn below(launcher: Pid, size: ShmSize) -> Result<Self, Apart> {
        let pid = u32::try_from(launcher.as_raw()).unwrap_or(0);
        let Some((_, start)) = signals::parent_and_start(pid).filter(|_| pid > 0) else {
            return Err(Apart::Failed(format!(
                "the launcher's process ({launcher}) is not visible from here, so the ranks of \
                 this host cannot find each other; start the launcher inside the container"
            )));
        };
        let user = process::own_uid();
        Ok(Self {
            name: format!("weft-dev-shm/{user}/{pid}-{start}"),
            size,
        })
    }

    /// Enters the namespaces that the ranks share.
    ///
    /// # Errors
    /// Why this rank did not come in.
    pub(crate) fn join(&self) -> Result<(), Apart> {
        for _ in 0..TRIES {
            let connection = match Connection::open(&self.name) {
                Ok(connection) => connection,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(PAUSE);
                    continue;
                }
                Err(_) => {
                    self.start_keeper().map_err(failed("starting its keeper"))?;
                    continue;
                }
            };
            let keeper = self.checked(&connection)?;
            let line = line_of(connection).map_err(failed("hearing its keeper"))?;
            match Answer::from_line(&line) {
                // It ended in between.
                None if line.is_empty() => {}
                None => return Err(Apart::Failed("its keeper says nonsense".to_owned())),
                Some(Answer::Refused { why, is_first }) => {
                    let why = Refusal::Told(why);
                    return Err(Apart::Refused { why, is_first });
                }
                Some(Answer::Ready(size)) => return self.enter(keeper.pid, size),
            }
        }
        Err(Apart::Failed(format!(
            "its keeper ended {TRIES} times before it answered"
        )))
    }

    /// By a process that starts it and ends, so that it is no child of the program.
    fn start_keeper(&self) -> io::Result<()> {
        let (size, own) = (self.size.to_string(), std::process::id().to_string());
        let mut starter = subcommand::command(&[subcommand::START, &self.name, &size, &own])?;
        // Out of reach of Ctrl-C: it ends when the ranks have.
        starter.process_group(0).stdout(Stdio::null());
        starter.status().map(drop)
    }

    /// The keeper, if it is this user's.
    fn checked(&self, connection: &Connection) -> Result<Credentials, Apart> {
        let who = connection.credentials();
        let who = who.map_err(failed("asking who its keeper is"))?;
        if who.uid != process::own_uid() {
            return Err(Apart::Failed(format!(
                "user {} has taken the name @{} of the socket by which the ranks find each other; \
                 start the job again, and tell the system's administrator",
                who.uid, self.name
            )));
        }
        Ok(who)
    }

    fn enter(&self, keeper: u32, size: ShmSize) -> Result<(), Apart> {
        if size.bytes() != self.size.bytes() {
            return Err(Apart::Failed(format!(
                "another rank of this host has asked for {size}; ask for the same in all"
            )));
        }
        let namespaces = Namespaces::of(keeper).map_err(failed("looking at its keeper"))?;
        namespaces.enter().map_err(failed("entering it"))?;
        // Also the answer to who took a dead keeper's number.
        let found = statvfs(PLACE).map_err(|error| failed("looking at it")(error.into()))?;
        let found = found.blocks().saturating_mul(found.fragment_size());
        if found.abs_diff(size.bytes()) < PAGE_MOST_BYTES {
            return Ok(());
        }
        Err(Apart::Failed(format!(
            "it has {found} bytes after all; its keeper has ended, start the job again"
        )))
    }
}

/// What tmpfs rounds up to at most: the largest page of a processor. Specified (64 KiB on arm64).
const PAGE_MOST_BYTES: u64 = 64 << 10;

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> Apart {
    move |error| Apart::Failed(format!("{what}: {error}"))
}

/// The line that comes; empty where the other end is closed before.
fn line_of(connection: Connection) -> io::Result<String> {
    let stream = UnixStream::from(OwnedFd::from(connection));
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    match BufReader::new(stream.take(LONGEST_BYTES)).read_line(&mut line) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(String::new()),
        read => read.map(|_| line),
    }
}
