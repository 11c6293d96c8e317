// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The thread that has the endpoint. It posts the messages that others give it, passes on those
//! that arrive, and sleeps on the endpoint's descriptor when there is nothing to do.
//! [`crate::fabric`] starts it.
//!
//! A question is a tagged message with the tag [`QUESTIONS`]; its first 16 bytes name the node that
//! asks and the tag of the answer (docs/job-cache.md, clause 2).

use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use tokio::sync::mpsc;
use weft_endpoint::{
    Class, Completion, Domain, DomainSettings, EndpointId, EndpointSettings, Error, FiAddr,
    QueueBinding, QueueId, QueueSettings, Receive, Send, UserBuffer, VectorId, VectorKind,
};
use weft_os::sleep::{WaitSet, wait_readable};

use crate::buffers::{self, Buffers};
use crate::link::{
    ANSWER_LIMIT_BYTES, Asked, Command, Link, QUESTION_LIMIT_BYTES, Refused, Reply, Settings,
    Silence,
};

/// Specified (docs/job-cache.md, 2.2).
const QUESTIONS: u64 = 1;
/// Specified (docs/job-cache.md, 2.2).
const HEAD_BYTES: usize = 16;
/// Chosen: receives for questions that are posted at once; more wait in the endpoint.
const POSTED_QUESTIONS: usize = 32;
/// Chosen: how long a sleep lasts at most, in which nothing is missed.
const SLEEP_MS: i32 = 1000;
/// Chosen: completions that are read at once.
const BATCH: usize = 32;

/// What is under way; its number is the context.
enum Under {
    Question(UserBuffer),
    /// Of whom to tell; of nobody once that was told.
    Answer(UserBuffer, Option<Reply>),
    /// A send: of a question to a node with the context of its answer, or of an answer.
    Send(UserBuffer, Option<(usize, usize)>),
}

/// A send for which there was no room.
struct Unsent {
    node: usize,
    tag: u64,
    buffer: UserBuffer,
    length_bytes: usize,
    /// The context of the answer, where this is a question.
    question_of: Option<usize>,
}

/// The nodes of the job, as the endpoint knows them.
struct Nodes {
    vector: VectorId,
    addresses: Vec<SocketAddr>,
    names: Vec<FiAddr>,
    own: usize,
}

struct Owner {
    domain: Domain<weft_udp::Transport>,
    endpoint: EndpointId,
    queue: QueueId,
    nodes: Nodes,
    under: HashMap<usize, Under>,
    unsent: VecDeque<Unsent>,
    questions: Buffers,
    answers: Buffers,
    next: usize,
    asked: mpsc::UnboundedSender<Asked>,
    link: Link,
    commands: Receiver<Command>,
    bell: UnixStream,
    tell: fn(&str),
    /// Questions that did not come from the node that they name.
    strangers: u64,
}

/// Opens the endpoint on a thread of its own; it ends at [`Command::End`].
pub fn start(
    settings: Settings,
    asked: mpsc::UnboundedSender<Asked>,
) -> Result<(Link, JoinHandle<()>), Refused> {
    let (sender, commands) = channel();
    let (ringer, bell) = UnixStream::pair()?;
    ringer.set_nonblocking(true)?;
    bell.set_nonblocking(true)?;
    let link = Link {
        commands: sender,
        bell: Arc::new(ringer),
    };
    let (opened, open) = channel();
    let own_link = link.clone();
    let thread = thread::Builder::new().name("weft-fabric".to_owned());
    let thread = thread.spawn(move || {
        let owner = Owner::open(&settings, asked, own_link, commands, bell);
        match owner {
            Ok(mut owner) => {
                let _ = opened.send(Ok(()));
                owner.run();
            }
            Err(refused) => {
                let _ = opened.send(Err(refused));
            }
        }
    })?;
    open.recv().map_err(|_| Refused::Ended)??;
    Ok((link, thread))
}

impl Owner {
    fn open(
        settings: &Settings,
        asked: mpsc::UnboundedSender<Asked>,
        link: Link,
        commands: Receiver<Command>,
        bell: UnixStream,
    ) -> Result<Self, Refused> {
        let route = weft_udp::Settings {
            trust: Some(settings.trust.clone()),
            report: settings.tell,
            ..weft_udp::Settings::default()
        };
        let mut domain = Domain::with_local_settings(DomainSettings::default(), route);
        let vector = domain.vectors().open(VectorKind::Table);
        let endpoint = domain.endpoints().open(EndpointSettings {
            address: Some(settings.nodes[settings.own]),
            ..EndpointSettings::default()
        });
        let queue = domain.queues().open(QueueSettings::default());
        let both = QueueBinding {
            transmit: true,
            receive: true,
            selective: false,
        };
        domain.endpoints().bind_vector(endpoint, vector)?;
        domain.endpoints().bind_queue(endpoint, queue, both)?;
        if let Err(error) = domain.endpoints().enable(endpoint) {
            let why = domain.last_failure().map(str::to_owned);
            let cause = why.unwrap_or_else(|| error.to_string());
            return Err(match error {
                weft_endpoint::Error::AddressInUse => Refused::Taken { cause },
                _ => Refused::Endpoint { cause },
            });
        }
        let mut names = Vec::new();
        for address in &settings.nodes {
            names.push(domain.vectors().insert(vector, *address)?);
        }
        let mut owner = Self {
            domain,
            endpoint,
            queue,
            nodes: Nodes {
                vector,
                addresses: settings.nodes.clone(),
                names,
                own: settings.own,
            },
            under: HashMap::new(),
            unsent: VecDeque::new(),
            questions: Buffers::new(HEAD_BYTES + QUESTION_LIMIT_BYTES),
            answers: Buffers::new(ANSWER_LIMIT_BYTES),
            next: 0,
            asked,
            link,
            commands,
            bell,
            tell: settings.tell,
            strangers: 0,
        };
        for _ in 0..POSTED_QUESTIONS {
            owner.post_question();
        }
        Ok(owner)
    }

