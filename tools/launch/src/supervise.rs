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
    /// From start to end.
    pub elapsed: Duration,
}

enum Event {
    Signal(Signal),
    Ended(io::Result<ExitStatus>),
}

/// Runs the command to its end.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn run(mut command: Command, time_limit: Option<Duration>) -> io::Result<Ending> {
    signals::adopt_orphans();
    let (events, arriving) = channel();
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
    let (status, timed_out) = until_end(pid, &arriving, time_limit.map(|limit| started + limit))?;
    drop(watch);
    if timed_out || status.signal().is_some() {
        signals::kill_descendants();
    }
    Ok(Ending {
        code: status.code(),
        signal: status.signal(),
        timed_out,
        elapsed: started.elapsed(),
    })
}

fn until_end(
    pid: u32,
    arriving: &Receiver<Event>,
    mut deadline: Option<Instant>,
) -> io::Result<(ExitStatus, bool)> {
    let mut timed_out = false;
    loop {
        match next(arriving, deadline) {
            Ok(Event::Ended(status)) => return Ok((status?, timed_out)),
            Ok(Event::Signal(signal)) => signals::send(pid, signal),
            Err(RecvTimeoutError::Timeout) if timed_out => {
                signals::kill_descendants();
                deadline = None;
            }
            Err(RecvTimeoutError::Timeout) => {
                timed_out = true;
                signals::send(pid, Signal::SIGTERM);
                // A stopped launcher would not see TERM.
                signals::send(pid, Signal::SIGCONT);
                deadline = Some(Instant::now() + GRACE);
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other(
                    "the thread that waits for the launcher is gone",
                ));
            }
        }
    }
}

fn next(arriving: &Receiver<Event>, deadline: Option<Instant>) -> Result<Event, RecvTimeoutError> {
    match deadline {
        Some(moment) => arriving.recv_timeout(moment.saturating_duration_since(Instant::now())),
        None => arriving.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}
