// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft exec --mount`: a rank of another launcher comes to the mounts of its job on this host, and
//! stays in front of its program until that has ended. The last rank of a host waits until the
//! buckets are unmounted, and fails where something is not published.
//!
//! Called by `exec.rs`. Ranks find each other by the launcher's process above them, as for
//! `--shm-size`; the first one starts the keeper.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use weft_job::job::Mount;
use weft_job::mount::check_all;
use weft_job::size::ShmSize;
use weft_os::local_socket::Connection;
use weft_os::process;

use crate::dev_shm::namespace::Namespaces;
use crate::fault::Fault;
use crate::mounts::keeper_message::{self, ENDED, KeeperMessage};
use crate::mounts::keeper_request::KeeperRequest;
use crate::mounts::mount_error::MountError;
use crate::mounts::nodes::Nodes;
use crate::mounts::{START, UNPUBLISHED, checked, stream};
use crate::signals::{self, Watch, killed_by};
use crate::stderr::say;

/// How often a keeper is looked for again that ended before it answered. Chosen: one ends when its
/// ranks have, so the next is of this rank's making.
const TRIES: u32 = 20;
/// Between two looks at a keeper who has too many guests waiting. Chosen.
const PAUSE: Duration = Duration::from_millis(10);
/// How long the others wait before they fail: the MPI's launcher kills all ranks when one has, and
/// the one that tells the story shall have told it. Chosen: long for a process that only prints.
const STORY: Duration = Duration::from_secs(1);

/// A rank inside.
#[derive(Debug)]
pub(crate) struct Member {
    keeper: UnixStream,
}

/// Enters the namespaces of the job on this host; the ranks of `launcher` share them, and `nodes`
/// fetch together. KeeperRequest a process with one thread.
///
/// # Errors
/// `Fault::Usage` for mounts that cannot be; `Fault::Limit`: why it is not mounted, and what to do.
pub(crate) fn join(
    mounts: &[Mount],
    shm_size: Option<ShmSize>,
    launcher: Option<Pid>,
    nodes: Option<Nodes>,
) -> Result<Member, Fault> {
    check_all(mounts).map_err(|why| Fault::Usage(format!("--mount: {}", why.text())))?;
    let above = launcher.map_or_else(std::process::id, |pid| pid.as_raw().unsigned_abs());
    let Some((_, start)) = signals::parent_and_start(above) else {
        return Err(Fault::Limit(format!(
            "--mount: the launcher's process ({above}) is not visible from here, so the ranks \
             of this host cannot find each other; start the launcher inside the container"
        )));
    };
    let wants = KeeperRequest {
        name: KeeperRequest::name(&format!("{above}-{start}")),
        first: Some(std::process::id()),
        shm_size,
        mounts: mounts.to_vec(),
        nodes,
    };
    for _ in 0..TRIES {
        let connection = match Connection::open(&wants.name) {
            Ok(connection) => connection,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(PAUSE);
                continue;
            }
            Err(_) => {
                start_keeper(&wants)?;
                continue;
            }
        };
        let pid = checked(&connection, &wants.name)?.pid;
        let mut keeper = stream(connection).map_err(failed("hearing its keeper"))?;
        match keeper_message::read(&mut keeper).map_err(failed("hearing its keeper"))? {
            Some(KeeperMessage::Ready) => return enter(pid, keeper),
            // One rank of the host tells the whole story.
            Some(KeeperMessage::Refused { why, is_first }) if is_first => {
                return Err(Fault::Limit(format!("--mount {why}")));
            }
            Some(KeeperMessage::Refused { .. }) => {
                std::thread::sleep(STORY);
                return Err(Fault::Limit(
                    "--mount: refused, as another rank of this host says".to_owned(),
                ));
            }
            // It ended in between.
            _ => {}
        }
    }
    Err(Fault::Limit(format!(
        "--mount: its keeper ended {TRIES} times before it answered"
    )))
}

fn enter(keeper: u32, stream: UnixStream) -> Result<Member, Fault> {
    let namespaces = Namespaces::of(keeper).map_err(failed("looking at its keeper"))?;
    namespaces
        .enter()
        .map_err(failed("entering its namespaces"))?;
    // An end is waited for as long as it takes.
    stream
        .set_read_timeout(None)
        .map_err(failed("hearing its keeper"))?;
    Ok(Member { keeper: stream })
}

