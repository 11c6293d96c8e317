// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes of a job: starts them on their hosts, hears what they say, kills them and starts them again.
//!
//! Owned by the job.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::Setting;
use crate::control::{Beat, Order, Peer, Role, Word};
use crate::finding::{Finding, Kind};
use crate::network::Host;
use crate::plan::{Life, Stream};
use crate::random::seed_of;
use crate::schedule::{self, DEAD_AFTER_S};

/// Ports of a rank. Chosen: more than an endpoint opens.
const PORTS: u16 = 64;
/// How long a process may take to open its endpoint, or to close it. Chosen for a busy machine.
const START_MOST: Duration = Duration::from_secs(60);

/// What a worker says; `None` when its output has ended.
type Heard = (Life, Option<Word>);

struct Process {
    life: Life,
    child: Child,
    input: Option<ChildStdin>,
    is_ready: bool,
    has_begun: bool,
    is_alive: bool,
    beat: Beat,
    posted: Option<Vec<(Stream, u32)>>,
    is_quiet: bool,
}

/// All processes of a job.
pub(super) struct Crew {
    pub(super) setting: Setting,
    pub(super) job: schedule::Job,
    hosts: Vec<Host>,
    base_port: u16,
    now: HashMap<u8, Process>,
    /// Lives that were killed in this round.
    killed: Vec<Life>,
    /// What killed processes had done.
    past: Beat,
    round: u16,
    words: Receiver<Heard>,
    speaker: Sender<Heard>,
    found: Vec<Finding>,
    states: Vec<String>,
    has_failed: bool,
}

impl Crew {
    pub(super) fn new(setting: Setting, job: schedule::Job, hosts: Vec<Host>) -> Self {
        let (speaker, words) = channel();
        // On this machine's loopback others have ports too.
        let spread = if setting.is_divided {
            0
        } else {
            std::process::id() as u16 % 300
        };
        Self {
            setting,
            job,
            hosts,
            base_port: 11_000 + spread * 32,
            now: HashMap::new(),
            killed: Vec::new(),
            past: Beat::default(),
            round: 0,
            words,
            speaker,
            found: Vec::new(),
            states: Vec::new(),
            has_failed: false,
        }
    }

    fn host(&self, rank: u8) -> &Host {
        &self.hosts[usize::from(rank) % self.hosts.len()]
    }

    fn address(&self, rank: u8) -> SocketAddr {
        let port = self.base_port + u16::from(rank) * PORTS;
        (self.host(rank).address, port).into()
    }

    fn talk_file(&self) -> PathBuf {
        self.setting.folder.join("talk")
    }

    /// Starts one process for each rank, and waits until their endpoints are open.
    pub(super) fn start_all(&mut self) -> io::Result<()> {
        for rank in 0..self.setting.ranks {
            self.start(super::first(rank))?;
        }
        let until = Instant::now() + START_MOST;
        while !self.now.values().all(|process| process.is_ready) {
            self.listen(Duration::from_millis(20));
            if self.has_failed || Instant::now() > until {
                let text = format!("the workers do not start: {}", self.talk());
                return Err(io::Error::other(text));
            }
        }
        Ok(())
    }

