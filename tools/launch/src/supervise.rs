// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One launcher from start to end: signals passed on, the time limit kept, nothing left behind when it was ended by force.
//!
//! Called by `lib.rs` with the composed command; uses `signals.rs`; gives an `Ending` to `outcome.rs`.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::posts::Loss;
use crate::signals::{self, Watch};

/// How long the launcher has, after TERM, to end its ranks in its own way. Chosen: Hydra and PRRTE need well below one second.
const GRACE: Duration = Duration::from_secs(5);

/// How a launcher ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// Exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
    /// Whether the time limit ended it.
    pub timed_out: bool,
    /// Whether it was ended because a host was lost.
    pub host_lost: bool,
    /// From start to end.
    pub elapsed: Duration,
}

/// What a job on several hosts brings along.
#[derive(Debug, Default)]
pub struct Elsewhere {
    /// Hosts that are lost on the way; each ends the job.
    pub losses: Option<Receiver<Loss>>,
    /// Our own links to the other hosts, which must outlive the job.
    pub spared: Vec<u32>,
}

enum Event {
    Signal(Signal),
    Lost(Loss),
    Ended(io::Result<ExitStatus>),
}

/// Runs the command to its end.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn run(
    mut command: Command,
    time_limit: Option<Duration>,
    elsewhere: Elsewhere,
) -> io::Result<Ending> {
    signals::adopt_orphans();
    let (events, arriving) = channel();
    let Elsewhere { losses, spared } = elsewhere;
    if let Some(losses) = losses {
        let events = events.clone();
        let pass_on = move || {
            losses
                .into_iter()
                .all(|loss| events.send(Event::Lost(loss)).is_ok())
        };
        std::thread::Builder::new()
            .name("losses".into())
            .spawn(pass_on)?;
    }
    let from_signals = events.clone();
    // Before the start: a signal that comes in between must not end weft run alone.
    let watch = Watch::start(move |signal| from_signals.send(Event::Signal(signal)).is_ok())?;
    let started = Instant::now();
    let mut child = command.spawn()?;
    let pid = child.id();
    std::thread::Builder::new()
        .name("launcher".into())
        .spawn(move || {
            let _ = events.send(Event::Ended(child.wait()));
        })?;
    let (status, reason) = until_end(
        pid,
        &arriving,
        time_limit.map(|limit| started + limit),
        &spared,
    )?;
    drop(watch);
    if reason.is_some() || status.signal().is_some() {
        signals::kill_descendants(&spared);
    }
    Ok(Ending {
        code: status.code(),
        signal: status.signal(),
        timed_out: reason == Some(Reason::Time),
        host_lost: reason == Some(Reason::Host),
        elapsed: started.elapsed(),
    })
}

/// Why the launcher was ended from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Time,
    Host,
}

fn until_end(
    pid: u32,
    arriving: &Receiver<Event>,
    mut deadline: Option<Instant>,
    spared: &[u32],
) -> io::Result<(ExitStatus, Option<Reason>)> {
    let mut reason = None;
    loop {
        match next(arriving, deadline) {
            Ok(Event::Ended(status)) => return Ok((status?, reason)),
            Ok(Event::Signal(signal)) => signals::send(pid, signal),
            Ok(Event::Lost(Loss(text))) => {
                eprintln!("weft: {text}; ending the job");
                if reason.is_none() {
                    reason = Some(Reason::Host);
                    deadline = Some(ask_to_end(pid));
                }
            }
            Err(RecvTimeoutError::Timeout) if reason.is_some() => {
                signals::kill_descendants(spared);
                deadline = None;
            }
            Err(RecvTimeoutError::Timeout) => {
                reason = Some(Reason::Time);
                deadline = Some(ask_to_end(pid));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other(
                    "the thread that waits for the launcher is gone",
                ));
            }
        }
    }
}

/// Sends TERM, and returns when patience with the launcher ends.
fn ask_to_end(pid: u32) -> Instant {
    signals::send(pid, Signal::SIGTERM);
    // A stopped launcher would not see TERM.
    signals::send(pid, Signal::SIGCONT);
    Instant::now() + GRACE
}

fn next(arriving: &Receiver<Event>, deadline: Option<Instant>) -> Result<Event, RecvTimeoutError> {
    match deadline {
        Some(moment) => arriving.recv_timeout(moment.saturating_duration_since(Instant::now())),
        None => arriving.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}