    fn run(&mut self) {
        let Ok(set) = WaitSet::new() else { return };
        let mut is_added = set.add(self.bell.as_fd()).is_ok();
        let fds = self.domain.waiting(self.queue).fds(|descriptor| {
            is_added &= set.add_raw(descriptor).is_ok();
        });
        if fds.is_err() || !is_added {
            (self.tell)(
                "the mount's endpoint has no descriptor to sleep on; other nodes are not asked",
            );
            return;
        }
        loop {
            loop {
                match self.commands.try_recv() {
                    Ok(Command::End) => return self.close(),
                    Ok(command) => self.obey(command),
                    Err(_) => break,
                }
            }
            self.send_again();
            if self.complete() {
                continue;
            }
            if self.domain.waiting(self.queue).before_sleep() {
                let is_rung = wait_readable(set.descriptor(), SLEEP_MS);
                self.domain.waiting(self.queue).after_sleep();
                if !is_rung {
                    self.sweep();
                }
            }
            let mut rings = [0; 256];
            while matches!(self.bell.read(&mut rings), Ok(count) if count == rings.len()) {}
        }
    }

    fn close(&mut self) {
        let _ = self.domain.endpoints().close(self.endpoint);
    }

    fn number(&mut self, under: Under) -> usize {
        self.next += 1;
        self.under.insert(self.next, under);
        self.next
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Ask {
                node,
                question,
                reply,
            } => self.ask(node, &question, reply),
            Command::Answer { node, tag, parts } => {
                let buffer = self.answers.take();
                let mut length_bytes = 0;
                for part in parts {
                    length_bytes += buffers::write(&buffer, length_bytes, &part);
                }
                self.send(Unsent {
                    node,
                    tag,
                    buffer,
                    length_bytes,
                    question_of: None,
                });
            }
            Command::End => {}
        }
    }

    fn ask(&mut self, node: usize, question: &[u8], reply: Reply) {
        let answer = self.answers.take();
        let context = self.number(Under::Answer(answer.clone(), Some(reply)));
        // Tags of answers are never used again, and none is that of questions.
        let tag = context as u64 + QUESTIONS;
        if let Err(error) = self.receive(self.nodes.names[node], tag, context, answer) {
            self.fail(context, error);
            self.name_again(node);
            return;
        }
        let buffer = self.questions.take();
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&(self.nodes.own as u64).to_le_bytes());
        head[8..].copy_from_slice(&tag.to_le_bytes());
        let mut length_bytes = buffers::write(&buffer, 0, &head);
        length_bytes += buffers::write(&buffer, HEAD_BYTES, question);
        self.send(Unsent {
            node,
            tag: QUESTIONS,
            buffer,
            length_bytes,
            question_of: Some(context),
        });
    }

    fn receive(
        &mut self,
        source: FiAddr,
        tag: u64,
        context: usize,
        buffer: UserBuffer,
    ) -> Result<(), Error> {
        let receive = Receive {
            class: Class::Tagged,
            source,
            tag,
            ignore: 0,
            flags: None,
            context,
        };
        let endpoint = self.domain.endpoint(self.endpoint)?;
        endpoint.receive(&receive, || buffer)
    }

    fn post_question(&mut self) {
        let buffer = self.questions.take();
        let context = self.number(Under::Question(buffer.clone()));
        if let Err(error) = self.receive(FiAddr::UNSPEC, QUESTIONS, context, buffer) {
            (self.tell)(&format!("the mount's endpoint takes no questions: {error}"));
        }
    }

    /// Sends, or keeps what there is no room for.
    fn send(&mut self, message: Unsent) {
        let part = message.buffer.part(0, message.length_bytes);
        let question_of = message.question_of.map(|answer| (message.node, answer));
        let context = self.number(Under::Send(message.buffer.clone(), question_of));
        let send = Send {
            class: Class::Tagged,
            tag: message.tag,
            cq_data: None,
            flags: None,
            context,
        };
        let to = self.nodes.names[message.node];
        let endpoint = self.domain.endpoint(self.endpoint);
        match endpoint.and_then(|endpoint| endpoint.send(to, &send, &part)) {
            Ok(()) => {}
            Err(Error::Again) => {
                self.under.remove(&context);
                self.unsent.push_back(message);
            }
            Err(error) => self.fail(context, error),
        }
    }

    fn send_again(&mut self) {
        for _ in 0..self.unsent.len() {
            let Some(message) = self.unsent.pop_front() else {
                return;
            };
            self.send(message);
        }
    }

    /// Nobody waits for an answer any more.
    fn give_up(&mut self, context: usize) {
        if let Some(Under::Answer(_, reply)) = self.under.get_mut(&context) {
            *reply = None;
        }
        if let Ok(endpoint) = self.domain.endpoint(self.endpoint) {
            // What was matched already completes by itself.
            let _ = endpoint.cancel(context);
        }
    }

    /// A node that was lost is met anew under a new name (docs/srd-protocol.md, 6.4).
    fn name_again(&mut self, node: usize) {
        let nodes = &mut self.nodes;
        let removed = self
            .domain
            .vectors()
            .remove(nodes.vector, nodes.names[node]);
        if removed.is_ok() {
            let address = nodes.addresses[node];
            let named = self.domain.vectors().insert(nodes.vector, address);
            nodes.names[node] = named.unwrap_or(FiAddr::UNSPEC);
        }
    }

    /// Those who asked and ran out of patience.
    fn sweep(&mut self) {
        let is_over =
            |under: &Under| matches!(under, Under::Answer(_, Some(reply)) if reply.is_closed());
        let over = self.under.iter().filter(|(_, under)| is_over(under));
        for context in over.map(|(context, _)| *context).collect::<Vec<_>>() {
            self.give_up(context);
        }
    }

    /// Reads what is complete; whether there was something.
    fn complete(&mut self) -> bool {
        let mut batch: Vec<Completion> = Vec::with_capacity(BATCH);
        let read = self
            .domain
            .queues()
            .read(self.queue, BATCH, |entry| batch.push(*entry));
        for entry in &batch {
            self.completed(entry);
        }
        match read {
            Ok(_) => true,
            Err(Error::ErrorAvailable) => {
                if let Ok(failed) = self.domain.queues().read_error(self.queue) {
                    self.fail(failed.completion.context, failed.error);
                }
                true
            }
            Err(_) => false,
        }
    }

    fn completed(&mut self, entry: &Completion) {
        match self.under.remove(&entry.context) {
            Some(Under::Question(buffer)) => {
                let bytes = buffers::read(&buffer, entry.length_bytes);
                self.questions.give_back(buffer);
                self.post_question();
                self.hand_on(entry.source, bytes);
            }
            Some(Under::Answer(buffer, reply)) => {
                if let Some(reply) = reply {
                    let _ = reply.send(Ok(buffers::read(&buffer, entry.length_bytes)));
                }
                self.answers.give_back(buffer);
            }
            Some(Under::Send(buffer, question_of)) => self.give_back(buffer, question_of),
            None => {}
        }
    }

    fn give_back(&mut self, buffer: UserBuffer, question_of: Option<(usize, usize)>) {
        if question_of.is_some() {
            self.questions.give_back(buffer);
        } else {
            self.answers.give_back(buffer);
        }
    }

    /// A question that is too short, or names another node than the one at whose address its sender
    /// is, is left: no mount of this job sends it.
    fn hand_on(&mut self, source: FiAddr, mut bytes: Bytes) {
        if bytes.len() < HEAD_BYTES {
            return;
        }
        let question = bytes.split_off(HEAD_BYTES);
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let Some(node) = usize::try_from(word(0))
            .ok()
            .filter(|node| *node < self.nodes.names.len())
        else {
            return;
        };
        if source == FiAddr::UNSPEC || self.nodes.names[node] != source {
            self.note_stranger(node);
            return;
        }
        // The mount may be ending.
        let _ = self.asked.send(Asked {
            question,
            node,
            tag: word(8),
            link: self.link.clone(),
        });
    }

    /// Said at the first one, and then ever more seldom.
    fn note_stranger(&mut self, node: usize) {
        self.strangers += 1;
        if self.strangers.is_power_of_two() {
            (self.tell)(&format!(
                "a question in the name of node {node} did not come from {}; it is not answered \
                 ({} so far). Give all mounts of the job the same --job-nodes",
                self.nodes.addresses[node], self.strangers
            ));
        }
    }

    fn fail(&mut self, context: usize, error: Error) {
        match self.under.remove(&context) {
            Some(Under::Question(buffer)) => {
                self.questions.give_back(buffer);
                self.post_question();
            }
            Some(Under::Answer(buffer, reply)) => {
                if let Some(reply) = reply {
                    let _ = reply.send(Err(Silence(error.to_string())));
                }
                self.answers.give_back(buffer);
            }
            Some(Under::Send(buffer, question_of)) => {
                self.give_back(buffer, question_of);
                let Some((node, answer)) = question_of else {
                    return;
                };
                if let Some(Under::Answer(_, reply)) = self.under.get_mut(&answer) {
                    let reply = reply.take();
                    reply.map(|reply| reply.send(Err(Silence(error.to_string()))));
                }
                self.give_up(answer);
                self.name_again(node);
            }
            None => {}
        }
    }
}
