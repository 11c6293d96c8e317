// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sends of a worker: walks its streams at random, and greets processes that were started
//! again.
//!
//! Called by the worker in its loop. How each send ended goes to the ledger.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::control::Peer;
use crate::fabric::{Completion, Ended, Node, Outgoing, Posted, SendKind};
use crate::ledger::{Entry, SendEnd, Sent, Writer};
use crate::traffic::{Form, Identity, Life, Message, Stream, Traffic};

/// Between two greetings of a process that does not answer. Chosen.
const GREETING_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Messages may go.
    Open,
    /// It was started again: a word first, until one arrives. The time of the next.
    Greeting(Option<Instant>),
    /// It was killed, or a send to it failed.
    Broken,
}

#[derive(Debug)]
struct Out {
    stream: Stream,
    address: SocketAddr,
    name: u64,
    posted: u32,
    hellos: u32,
    state: State,
}

/// The sends of one process.
pub(super) struct Sends {
    traffic: Traffic,
    me: Life,
    window: usize,
    budget: u32,
    round: u16,
    streams: Vec<Out>,
    open: HashMap<u64, Identity>,
    is_stopped: bool,
}

impl Sends {
    pub(super) fn new(traffic: Traffic, me: Life, window: usize) -> Self {
        Self {
            traffic,
            me,
            window,
            budget: 0,
            round: 0,
            streams: Vec::new(),
            open: HashMap::new(),
            is_stopped: true,
        }
    }

    /// A round begins.
    pub(super) fn begin(&mut self, round: u16, budget: u32, peers: &[(Peer, u64)]) {
        self.round = round;
        self.budget = budget;
        self.is_stopped = false;
        self.streams = peers
            .iter()
            .map(|(peer, name)| self.out(*peer, *name, State::Open))
            .collect();
    }

    fn out(&self, peer: Peer, name: u64, state: State) -> Out {
        Out {
            stream: Stream {
                round: self.round,
                from: self.me,
                to: peer.life,
            },
            address: peer.address,
            name,
            posted: 0,
            hellos: 0,
            state,
        }
    }

    pub(super) fn gone(&mut self, rank: u8) {
        for out in self
            .streams
            .iter_mut()
            .filter(|out| out.stream.to.rank == rank)
        {
            out.state = State::Broken;
        }
    }

    /// A process was started again: it gets a stream of its own, behind a greeting.
    pub(super) fn back(&mut self, peer: Peer, name: u64) {
        self.gone(peer.life.rank);
        let out = self.out(peer, name, State::Greeting(None));
        self.streams.push(out);
    }

    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Messages posted on each stream that still stands.
    pub(super) fn posted(&self) -> Vec<(Stream, u32)> {
        let streams = self.streams.iter().filter(|out| out.state == State::Open);
        streams.map(|out| (out.stream, out.posted)).collect()
    }

    /// Whether all that was to be sent in this round is posted.
    pub(super) fn is_idle(&self) -> bool {
        let is_done = |out: &Out| match out.state {
            State::Open => out.posted >= self.budget,
            State::Greeting(_) => false,
            State::Broken => true,
        };
        self.streams.iter().all(is_done)
    }

    /// Whether nothing is under way, nor waited for.
    pub(super) fn is_quiet(&self) -> bool {
        let waits = |out: &Out| matches!(out.state, State::Greeting(_));
        self.open.is_empty() && !self.streams.iter().any(waits)
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.open.contains_key(&number)
    }

    /// Posts up to `most` messages, and the greetings that are due. Returns how many.
    pub(super) fn advance(
        &mut self,
        node: &mut Node,
        random: &mut fastrand::Rng,
        most: usize,
        ledger: &mut Writer,
    ) -> u64 {
        self.greet(node, ledger);
        let mut count = 0;
        while !self.is_stopped && count < most && self.open.len() < self.window {
            let budget = self.budget;
            let ready = |out: &Out| out.state == State::Open && out.posted < budget;
            let all: Vec<usize> = (0..self.streams.len())
                .filter(|at| ready(&self.streams[*at]))
                .collect();
            if all.is_empty() || !self.send_next(node, all[random.usize(..all.len())], ledger) {
                break;
            }
            count += 1;
        }
        count as u64
    }

