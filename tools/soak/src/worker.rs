// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One process of a soak: an endpoint through libfabric, random traffic over it, and a ledger of
//! what happened.
//!
//! Started by the job with its role as its argument; does what it is ordered to on its standard
//! input, and says how far it
//! is on its standard output. `sends`, `receives` and `one_sided` each own their operations.

mod one_sided;
mod receives;
mod sends;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use crate::control::{Order, Peer, Progress, Role, Word};
use crate::fabric::{Completion, Ended, Failure, Library, Node, NodeOptions};
use crate::finding::{Finding, Kind};
use crate::ledger::Writer;
use crate::random::seed_of;
use crate::system::fork;
use crate::traffic::{PLAIN_LONGEST_BYTES, Stream};
use one_sided::OneSided;
use receives::{Receives, Taken};
use sends::Sends;

/// Between two words about how far it is. Chosen.
const PROGRESS: Duration = Duration::from_millis(200);
/// Messages posted in one turn, at most. Chosen.
const SENDS_A_TURN: usize = 4;
/// A turn in this many looks for a message before it receives one. Chosen.
const PEEK_TURNS: u32 = 12;
/// A turn in this many cancels a receive. Chosen.
const CANCEL_TURNS: u32 = 40;

/// Until when it misbehaves.
#[derive(Debug)]
struct SendKinds {
    deaf_until: Instant,
    lazy_until: Instant,
}

/// What a round still asks for.
#[derive(Debug)]
enum Phase {
    Idle,
    Traffic,
    Drain(Vec<(Stream, u32)>),
}

struct Worker {
    role: Role,
    node: Node,
    random: fastrand::Rng,
    names: HashMap<u8, u64>,
    sends: Sends,
    receives: Receives,
    one_sided: OneSided,
    ledger: Writer,
    got: HashMap<Stream, u32>,
    manners: SendKinds,
    phase: Phase,
    progress: Progress,
    /// Steps and bytes under way at the last progress.
    before: (u64, u64),
    /// Failures that are findings unless somebody was killed.
    suspicions: Vec<Finding>,
    someone_died: bool,
}

/// Runs until it is told to quit or its standard input ends; returns the exit code.
pub fn serve(role: &str) -> u8 {
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
    let role: Role = match serde_json::from_str(role) {
        Ok(role) => role,
        Err(error) => {
            eprintln!("weft soak: not the role of a worker: {error}");
            return 2;
        }
    };
    let orders = orders();
    match Worker::open(role).map(|worker| worker.work(&orders)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            eprintln!("weft soak: {error}");
            1
        }
        Err(error) => {
            eprintln!("weft soak: {error}");
            1
        }
    }
}

fn orders() -> Receiver<Order> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let order = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            let Some(order) = order else { return };
            if sender.send(order).is_err() {
                return;
            }
        }
    });
    receiver
}