    fn start(&mut self, life: Life) -> io::Result<()> {
        let role = Role {
            life,
            address: self.address(life.rank),
            libfabric: self.setting.libfabric.clone(),
            folder: self.setting.folder.clone(),
            traffic: self.job.traffic(),
            queue_entries: self.job.queue_entries,
            receives: self.job.receives,
            window: self.job.window,
            ranks: self.setting.ranks,
        };
        let talk = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.talk_file())?;
        let mut command = self.command(&role, talk)?;
        // Started by the host's thread, it lives in the host's namespace.
        let mut child = self.host(life.rank).run(move || command.spawn())??;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let speaker = self.speaker.clone();
        let output = output.ok_or_else(|| io::Error::other("a worker without an output"))?;
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok(word) = serde_json::from_str(&line) {
                    let _ = speaker.send((life, Some(word)));
                }
            }
            let _ = speaker.send((life, None));
        });
        let process = Process {
            life,
            child,
            input,
            is_ready: false,
            has_begun: false,
            is_alive: true,
            beat: Beat::default(),
            posted: None,
            is_quiet: false,
        };
        self.now.insert(life.rank, process);
        Ok(())
    }

    fn command(&self, role: &Role, talk: File) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        let role = serde_json::to_string(role)?;
        command.args(["soak", "--worker"]).arg(role);
        for (name, _) in std::env::vars_os() {
            let is_libfabrics = name.to_str().is_some_and(|name| name.starts_with("FI_"));
            if is_libfabrics {
                command.env_remove(name);
            }
        }
        let folder = &self.setting.provider_dir;
        command
            .env("FI_PROVIDER_PATH", folder)
            .env("FI_PROVIDER", "weft")
            .env("FI_WEFT_ROUTE", self.job.route)
            .env("FI_WEFT_SINGLE_COPY", self.job.single_copy)
            .env("FI_WEFT_DEAD_AFTER", DEAD_AFTER_S.to_string())
            .env("RUST_BACKTRACE", "1");
        if self.job.has_key {
            let part = |number| seed_of(self.job.seed, &[2, number]);
            let key: String = (0..4)
                .map(|number| format!("{:016x}", part(number)))
                .collect();
            command.env("FI_WEFT_JOB_KEY", key);
            command.env("FI_WEFT_ENCRYPT", if self.job.encrypts { "1" } else { "0" });
        } else {
            command.env("FI_WEFT_TRUST_NETWORK", "1");
        }
        let heap = folder.join("libweft-heap.so");
        if self.job.has_heap && heap.exists() {
            command.env("LD_PRELOAD", heap);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(talk)
            .process_group(0);
        Ok(command)
    }

    /// Prepares a round with everybody who is there.
    pub(super) fn begin(&mut self, round: u16) {
        self.round = round;
        self.killed.clear();
        self.states.clear();
        for rank in 0..self.setting.ranks {
            self.begin_one(rank);
        }
    }

    /// Whether all are prepared: what comes before a process is would go to the ledger of the round before.
    pub(super) fn all_begun(&self) -> bool {
        self.all(|process| process.has_begun)
    }

    fn begin_one(&mut self, rank: u8) {
        let others = self
            .now
            .values()
            .filter(|other| other.is_alive && other.is_ready);
        let others = others.filter(|other| other.life.rank != rank);
        let mut peers: Vec<Peer> = others.map(|other| self.peer(other.life)).collect();
        peers.sort_by_key(|peer| peer.life);
        let order = Order::Begin {
            round: self.round,
            peers,
            budget: self.job.budget,
        };
        if let Some(process) = self.now.get_mut(&rank) {
            process.has_begun = false;
            process.posted = None;
            process.is_quiet = false;
            process.beat.is_idle = false;
        }
        self.send(rank, &order);
    }

    fn peer(&self, life: Life) -> Peer {
        Peer {
            life,
            address: self.address(life.rank),
        }
    }

    /// Gives one process an order. One that is gone does not hear it.
    pub(super) fn send(&mut self, rank: u8, order: &Order) {
        let Some(process) = self.now.get_mut(&rank).filter(|process| process.is_alive) else {
            return;
        };
        let mut line = serde_json::to_string(order).unwrap_or_default();
        line.push('\n');
        if let Some(input) = &mut process.input {
            // Its end is heard on its output.
            let _ = input.write_all(line.as_bytes());
        }
    }

    pub(super) fn send_all(&mut self, order: &Order) {
        for rank in 0..self.setting.ranks {
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

    fn hear(&mut self, (life, word): Heard) {
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
            Some(Word::Beat(beat)) => process.beat = beat,
            Some(Word::Posted(posted)) => process.posted = Some(posted),
            Some(Word::Quiet) => process.is_quiet = true,
            Some(Word::Complaint(finding)) => self.found.push(finding),
            Some(Word::State(state)) => self.states.push(state),
            None if process.is_alive => {
                process.is_alive = false;
                let status = process.child.wait();
                let text = match status {
                    Ok(status) => format!("{life} ended by itself: {status}"),
                    Err(error) => format!("{life} ended by itself: {error}"),
                };
                self.found.push(Finding::new(Kind::Failed, text));
                self.has_failed = true;
            }
            None => {}
        }
    }

    /// A process that was started again is there: it joins the round, and the others hear of it.
    fn meet_again(&mut self, life: Life) {
        self.begin_one(life.rank);
        self.send(life.rank, &Order::Go);
        let peer = self.peer(life);
        for rank in (0..self.setting.ranks).filter(|rank| *rank != life.rank) {
            self.send(rank, &Order::Back(peer));
        }
    }

    pub(super) fn signal(&mut self, rank: u8, signal: Signal) {
        if let Some(process) = self.now.get(&rank).filter(|process| process.is_alive) {
            let _ = kill(Pid::from_raw(process.child.id() as i32), signal);
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
        add(&mut self.past, &process.beat);
        for other in (0..self.setting.ranks).filter(|other| *other != rank) {
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

    fn all(&self, is_so: impl Fn(&Process) -> bool) -> bool {
        self.now
            .values()
            .all(|process| process.is_alive && is_so(process))
    }

    pub(super) fn all_alive(&self) -> bool {
        self.all(|process| process.is_ready)
    }

    pub(super) fn all_idle(&self) -> bool {
        self.all(|process| process.beat.is_idle)
    }

    pub(super) fn all_have_posted(&self) -> bool {
        self.all(|process| process.posted.is_some())
    }

    pub(super) fn all_quiet(&self) -> bool {
        self.all(|process| process.is_quiet)
    }

    /// A process has ended that should not have.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Everything that moved.
    pub(super) fn steps(&self) -> u64 {
        self.now.values().map(|process| process.beat.steps).sum()
    }

    pub(super) fn total(&self) -> Beat {
        let mut total = self.past;
        self.now
            .values()
            .for_each(|process| add(&mut total, &process.beat));
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

    pub(super) fn complaints(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.found)
    }

    pub(super) fn states(&self) -> Vec<String> {
        self.states.clone()
    }

    /// The end of what the workers said on standard error.
    pub(super) fn talk(&self) -> String {
        let text = std::fs::read(self.talk_file()).unwrap_or_default();
        let from = text.len().saturating_sub(4_000);
        String::from_utf8_lossy(&text[from..]).into_owned()
    }

    /// Ends all processes: they are asked to, and have a while for it.
    pub(super) fn quit(&mut self) {
        self.send_all(&Order::Quit);
        let until = Instant::now() + START_MOST;
        for process in self.now.values_mut().filter(|process| process.is_alive) {
            loop {
                match process.child.try_wait() {
                    Ok(None) if Instant::now() < until && !self.has_failed => {
                        std::thread::sleep(Duration::from_millis(5));
                        continue;
                    }
                    Ok(Some(status)) if !status.success() => {
                        let text = format!("{} did not close well: {status}", process.life);
                        self.found.push(Finding::new(Kind::Failed, text));
                    }
                    Ok(None) if !self.has_failed => {
                        let text = format!("{} did not close its endpoint", process.life);
                        self.found.push(Finding::new(Kind::Hung, text));
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

fn add(total: &mut Beat, beat: &Beat) {
    total.sent += beat.sent;
    total.received += beat.received;
    total.bytes += beat.bytes;
    total.one_sided += beat.one_sided;
    total.other += beat.other;
}
