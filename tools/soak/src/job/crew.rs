// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes of a job: starts them on their hosts, hears what they say, kills them and starts
//! them again.
//!
//! Owned by the job.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::process::Process;
use super::setting::Setting;
use super::starter::{Heard, Starter};
use crate::control::{Order, Peer, Progress, Word};
use crate::finding::{Finding, Kind};
use crate::network::Host;
use crate::schedule;
use crate::traffic::{Life, Stream};

/// How long a process may take to open its endpoint, or to close it. Chosen for a busy machine.
const START_MOST: Duration = Duration::from_secs(60);

/// All processes of a job.
pub(super) struct Crew {
    pub(super) starter: Starter,
    now: HashMap<u8, Process>,
    /// Lives that were killed in this round.
    killed: Vec<Life>,
    /// What killed processes had done.
    past: Progress,
    round: u16,
    words: Receiver<Heard>,
    speaker: Sender<Heard>,
    pub(super) said: Said,
}

/// What the processes said that was not awaited.
#[derive(Default)]
pub(super) struct Said {
    /// Faults that they found themselves, or that their ends are.
    pub(super) found: Vec<Finding>,
    /// What each waits for.
    pub(super) states: Vec<String>,
    /// A process has ended that should not have.
    pub(super) has_failed: bool,
}

impl Crew {
    pub(super) fn new(setting: Setting, job: schedule::Job, hosts: Vec<Host>) -> Self {
        let (speaker, words) = channel();
        Self {
            starter: Starter::new(setting, job, hosts),
            now: HashMap::new(),
            killed: Vec::new(),
            past: Progress::default(),
            round: 0,
            words,
            speaker,
            said: Said::default(),
        }
    }

    fn start(&mut self, life: Life) -> io::Result<()> {
        let process = self.starter.start(life, self.speaker.clone())?;
        self.now.insert(life.rank, process);
        Ok(())
    }

    /// Starts one process for each rank, and waits until their endpoints are open.
    pub(super) fn start_all(&mut self) -> io::Result<()> {
        for rank in 0..self.starter.setting.ranks {
            self.start(Life::first(rank))?;
        }
        let until = Instant::now() + START_MOST;
        while !self.now.values().all(|process| process.is_ready) {
            self.listen(Duration::from_millis(20));
            if self.said.has_failed || Instant::now() > until {
                let text = format!("the workers do not start: {}", self.starter.talk());
                return Err(io::Error::other(text));
            }
        }
        Ok(())
    }

    /// Prepares a round with everybody who is there.
    pub(super) fn begin(&mut self, round: u16) {
        self.round = round;
        self.killed.clear();
        self.said.states.clear();
        for rank in 0..self.starter.setting.ranks {
            self.begin_one(rank);
        }
    }

    fn begin_one(&mut self, rank: u8) {
        let others = self
            .now
            .values()
            .filter(|other| other.is_alive && other.is_ready);
        let others = others.filter(|other| other.life.rank != rank);
        let mut peers: Vec<Peer> = others.map(|other| self.starter.peer(other.life)).collect();
        peers.sort_by_key(|peer| peer.life);
        let order = Order::Begin {
            round: self.round,
            peers,
            budget: self.starter.job.budget,
        };
        if let Some(process) = self.now.get_mut(&rank) {
            process.begin();
        }
        self.send(rank, &order);
    }

    /// Gives one process an order. One that is gone does not hear it.
    pub(super) fn send(&mut self, rank: u8, order: &Order) {
        if let Some(process) = self.now.get_mut(&rank) {
            process.send(order);
        }
    }

    pub(super) fn send_all(&mut self, order: &Order) {
        for rank in 0..self.starter.setting.ranks {
            self.send(rank, order);
        }
    }

    /// Hears what the processes say, for so long at most.
    pub(super) fn listen(&mut self, most: Duration) {
        let Ok(first) = self.words.recv_timeout(most) else {
            return;
        };
        self.hear(first);
        while let Ok(next) = self.words.try_recv() {
            self.hear(next);
        }
    }

    fn hear(&mut self, heard: Heard) {
        let Heard { life, word } = heard;
        let Some(process) = self.now.get_mut(&life.rank).filter(|one| one.life == life) else {
            return;
        };
        match word {
            Some(Word::Ready) => {
                process.is_ready = true;
                if life.generation > 0 {
                    self.meet_again(life);
                }
            }
            Some(Word::Begun) => process.has_begun = true,
            Some(Word::Progress(progress)) => process.progress = progress,
            Some(Word::Posted(posted)) => process.posted = Some(posted),
            Some(Word::Quiet) => process.is_quiet = true,
            Some(Word::Complaint(finding)) => self.said.found.push(finding),
            Some(Word::State(state)) => self.said.states.push(state),
            None if process.is_alive => {
                process.is_alive = false;
                let status = process.child.wait();
                let text = match status {
                    Ok(status) => format!("{life} ended by itself: {status}"),
                    Err(error) => format!("{life} ended by itself: {error}"),
                };
                self.said.found.push(Finding::new(Kind::Failed, text));
                self.said.has_failed = true;
            }
            None => {}
        }
    }