fn say(word: &Word) {
    let mut line = serde_json::to_string(word).unwrap_or_default();
    line.push('\n');
    let mut out = std::io::stdout().lock();
    // Nobody reads: the job is gone, and the end of standard input says so too.
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

impl Worker {
    fn open(role: Role) -> Result<Self, Box<dyn std::error::Error>> {
        let options = NodeOptions {
            address: role.address,
            queue_entries: role.queue_entries,
            registered_bytes: one_sided::registered_bytes(role.ranks),
            least_left_bytes: PLAIN_LONGEST_BYTES,
        };
        let node = Node::open(Library::open(role.libfabric.as_deref())?, &options)?;
        let part = [u64::from(role.life.rank), u64::from(role.life.generation)];
        let now = Instant::now();
        let ledger = Writer::create(&Role::ledger(&role.folder, role.life, u16::MAX))?;
        Ok(Self {
            random: fastrand::Rng::with_seed(seed_of(role.traffic.seed, &part)),
            names: HashMap::new(),
            sends: Sends::new(role.traffic, role.life, role.window),
            receives: Receives::new(role.traffic, role.receives),
            one_sided: OneSided::new(role.life),
            ledger,
            got: HashMap::new(),
            manners: SendKinds {
                deaf_until: now,
                lazy_until: now,
            },
            phase: Phase::Idle,
            progress: Progress::default(),
            before: (0, 0),
            suspicions: Vec::new(),
            someone_died: false,
            node,
            role,
        })
    }

    fn work(mut self, orders: &Receiver<Order>) -> Result<(), Box<dyn std::error::Error>> {
        say(&Word::Ready);
        let mut told = Instant::now();
        loop {
            match orders.try_recv() {
                Ok(Order::Quit) => break,
                Ok(order) => self.obey(order)?,
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => break,
            }
            let before = self.progress.steps;
            self.turn()?;
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                fork::reap();
                self.say_progress();
            }
            if self.progress.steps == before {
                std::thread::yield_now();
            }
        }
        fork::reap();
        self.close()
    }

    /// Says how far it is. Where nothing has ended since the last time, bytes may have arrived.
    fn say_progress(&mut self) {
        let (steps, arriving) = self.before;
        if self.progress.steps == steps {
            let now = self.node.arriving();
            self.progress.steps += u64::from(now != arriving);
            self.before.1 = now;
        }
        self.before.0 = self.progress.steps;
        self.progress.one_sided = self.one_sided.ended_count;
        self.progress.is_idle = self.sends.is_idle();
        say(&Word::Progress(self.progress));
    }

    fn close(mut self) -> Result<(), Box<dyn std::error::Error>> {
        self.receives.cancel(&mut self.node, usize::MAX);
        match self.node.close() {
            Ok(()) => Ok(()),
            Err(error @ Failure::Call { .. }) => {
                let text = format!("{}: {error}", self.role.life);
                say(&Word::Complaint(Finding::new(Kind::Failed, text)));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn obey(&mut self, order: Order) -> Result<(), Box<dyn std::error::Error>> {
        let now = Instant::now();
        match order {
            Order::Begin {
                round,
                peers,
                budget,
            } => self.begin(round, &peers, budget)?,
            Order::Go => self.phase = Phase::Traffic,
            Order::Gone(rank) => {
                self.someone_died = true;
                self.sends.gone(rank);
                self.one_sided.gone(rank);
                self.receives.renamed(rank);
            }
            Order::Back(peer) => {
                let name = self.node.name(peer.address)?;
                self.names.insert(peer.life.rank, name);
                self.sends.back(peer, name);
            }
            Order::Away(milliseconds) => compute(Duration::from_millis(milliseconds)),
            Order::Deaf(milliseconds) => {
                self.manners.deaf_until = now + Duration::from_millis(milliseconds);
            }
            Order::Lazy(milliseconds) => {
                self.manners.lazy_until = now + Duration::from_millis(milliseconds);
            }
            Order::Fork(milliseconds, closes) => self.fork(milliseconds, closes)?,
            Order::Stop => {
                self.sends.stop();
                say(&Word::Posted(self.sends.posted()));
            }
            Order::Drain(expected) => {
                self.manners.deaf_until = now;
                self.phase = Phase::Drain(expected);
            }
            Order::Describe => say(&Word::State(self.describe())),
            Order::Abandon => {
                self.sends.abandon(&mut self.ledger);
                self.end_round()?;
            }
            Order::Quit => {}
        }
        Ok(())
    }

    fn begin(
        &mut self,
        round: u16,
        peers: &[Peer],
        budget: u32,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let path = Role::ledger(&self.role.folder, self.role.life, round);
        self.ledger = Writer::create(&path)?;
        self.got.clear();
        let mut named = Vec::new();
        for peer in peers {
            let name = match self.names.get(&peer.life.rank) {
                Some(name) => *name,
                None => self.node.name(peer.address)?,
            };
            self.names.insert(peer.life.rank, name);
            if peer.life.generation > 0 {
                self.receives.renamed(peer.life.rank);
            }
            named.push((*peer, name));
        }
        self.sends.begin(round, budget, &named);
        say(&Word::Begun);
        Ok(())
    }

    fn fork(&mut self, milliseconds: u64, closes: bool) -> Result<(), std::io::Error> {
        let node = &mut self.node;
        fork::helper(|| {
            if closes {
                node.close_endpoint();
            }
            fork::sleep_ms(milliseconds);
        })?;
        Ok(())
    }

    /// One turn: posts a little, takes what has ended.
    fn turn(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let now = Instant::now();
        let drains = matches!(self.phase, Phase::Drain(_));
        let is_at_work = !matches!(self.phase, Phase::Idle);
        if is_at_work && now >= self.manners.deaf_until {
            let (node, random) = (&mut self.node, &mut self.random);
            if !drains && random.u32(..PEEK_TURNS) == 0 {
                self.receives.peek(node, random, &self.names);
                self.progress.other += 1;
            } else if !drains && random.u32(..CANCEL_TURNS) == 0 {
                self.receives.cancel(node, 1);
                self.progress.other += 1;
            }
            self.receives.fill(node, random, &self.names, drains);
        }
        if is_at_work {
            let (node, random) = (&mut self.node, &mut self.random);
            let count = self
                .sends
                .advance(node, random, SENDS_A_TURN, &mut self.ledger);
            self.progress.sent += count;
            self.progress.steps += count;
            if !drains && self.one_sided.advance(node, random, &self.names) {
                self.progress.steps += 1;
            }
        }
        let most = if now < self.manners.lazy_until {
            std::thread::sleep(Duration::from_millis(2));
            1
        } else {
            self.random.usize(1..=16)
        };
        let many = self.receives.many().to_vec();
        match Completion::read(&mut self.node, most, &many) {
            Ok(all) => all.into_iter().for_each(|one| self.take(one)),
            Err(error) => {
                let text = format!(
                    "{}: fi_cq_readfrom answered {error} ({})",
                    self.role.life,
                    self.node.error_text(error)
                );
                say(&Word::Complaint(Finding::new(Kind::Failed, text)));
            }
        }
        self.ledger.flush()?;
        if self.is_done() {
            self.end_round()?;
        }
        Ok(())
    }

    fn take(&mut self, completion: Completion) {
        self.progress.steps += 1;
        let number = completion.number;
        if self.sends.has(number) {
            self.sends.take(&completion, &mut self.ledger);
        } else if self.one_sided.has(number) {
            if let Some(finding) = self.one_sided.take(&completion) {
                say(&Word::Complaint(finding));
            }
        } else if self.receives.has(number) {
            let (node, names) = (&mut self.node, &self.names);
            match self
                .receives
                .take(node, completion, names, &mut self.ledger)
            {
                Taken::Message(identity, length) => {
                    self.progress.received += 1;
                    self.progress.bytes += length as u64;
                    if !identity.is_hello() {
                        *self.got.entry(identity.stream).or_default() += 1;
                    }
                }
                Taken::Other => {}
                Taken::Failed(error) => self.suspect(format!("a receive failed with {error}")),
            }
        } else if number == 0 {
            // An injected message or write has failed after all, which has no context of its own.
            if let Ended::Failed(error) = completion.ended {
                self.suspect(format!("something injected failed with {error}"));
            }
        } else {
            let text = format!("{}: operation {number} ended twice", self.role.life);
            say(&Word::Complaint(Finding::new(Kind::Doubled, text)));
        }
    }

    fn suspect(&mut self, what: String) {
        let text = format!("{}: {what}", self.role.life);
        self.suspicions.push(Finding::new(Kind::Failed, text));
    }

    /// Whether the round has ended here.
    fn is_done(&self) -> bool {
        let Phase::Drain(expected) = &self.phase else {
            return false;
        };
        let got = |stream: &Stream| self.got.get(stream).copied().unwrap_or(0);
        expected.iter().all(|(stream, count)| got(stream) >= *count)
            && self.sends.is_quiet()
            && self.one_sided.is_quiet()
    }

    fn end_round(&mut self) -> Result<(), std::io::Error> {
        let failures = self.one_sided.failures();
        let all = failures.into_iter().chain(self.suspicions.drain(..));
        if !self.someone_died {
            all.for_each(|finding| say(&Word::Complaint(finding)));
        }
        self.ledger.flush()?;
        self.phase = Phase::Idle;
        say(&Word::Progress(self.progress));
        say(&Word::Quiet);
        Ok(())
    }

    fn describe(&self) -> String {
        let missing: Vec<String> = match &self.phase {
            Phase::Drain(expected) => expected
                .iter()
                .map(|(stream, count)| (stream, count, self.got.get(stream).copied().unwrap_or(0)))
                .filter(|(_, count, got)| got < count)
                .map(|(stream, count, got)| format!("{got} of {count} from {}", stream.from))
                .collect(),
            _ => Vec::new(),
        };
        format!(
            "{}: {}; {}; {}; has {missing:?}",
            self.role.life,
            self.sends.describe(),
            self.receives.describe(),
            self.one_sided.describe()
        )
    }
}

/// Computes for a while, without a call of the library.
fn compute(length: Duration) {
    let end = Instant::now() + length;
    let mut work = fastrand::Rng::with_seed(1);
    while Instant::now() < end {
        for _ in 0..1000 {
            std::hint::black_box(work.u64(..));
        }
        // Others need the processor too: this stands for work, and is none.
        std::thread::sleep(Duration::from_millis(1));
    }
}
