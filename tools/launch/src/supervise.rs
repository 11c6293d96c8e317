// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One launcher from start to end: signals passed on, the time limit kept, nothing left behind when
//! it was ended by force.
//!
//! Called by `lib.rs` with the composed command; uses `signals.rs`; gives an `Ending` to
//! `outcome.rs`. However the end was asked for, the launcher gets a grace period, and after it
//! every process of the job gets KILL: no end depends on a launcher or a program that behaves.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::family::Family;
use crate::node_agents::Loss;
use crate::rank_ends::{Ends, Listener};
use crate::rank_ledger::Failure;
use crate::signals::{self, Arrival, Watch};
use crate::stderr::say;
use crate::{deadlock, hung, launcher_start};

/// How long the launcher has to end its ranks in its own way. Chosen: Hydra and PRRTE need well
/// below one second.
pub const GRACE: Duration = Duration::from_secs(5);
/// From one KILL to the next, for what was born in between.
const AGAIN: Duration = Duration::from_secs(1);
/// How often KILL is sent before the launcher is left alone: then it waits inside the kernel, where
/// no signal reaches it.
const KILLS: u32 = 10;
/// A second Ctrl-C sooner than this is the first one, sent twice: by the terminal, and by a program
/// that passes it on.
const TWICE: Duration = Duration::from_millis(200);

/// Why a job was ended from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its time was over.
    Time,
    /// A host was lost.
    Host,
    /// Its launcher deadlocked.
    Deadlock,
    /// A rank had failed, and the launcher did not end.
    Rank,
    /// Somebody sent `weft run` this signal.
    Asked(Signal),
}

/// How a launcher ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// Exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
    /// Why it was ended from here, if it was: the first reason.
    pub reason: Option<Reason>,
    /// The first rank of this host that failed by itself, as far as the launcher's processes told.
    pub first: Option<Failure>,
    /// Whether it took KILL.
    pub forced: bool,
    /// The launcher's process number; nobody has it any more.
    pub launcher: u32,
    /// From start to end.
    pub elapsed: Duration,
}

/// How long a job may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From its start; without one, as long as it likes.
    pub time: Option<Duration>,
    /// From when its end was asked for: [`GRACE`], but for tests.
    pub grace: Duration,
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
    Signal(Arrival),
    Lost(Loss),
    Deadlock,
    Hung,
    Ended(io::Result<ExitStatus>),
}

/// Runs the command, the launcher of this family, to its end. `ranks` hears how they end.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn run(
    mut command: Command,
    family: Family,
    limits: Limits,
    elsewhere: Elsewhere,
    ranks: Option<Listener>,
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
    let watch = Watch::start(move |arrival| from_signals.send(Event::Signal(arrival)).is_ok())?;
    let started = Instant::now();
    let mut child = launcher_start::start(&mut command, family)?;
    let mut job = Job {
        launcher: child.id(),
        spared,
        deadline: limits.time.map(|limit| started + limit),
        reason: None,
        grace: limits.grace,
        asked: started,
        kills: 0,
    };
    if deadlock::can_be_seen(family) {
        let (events, launcher) = (events.clone(), child.id());
        let tell = move || drop(events.send(Event::Deadlock));
        std::thread::Builder::new()
            .name("deadlock".into())
            .spawn(move || deadlock::watch(launcher, tell))?;
    }
    let ends = ranks
        .map(|ranks| listen(ranks, child.id(), family, events.clone()))
        .transpose()?;
    std::thread::Builder::new()
        .name("launcher".into())
        .spawn(move || {
            let _ = events.send(Event::Ended(child.wait()));
        })?;
    let status = job.until_end(&arriving)?;
    drop(watch);
    let first = ends.and_then(|ends| ends.finish().first);
    if job.reason.is_some() || status.signal().is_some() {
        signals::kill_descendants(&job.spared);
    }
    Ok(Ending {
        code: status.code(),
        signal: status.signal(),
        reason: job.reason,
        first,
        forced: job.kills > 0,
        launcher: job.launcher,
        elapsed: started.elapsed(),
    })
}

/// Hears how the ranks of a launcher end; looks at the launcher once one has ended.
fn listen(
    ranks: Listener,
    launcher: u32,
    family: Family,
    events: Sender<Event>,
) -> io::Result<Ends> {
    let mut events = Some(events);
    let endpoints = ranks.endpoints.clone();
    ranks.listen(move |ledger| {
        let Some(events) = events.take() else {
            return;
        };
        let (ledger, endpoints) = (ledger.clone(), endpoints.clone());
        let tell = move || drop(events.send(Event::Hung));
        // Without a thread the job lasts until the launcher ends, as it does without a failure.
        let _ = std::thread::Builder::new()
            .name("hung".into())
            .spawn(move || hung::watch(launcher, family, &ledger, &endpoints, tell));
    })
}

