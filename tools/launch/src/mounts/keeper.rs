// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keeper: makes the namespaces, mounts the buckets in them, lets ranks in, and unmounts when
//! they have ended.
//!
//! Started by `member.rs` for the ranks of other launchers: it serves until they have ended.
//! Started by `holder.rs` for `weft run`: it serves until its standard input ends, and says on its
//! standard output what it tells ranks.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use weft_os::local_socket::{Connection, Listener};
use weft_os::{capability, process};

use crate::dev_shm::keeper::{Rank, close_inherited};
use crate::dev_shm::namespace::{self, SYS_ADMIN};
use crate::mounts::daemon::Daemon;
use crate::mounts::keeper_message::KeeperMessage;
use crate::mounts::keeper_request::KeeperRequest;
use crate::mounts::mount_error::MountError;
use crate::mounts::served_ranks::ServedRanks;
use crate::signals::Watch;

/// How often the first rank is looked for, whose end the kernel may not tell. Chosen.
const LOOK_MS: u16 = 500;

/// Keeps what is wanted, to the end. Where somebody of this user does so under the same name,
/// nothing is mounted a second time.
///
/// # Errors
/// When it cannot listen, or not be heard.
pub(crate) fn keep(wants: &KeeperRequest) -> io::Result<()> {
    close_inherited();
    let listener = match Listener::bind(&wants.name) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => return stand_by(wants),
        bound => bound?,
    };
    if wants.first.is_some() {
        // Who started it waits for the end of its output.
        let null = std::fs::File::options().write(true).open("/dev/null")?;
        nix::unistd::dup2_stdout(&null)?;
    }
    let mounted = mount(wants);
    // From here on it ends as its ranks or its holder want, and not by a signal to the job.
    let _watch = Watch::start(|_| true)?;
    let (daemons, answer) = match mounted {
        Ok(daemons) => (daemons, KeeperMessage::Ready),
        Err(why) => (
            Vec::new(),
            KeeperMessage::Refused {
                why: why.to_string(),
                is_first: false,
            },
        ),
    };
    let keeper = Keeper {
        listener,
        answer,
        guests: ServedRanks::default(),
        first: wants.first.map(|pid| (pid, Rank::of(pid))),
        is_held: wants.first.is_none(),
        daemons,
    };
    keeper.serve()
}

/// Another keeper of this job is on this host, as where one machine has two names.
fn stand_by(wants: &KeeperRequest) -> io::Result<()> {
    if wants.first.is_none() {
        say(&KeeperMessage::Ready)?;
        io::copy(&mut io::stdin(), &mut io::sink())?;
        say(&KeeperMessage::Done)?;
    }
    Ok(())
}

/// Makes the namespaces, and mounts in them.
fn mount(wants: &KeeperRequest) -> Result<Vec<Daemon>, MountError> {
    let size = wants.shm_size.map(|size| size.bytes());
    namespace::make(size).map_err(|why| MountError(why.to_string()))?;
    // In a user namespace a program that is executed would have no right to mount.
    capability::pass_on(SYS_ADMIN).map_err(MountError::system(
        "passing the right to mount on to weft-mount",
    ))?;
    let mut daemons = Vec::new();
    for (number, mount) in wants.mounts.iter().enumerate() {
        match Daemon::start(mount, number, wants.nodes.as_ref()) {
            Ok(daemon) => daemons.push(daemon),
            Err(why) => {
                // Nothing was written to those that are mounted.
                let _ = end(daemons);
                return Err(why);
            }
        }
    }
    Ok(daemons)
}

/// Unmounts; the last one first, since it may lie in another.
fn end(daemons: Vec<Daemon>) -> KeeperMessage {
    let ended = daemons.into_iter().rev().map(Daemon::end);
    let lost: Vec<String> = ended
        .filter_map(|one| one.err().map(|why| why.to_string()))
        .collect();
    if lost.is_empty() {
        KeeperMessage::Done
    } else {
        KeeperMessage::Failed(lost.join("; "))
    }
}

fn say(word: &KeeperMessage) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(word.to_line().as_bytes())?;
    out.flush()
}

struct Keeper {
    listener: Listener,
    /// What each rank is told that comes.
    answer: KeeperMessage,
    guests: ServedRanks,
    /// The rank that started this, until it has come.
    first: Option<(u32, Rank)>,
    /// Somebody holds it by its standard input.
    is_held: bool,
    daemons: Vec<Daemon>,
}

impl Keeper {
    fn serve(mut self) -> io::Result<()> {
        if self.is_held {
            say(&self.answer)?;
        }
        let starter = self.first.as_ref().map(|(pid, _)| *pid);
        loop {
            while let Some(connection) = self.listener.accept() {
                self.receive(connection, starter);
            }
            if self.is_held {
                if self.is_let_go() {
                    break;
                }
            } else {
                self.guests.hear();
                let is_awaited = self
                    .first
                    .as_ref()
                    .is_some_and(|(_, rank)| !rank.has_ended());
                if !is_awaited && !self.guests.are_busy() {
                    break;
                }
            }
            self.wait()?;
        }
        // A rank that comes from now on finds nobody, and starts another keeper.
        drop(self.listener);
        let word = end(self.daemons);
        self.guests.dismiss(&word);
        if self.is_held {
            // Who held it may be gone; then nobody is left to be told.
            let _ = say(&word);
        }
        Ok(())
    }

    /// Who is no process of this user is not answered, and learns nothing.
    fn receive(&mut self, connection: Connection, starter: Option<u32>) {
        let who = connection.credentials();
        let Some(who) = who.ok().filter(|who| who.uid == process::own_uid()) else {
            return;
        };
        if self.first.as_ref().is_some_and(|(pid, _)| *pid == who.pid) {
            self.first = None;
        }
        if let KeeperMessage::Refused { is_first, .. } = &mut self.answer {
            *is_first = starter == Some(who.pid);
        }
        let told = connection.send_bytes(self.answer.to_line().as_bytes());
        if told.is_ok() && !self.is_held {
            self.guests.add(UnixStream::from(OwnedFd::from(connection)));
        }
    }

    /// Whether the standard input has ended.
    fn is_let_go(&self) -> bool {
        let mut bytes = [0; 64];
        is_readable(io::stdin().as_fd())
            && matches!(io::stdin().lock().read(&mut bytes), Ok(0) | Err(_))
    }

    /// For whatever comes next.
    fn wait(&self) -> io::Result<()> {
        let input = io::stdin();
        let held = self.is_held.then(|| input.as_fd());
        let all = [self.listener.as_fd()].into_iter().chain(held);
        let all = all.chain(self.guests.descriptors());
        let mut entries: Vec<PollFd<'_>> =
            all.map(|one| PollFd::new(one, PollFlags::POLLIN)).collect();
        let timeout = match self.first {
            Some(_) => PollTimeout::from(LOOK_MS),
            None => PollTimeout::NONE,
        };
        match poll(&mut entries, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut entry = [PollFd::new(descriptor, PollFlags::POLLIN)];
    poll(&mut entry, PollTimeout::ZERO).is_ok_and(|count| count > 0)
}