    /// A process that was started again is there: it joins the round, and the others hear of it.
    fn meet_again(&mut self, life: Life) {
        self.begin_one(life.rank);
        self.send(life.rank, &Order::Go);
        let peer = self.starter.peer(life);
        for rank in (0..self.starter.setting.ranks).filter(|rank| *rank != life.rank) {
            self.send(rank, &Order::Back(peer));
        }
    }

    pub(super) fn signal(&mut self, rank: u8, signal: Signal) {
        if let Some(process) = self.now.get(&rank) {
            process.signal(signal);
        }
    }

    /// Kills a process, and tells the others. Helpers that it has forked live on.
    pub(super) fn kill(&mut self, rank: u8) {
        let Some(process) = self.now.get_mut(&rank).filter(|process| process.is_alive) else {
            return;
        };
        process.is_alive = false;
        process.input = None;
        let _ = process.child.kill();
        let _ = process.child.wait();
        self.killed.push(process.life);
        add(&mut self.past, &process.progress);
        for other in (0..self.starter.setting.ranks).filter(|other| *other != rank) {
            self.send(other, &Order::Gone(rank));
        }
    }

    /// Starts a rank that was killed again, at its address.
    pub(super) fn restart(&mut self, rank: u8) -> io::Result<()> {
        let Some(process) = self.now.get(&rank).filter(|process| !process.is_alive) else {
            return Ok(());
        };
        let life = Life {
            rank,
            generation: process.life.generation + 1,
        };
        self.start(life)
    }

    /// Gives everybody the list of what it must have received.
    pub(super) fn drain(&mut self, posted: &HashMap<Stream, u32>) {
        let lives: Vec<Life> = self.now.values().map(|process| process.life).collect();
        for life in lives {
            let to = posted.iter().filter(|(stream, _)| stream.to == life);
            let list = to.map(|(stream, count)| (*stream, *count)).collect();
            self.send(life.rank, &Order::Drain(list));
        }
    }

    /// Messages posted on each stream between processes that live.
    pub(super) fn posted(&self) -> HashMap<Stream, u32> {
        let alive = |life: &Life| {
            let process = self.now.get(&life.rank);
            process.is_some_and(|process| process.is_alive && process.life == *life)
        };
        let all = self
            .now
            .values()
            .filter_map(|process| process.posted.as_ref());
        all.flatten()
            .filter(|(stream, _)| alive(&stream.from) && alive(&stream.to))
            .copied()
            .collect()
    }

    /// Whether all live, and something is so of each.
    pub(super) fn all(&self, is_so: impl Fn(&Process) -> bool) -> bool {
        self.now
            .values()
            .all(|process| process.is_alive && is_so(process))
    }

    /// Everything that moved.
    pub(super) fn steps(&self) -> u64 {
        self.now
            .values()
            .map(|process| process.progress.steps)
            .sum()
    }

    pub(super) fn total(&self) -> Progress {
        let mut total = self.past;
        self.now
            .values()
            .for_each(|process| add(&mut total, &process.progress));
        total
    }

    /// Who ran in this round, and whether a kill has cut its ledger.
    pub(super) fn lives_of_round(&self) -> Vec<(Life, bool)> {
        let now = self
            .now
            .values()
            .map(|process| (process.life, !process.is_alive));
        let killed = self.killed.iter().map(|life| (*life, true));
        let mut all: Vec<(Life, bool)> = now.chain(killed).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Ends all processes: they are asked to, and have a while for it.
    pub(super) fn quit(&mut self) {
        self.send_all(&Order::Quit);
        let until = Instant::now() + START_MOST;
        for process in self.now.values_mut().filter(|process| process.is_alive) {
            loop {
                match process.child.try_wait() {
                    Ok(None) if Instant::now() < until && !self.said.has_failed => {
                        std::thread::sleep(Duration::from_millis(5));
                        continue;
                    }
                    Ok(Some(status)) if !status.success() => {
                        let text = format!("{} did not close well: {status}", process.life);
                        self.said.found.push(Finding::new(Kind::Failed, text));
                    }
                    Ok(None) if !self.said.has_failed => {
                        let text = format!("{} did not close its endpoint", process.life);
                        self.said.found.push(Finding::new(Kind::Hung, text));
                    }
                    _ => {}
                }
                break;
            }
            process.is_alive = false;
        }
        self.listen(Duration::from_millis(1));
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for process in self.now.values_mut() {
            // Its helpers too: they are in its group.
            let _ = killpg(Pid::from_raw(process.child.id() as i32), Signal::SIGKILL);
            let _ = process.child.wait();
        }
    }
}

fn add(total: &mut Progress, progress: &Progress) {
    total.sent += progress.sent;
    total.received += progress.received;
    total.bytes += progress.bytes;
    total.one_sided += progress.one_sided;
    total.other += progress.other;
}