/// By a process that starts it and ends, so that it is no child of the program.
fn start_keeper(wants: &KeeperRequest) -> Result<(), Fault> {
    let starter = super::command(&[START, &wants.to_word()?]);
    let mut starter = starter.map_err(failed("finding the path of weft"))?;
    // Out of reach of Ctrl-C: it ends when the ranks have.
    starter.process_group(0).stdout(Stdio::null());
    starter
        .status()
        .map(drop)
        .map_err(failed("starting its keeper"))
}

/// Waits until the process has ended; its number stays its own until it is waited for again.
fn wait_without_reaping(program: &Child) -> io::Result<()> {
    let pid = i32::try_from(program.id()).map_err(io::Error::other)?;
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    loop {
        match waitid(Id::Pid(Pid::from_raw(pid)), flags) {
            Err(Errno::EINTR) => {}
            ended => return ended.map(drop).map_err(io::Error::from),
        }
    }
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> Fault {
    Fault::system(format!("--mount: {what}"))
}

impl Member {
    /// Runs the program to its end; answers the exit code: the program's, 128 and the signal that
    /// ended it, or [`UNPUBLISHED`] where it succeeded and something is not published.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn run(mut self, mut command: Command) -> io::Result<u8> {
        process::end_with_parent(&mut command);
        let (sender, started) = std::sync::mpsc::channel::<u32>();
        // Before the start: a signal that comes in between must not end this process alone.
        let mut program = None;
        let _watch = Watch::start(move |arrival| {
            program = program.or_else(|| started.recv().ok());
            if let Some(pid) = program.filter(|_| !arrival.from_terminal) {
                signals::send(pid, arrival.signal);
            }
            program.is_some()
        })?;
        let child = command.spawn();
        if let Ok(child) = &child {
            // The watch outlives the child.
            let _ = sender.send(child.id());
        }
        drop(sender);
        self.see_out(child?)
    }

    /// Waits for the program's end, and for what becomes of its files. Publishing may take long,
    /// and a signal that comes then goes to the program's number: nobody else may have it yet.
    fn see_out(&mut self, mut program: Child) -> io::Result<u8> {
        wait_without_reaping(&program)?;
        let published = self.finish();
        let status = program.wait()?;
        let own = status.signal().map_or_else(
            || u8::try_from(status.code().unwrap_or(1) & 0xff).unwrap_or(1),
            killed_by,
        );
        match published {
            Ok(()) => Ok(own),
            Err(why) => {
                say!("weft exec: --mount {why}");
                Ok(if own == 0 { UNPUBLISHED } else { own })
            }
        }
    }

    fn finish(&mut self) -> Result<(), MountError> {
        let gone = || MountError(keeper_message::GONE.to_owned());
        self.keeper.write_all(ENDED).map_err(|_| gone())?;
        match keeper_message::read(&mut self.keeper) {
            Ok(Some(KeeperMessage::Done)) => Ok(()),
            Ok(Some(KeeperMessage::Failed(why))) => Err(MountError(why)),
            _ => Err(gone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use nix::sys::signal::kill;

    use super::*;

    #[test]
    fn number_of_the_program_is_not_free_before_its_files_are_published() {
        let program = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(program.id()).unwrap());
        let (here, mut there) = UnixStream::pair().unwrap();
        let keeper = std::thread::spawn(move || {
            let mut said = [0; ENDED.len()];
            there.read_exact(&mut said).unwrap();
            assert_eq!(said, ENDED);
            let while_publishing = kill(pid, None);
            there
                .write_all(KeeperMessage::Done.to_line().as_bytes())
                .unwrap();
            while_publishing
        });
        let exit_code = Member { keeper: here }.see_out(program).unwrap();
        assert_eq!(keeper.join().unwrap(), Ok(()), "a signal finds the program");
        let reaped = waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG);
        assert_eq!((exit_code, reaped), (3, Err(Errno::ECHILD)));
    }
}