/// A launcher that runs.
struct Job {
    launcher: u32,
    spared: Vec<u32>,
    /// When patience ends: with the time limit, with the grace period, or with the pause between
    /// two kills.
    deadline: Option<Instant>,
    reason: Option<Reason>,
    grace: Duration,
    /// When the user asked for the end; before that, when the job started.
    asked: Instant,
    /// How often KILL was sent.
    kills: u32,
}

impl Job {
    fn until_end(&mut self, arriving: &Receiver<Event>) -> io::Result<ExitStatus> {
        loop {
            match next(arriving, self.deadline) {
                Ok(Event::Ended(status)) => return status,
                Ok(Event::Signal(arrival)) if arrival.asks_to_end() => self.obey(arrival),
                Ok(Event::Signal(arrival)) => self.pass_on(arrival),
                Ok(Event::Lost(Loss(text))) => {
                    say!("weft: {text}; ending the job");
                    self.end(Reason::Host);
                }
                Ok(Event::Deadlock) => self.end(Reason::Deadlock),
                Ok(Event::Hung) => self.end(Reason::Rank),
                Err(RecvTimeoutError::Timeout) if self.kills == KILLS => {
                    let pid = self.launcher;
                    say!("weft: process {pid} cannot be ended: it waits inside the kernel");
                    return Ok(ExitStatus::from_raw(Signal::SIGKILL as i32));
                }
                Err(RecvTimeoutError::Timeout) if self.reason.is_some() => self.kill(),
                Err(RecvTimeoutError::Timeout) => self.end(Reason::Time),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other(
                        "the thread that waits for the launcher is gone",
                    ));
                }
            }
        }
    }

    /// Ctrl-C asks, and a second time it insists, whatever the end was asked for by before; so does
    /// Ctrl-\ at once.
    fn obey(&mut self, arrival: Arrival) {
        if self.insists(arrival) {
            self.kill();
        } else {
            self.pass_on(arrival);
        }
    }

    /// Notes the first request to end, from which the grace period counts; whether this one may
    /// not wait for it. Signals count by when they came: a busy machine may hand over two together.
    fn insists(&mut self, arrival: Arrival) -> bool {
        let again = self.reason.is_some() && arrival.at.duration_since(self.asked) > TWICE;
        if self.reason.is_none() {
            self.asked = arrival.at;
            self.reason = Some(Reason::Asked(arrival.signal));
            self.deadline = Some(self.asked + self.grace);
        }
        match arrival.signal {
            Signal::SIGQUIT => true,
            Signal::SIGINT => again,
            _ => false,
        }
    }

    fn pass_on(&self, arrival: Arrival) {
        if !arrival.from_terminal {
            signals::send(self.launcher, arrival.signal);
        }
        if arrival.asks_to_end() {
            self.wake();
        }
    }

    fn end(&mut self, reason: Reason) {
        if self.reason.is_none() {
            self.reason = Some(reason);
            self.asked = Instant::now();
            self.deadline = Some(self.asked + self.grace);
            signals::send(self.launcher, Signal::SIGTERM);
            self.wake();
        }
    }

    /// A stopped launcher would not see what it was sent.
    fn wake(&self) {
        signals::send(self.launcher, Signal::SIGCONT);
    }

    fn kill(&mut self) {
        self.kills += 1;
        self.deadline = Some(Instant::now() + AGAIN);
        signals::kill_descendants(&self.spared);
    }
}

fn next(arriving: &Receiver<Event>, deadline: Option<Instant>) -> Result<Event, RecvTimeoutError> {
    match deadline {
        Some(moment) => arriving.recv_timeout(moment.saturating_duration_since(Instant::now())),
        None => arriving.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(started: Instant) -> Job {
        Job {
            launcher: u32::MAX,
            spared: Vec::new(),
            deadline: None,
            reason: None,
            grace: GRACE,
            asked: started,
            kills: 0,
        }
    }

    /// Whether the second of two signals insists that came at these times, and are heard together.
    fn second_insists(name: Signal, apart: Duration) -> bool {
        let first = Arrival {
            signal: name,
            from_terminal: false,
            at: Instant::now(),
        };
        let second = Arrival {
            at: first.at + apart,
            ..first
        };
        let mut job = job(first.at);
        assert!(!job.insists(first));
        assert_eq!(job.deadline, Some(first.at + GRACE));
        job.insists(second)
    }

    #[test]
    fn a_second_ctrl_c_counts_by_when_it_came_also_if_both_are_heard_together() {
        let later = TWICE + Duration::from_millis(1);
        assert!(second_insists(Signal::SIGINT, later));
        assert!(!second_insists(Signal::SIGINT, TWICE));
        assert!(!second_insists(Signal::SIGTERM, later));
    }
}