    fn send_next(&mut self, node: &mut Node, at: usize, ledger: &mut Writer) -> bool {
        let out = &self.streams[at];
        let identity = Identity {
            stream: out.stream,
            index: out.posted,
        };
        let message = self.traffic.message(identity);
        let posted = node.send(&outgoing(&message, out.name), message.bytes());
        let out = &mut self.streams[at];
        match posted {
            Posted::Started(number) => {
                out.posted += 1;
                self.open.insert(number, identity);
                true
            }
            Posted::Done => {
                out.posted += 1;
                let end = SendEnd::Well;
                ledger.add(Entry::Sent(Sent { identity, end }));
                true
            }
            Posted::Again => false,
            Posted::Refused(error) => {
                out.state = State::Broken;
                let end = SendEnd::Failed(error as u32);
                ledger.add(Entry::Sent(Sent { identity, end }));
                true
            }
        }
    }

    fn greet(&mut self, node: &mut Node, ledger: &mut Writer) {
        let now = Instant::now();
        for at in 0..self.streams.len() {
            let out = &mut self.streams[at];
            let is_due = match out.state {
                State::Greeting(next) => next.is_none_or(|next| next <= now),
                _ => false,
            };
            if !is_due {
                continue;
            }
            // Whoever was started again at the same address is named again, as its user would.
            if let Ok(name) = node.name(out.address) {
                out.name = name;
            }
            let identity = Identity::hello(out.stream, out.hellos);
            let message = self.traffic.message(identity);
            out.hellos += 1;
            // While it is under way no other goes out.
            out.state = State::Greeting(Some(now + Duration::from_secs(3600)));
            match node.send(&outgoing(&message, out.name), message.bytes()) {
                Posted::Started(number) => {
                    self.open.insert(number, identity);
                }
                posted => {
                    out.state = State::Greeting(Some(now + GREETING_PAUSE));
                    if let Posted::Refused(error) = posted {
                        let end = SendEnd::Failed(error as u32);
                        ledger.add(Entry::Sent(Sent { identity, end }));
                    }
                }
            }
        }
    }

    /// A send has ended.
    pub(super) fn take(&mut self, completion: &Completion, ledger: &mut Writer) {
        let Some(identity) = self.open.remove(&completion.number) else {
            return;
        };
        let end = match completion.ended {
            Ended::Well => SendEnd::Well,
            Ended::Failed(error) => SendEnd::Failed(error as u32),
        };
        ledger.add(Entry::Sent(Sent { identity, end }));
        let streams = self.streams.iter_mut();
        let Some(out) = streams.rev().find(|out| out.stream == identity.stream) else {
            return;
        };
        if identity.is_hello() && matches!(out.state, State::Greeting(_)) {
            out.state = match end {
                SendEnd::Well => State::Open,
                _ => State::Greeting(Some(Instant::now() + GREETING_PAUSE)),
            };
        } else if end != SendEnd::Well {
            out.state = State::Broken;
        }
    }

    /// Writes down what has not ended.
    pub(super) fn abandon(&mut self, ledger: &mut Writer) {
        for (_, identity) in self.open.drain() {
            let end = SendEnd::Never;
            ledger.add(Entry::Sent(Sent { identity, end }));
        }
    }

    /// What is under way, for a report.
    pub(super) fn describe(&self) -> String {
        let mut open: Vec<String> = self.open.values().map(ToString::to_string).collect();
        open.sort();
        let greeted = self
            .streams
            .iter()
            .filter(|out| matches!(out.state, State::Greeting(_)));
        let greeted: Vec<String> = greeted.map(|out| out.stream.to.to_string()).collect();
        open.truncate(8);
        format!(
            "{} sends ({}), greeting {greeted:?}",
            self.open.len(),
            open.join("; ")
        )
    }
}

fn outgoing(message: &Message, to: u64) -> Outgoing {
    Outgoing {
        to,
        tag: message.tag,
        data: message.has_data.then(|| message.identity.packed()),
        kind: match message.form {
            Form::Usual => SendKind::Usual,
            Form::Injected => SendKind::Inject,
            Form::Delivered => SendKind::Delivered,
        },
    }
}
