// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--mount`: buckets as folders for the ranks that a job has on a host, for as long as the job
//! lives (docs/mount-in-jobs.md).
//!
//! On each host one process, `weft mounts keep`, makes namespaces for the job, starts a
//! `weft-mount` in them for each bucket, and ends these when the ranks have ended; what was written
//! is published by then, or the job fails. The namespaces end with their last process, and the
//! mounts with them, whoever is killed.
//!
//! - `keeper_request`: what it is asked for. `nodes`: whose mounts fetch together.
//!   `keeper_message`: what it says to ranks and to who started it. `mount_error`: why something
//!   is not mounted, or not published. `daemon`: one `weft-mount`. `keeper`: the process itself,
//!   `served_ranks` the ranks that it serves.
//! - `holder`: `weft run`, and its node agent on each other host, start a keeper and hold it by a
//!   pipe. `plan` decides that before the job.
//! - `trial`: a bucket that `weft doctor` mounts for a look.
//! - `member`: under any other launcher the ranks (`weft exec`) meet, as for `--shm-size`: the
//!   first one starts the keeper, and the last one hears what came of the end.

mod daemon;
pub(crate) mod holder;
mod keeper;
mod keeper_message;
pub mod keeper_request;
pub(crate) mod member;
pub(crate) mod mount_error;
pub(crate) mod nodes;
pub(crate) mod plan;
mod served_ranks;
pub mod trial;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use weft_os::local_socket::{Connection, Credentials};
use weft_os::process;

use crate::dev_shm;
use crate::dev_shm::namespace::Namespaces;
use crate::fault::Fault;
use crate::stderr::say;
use keeper_request::KeeperRequest;

pub use daemon::{PROGRAM, program};
pub(crate) use keeper_message::PATIENCE;

/// The exit code of a job that succeeded, and whose files are not all in their buckets.
pub const UNPUBLISHED: u8 = 5;

/// Words behind `weft mounts`.
pub(crate) const KEEP: &str = "keep";
pub(crate) const START: &str = "start";
pub(crate) const ENTER: &str = "enter";
pub(crate) const JOIN: &str = "join";

/// `weft mounts`, by which processes of Weft start each other: answers the exit code where it does
/// not become a program.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    match started(&words) {
        Ok(()) => 0,
        Err(fault) => {
            say!("weft: {fault}");
            fault.exit_code()
        }
    }
}

fn started(words: &[OsString]) -> Result<(), Fault> {
    match dev_shm::as_text(words).as_slice() {
        [KEEP, wants] => {
            let wants = KeeperRequest::from_word(wants)?;
            keeper::keep(&wants).map_err(Fault::system("keeping the buckets of --mount"))
        }
        [START, wants] => command(&[KEEP, wants])
            .and_then(dev_shm::keeper::start)
            .map_err(Fault::system("starting the keeper of --mount")),
        [ENTER, pid, _, ..] => {
            let pid = pid.parse().unwrap_or(0);
            Namespaces::of(pid)
                .and_then(|namespaces| namespaces.enter())
                .map_err(Fault::system("entering the namespaces of --mount"))?;
            dev_shm::become_program(&words[2..])
        }
        [JOIN, name, _, ..] => {
            join(name)?;
            dev_shm::become_program(&words[2..])
        }
        _ => Err(Fault::Usage(
            "mounts is started by --mount, and not by hand; weft mount mounts a bucket".to_owned(),
        )),
    }
}

/// This very program with such words behind `weft mounts`.
fn command(words: &[&str]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("mounts").args(words).stdin(Stdio::null());
    Ok(command)
}

/// Enters the namespaces that the keeper of this name has, which a node agent has started.
fn join(name: &str) -> Result<(), Fault> {
    let failed = |what: &'static str| Fault::system(format!("--mount: {what}"));
    let connection = Connection::open(name).map_err(failed("finding the keeper of this host"))?;
    let keeper = checked(&connection, name)?;
    let mut stream = stream(connection).map_err(failed("hearing the keeper of this host"))?;
    let said =
        keeper_message::read(&mut stream).map_err(failed("hearing the keeper of this host"))?;
    match said {
        Some(keeper_message::KeeperMessage::Ready) => Namespaces::of(keeper.pid)
            .and_then(|namespaces| namespaces.enter())
            .map_err(failed("entering the namespaces of this host")),
        Some(keeper_message::KeeperMessage::Refused { why, .. }) => {
            Err(Fault::Limit(format!("--mount: {why}")))
        }
        _ => Err(Fault::Limit(
            "--mount: the keeper of this host has ended; start the job again".to_owned(),
        )),
    }
}

/// The keeper, if it is this user's.
fn checked(connection: &Connection, name: &str) -> Result<Credentials, Fault> {
    let who = connection
        .credentials()
        .map_err(Fault::system("--mount: asking who the keeper is"))?;
    if who.uid == process::own_uid() {
        return Ok(who);
    }
    Err(Fault::Limit(format!(
        "--mount: user {} has taken the name @{name} of the socket by which the ranks find each \
         other; start the job again, and tell the system's administrator",
        who.uid
    )))
}

/// The connection as a stream that waits.
fn stream(connection: Connection) -> io::Result<UnixStream> {
    let stream = UnixStream::from(OwnedFd::from(connection));
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(keeper_message::PATIENCE))?;
    Ok(stream)
}

/// The variables by which the client of a store finds address, region and credentials; a host
/// without this process's environment is given them on a pipe.
#[must_use]
pub fn variables() -> BTreeMap<String, OsString> {
    let all = std::env::vars_os();
    let all = all.filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    all.filter(|(name, _)| is_for_stores(name.as_ref()))
        .collect()
}

/// Whether a variable is one of those: the names that every SDK of AWS reads.
#[must_use]
pub fn is_for_stores(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"AWS_")
}
