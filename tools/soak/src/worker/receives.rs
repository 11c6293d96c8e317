// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receives of a worker: keeps a number of them posted, of every kind, peeks now and then, and
//! judges what comes.
//!
//! Called by the worker in its loop. Whatever is received goes to the ledger.

use std::collections::{HashMap, HashSet};

use crate::fabric::{Completion, Ended, Node, Posted, Wanted};
use crate::ledger::{Asked, Entry, Flaw, Received, Writer};
use crate::traffic::{self, Identity, PLAIN_LONGEST_BYTES, TAG_NUMBER_BITS, Traffic};

/// Bytes of a multi-receive buffer. Chosen: some tens of messages.
const MANY_BYTES: usize = 64 << 10;
/// Untagged receives that are kept posted. Chosen.
const PLAIN_RECEIVES: usize = 6;
/// A receive in this many is for one source only. Chosen.
const DIRECTED: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Receive,
    Many,
    Peek,
    /// The peek has claimed a message, which is being received.
    Claimed,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    step: Step,
    post: u64,
    asked: Asked,
    is_canceled: bool,
}

/// What a completion meant.
pub(super) enum Taken {
    /// A message came: who, and how long.
    Message(Identity, usize),
    /// Something else about a receive.
    Other,
    /// A receive failed with this error.
    Failed(i32),
}

/// The receives of one process.
pub(super) struct Receives {
    traffic: Traffic,
    open: HashMap<u64, Open>,
    many: Vec<u64>,
    posts: u64,
    spare: Vec<Vec<u8>>,
    wanted_count: usize,
    /// Ranks that were restarted: their address has had several names.
    renamed: HashSet<u8>,
}

impl Receives {
    pub(super) fn new(traffic: Traffic, wanted_count: usize) -> Self {
        Self {
            traffic,
            open: HashMap::new(),
            many: Vec::new(),
            posts: 0,
            spare: Vec::new(),
            wanted_count,
            renamed: HashSet::new(),
        }
    }

    /// A rank was killed: sources of its messages are not compared any more.
    pub(super) fn renamed(&mut self, rank: u8) {
        self.renamed.insert(rank);
    }

    /// Numbers of multi-receive buffers, which have many completions.
    pub(super) fn many(&self) -> &[u64] {
        &self.many
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.open.contains_key(&number)
    }

    /// Posts what is missing. `everything`: receives that take any message, and nothing else.
    pub(super) fn fill(
        &mut self,
        node: &mut Node,
        random: &mut fastrand::Rng,
        names: &HashMap<u8, u64>,
        everything: bool,
    ) {
        let tagged = |open: &&Open| open.asked.tag.is_some();
        let mut missing = self
            .wanted_count
            .saturating_sub(self.open.values().filter(tagged).count());
        while missing > 0 {
            let asked = self.draw(random, names, everything);
            if !self.post_tagged(node, asked, names) {
                return;
            }
            missing -= 1;
        }
        let plain = self
            .open
            .values()
            .filter(|open| open.asked.tag.is_none())
            .count();
        for _ in plain..PLAIN_RECEIVES {
            let is_many = !everything && random.u32(..3) == 0;
            // One that takes everything is always there among these too.
            let takes_all = |open: &Open| open.asked.tag.is_none() && open.asked.source.is_none();
            let may = !everything && !is_many && self.open.values().any(takes_all);
            let source = (may && random.u32(..DIRECTED) == 0)
                .then(|| some_rank(random, names))
                .flatten();
            if is_many {
                self.post_many(node);
            } else {
                self.post_plain(node, source, names);
            }
        }
    }

    fn draw(
        &self,
        random: &mut fastrand::Rng,
        names: &HashMap<u8, u64>,
        everything: bool,
    ) -> Asked {
        let all = Asked {
            source: None,
            tag: Some((0, u64::MAX)),
        };
        // One that takes everything is always there, so that nobody waits for a receive that never
        // comes.
        let takes_all = |open: &Open| open.asked == all;
        if everything || !self.open.values().any(takes_all) {
            return all;
        }
        let tag = traffic::tag(random.u64(..), random.u64(..));
        let ignore = match random.u32(..4) {
            0 => u64::MAX,
            1 => TAG_NUMBER_BITS,
            _ => 0,
        };
        let source = (random.u32(..DIRECTED) == 0)
            .then(|| some_rank(random, names))
            .flatten();
        Asked {
            source,
            tag: Some((tag, ignore)),
        }
    }

    fn buffer(&mut self, length_bytes: usize) -> Vec<u8> {
        let fits = |buffer: &Vec<u8>| buffer.len() == length_bytes;
        match self.spare.iter().position(fits) {
            Some(at) => self.spare.swap_remove(at),
            None => vec![0; length_bytes],
        }
    }

    fn post_tagged(&mut self, node: &mut Node, asked: Asked, names: &HashMap<u8, u64>) -> bool {
        let Some(wanted) = wanted(&asked, names) else {
            return false;
        };
        let buffer = self.buffer(self.traffic.longest_bytes);
        let posted = node.receive_tagged(&wanted, buffer);
        self.opened(posted, Step::Receive, asked)
    }

    /// One untagged message, from this rank or from any.
    fn post_plain(&mut self, node: &mut Node, source: Option<u8>, names: &HashMap<u8, u64>) {
        let buffer = self.buffer(PLAIN_LONGEST_BYTES);
        let address = source.and_then(|rank| names.get(&rank).copied());
        let posted = node.receive_plain(address, false, buffer);
        self.opened(posted, Step::Receive, Asked { source, tag: None });
    }

    /// Untagged messages from any rank, as many as one buffer holds.
    fn post_many(&mut self, node: &mut Node) {
        let buffer = self.buffer(MANY_BYTES);
        let posted = node.receive_plain(None, true, buffer);
        if let Posted::Started(number) = posted {
            self.many.push(number);
        }
        let asked = Asked {
            source: None,
            tag: None,
        };
        self.opened(posted, Step::Many, asked);
    }

    /// Looks for a message that is here already, and claims it.
    pub(super) fn peek(
        &mut self,
        node: &mut Node,
        random: &mut fastrand::Rng,
        names: &HashMap<u8, u64>,
    ) {
        let everything = random.bool();
        let asked = self.draw(random, names, everything);
        if let Some(wanted) = wanted(&asked, names) {
            let posted = node.peek(&wanted, true);
            self.opened(posted, Step::Peek, asked);
        }
    }

    fn opened(&mut self, posted: Posted, step: Step, asked: Asked) -> bool {
        let Posted::Started(number) = posted else {
            return false;
        };
        self.posts += 1;
        let open = Open {
            step,
            post: self.posts,
            asked,
            is_canceled: false,
        };
        self.open.insert(number, open);
        true
    }

    /// Asks that one receive, or all, end without a message.
    pub(super) fn cancel(&mut self, node: &mut Node, most: usize) {
        let idle =
            |open: &Open| !open.is_canceled && matches!(open.step, Step::Receive | Step::Many);
        for (number, open) in self
            .open
            .iter_mut()
            .filter(|(_, open)| idle(open))
            .take(most)
        {
            open.is_canceled = true;
            node.cancel(*number);
        }
    }

    /// What a completion of a receive means; `me` and `sources` say what it should be.
    pub(super) fn take(
        &mut self,
        node: &mut Node,
        completion: Completion,
        names: &HashMap<u8, u64>,
        ledger: &mut Writer,
    ) -> Taken {
        let Some(open) = self.open.get(&completion.number).copied() else {
            return Taken::Other;
        };
        if let Ended::Failed(error) = completion.ended {
            self.forget(completion.number);
            self.spare.extend(completion.bytes);
            let is_expected = match open.step {
                Step::Peek => error == libc::ENOMSG,
                _ => open.is_canceled && error == libc::ECANCELED,
            };
            return if is_expected {
                Taken::Other
            } else {
                Taken::Failed(error)
            };
        }
        if open.step == Step::Peek {
            return self.claim(node, &completion, open, names);
        }
        if completion.is_last {
            self.forget(completion.number);
        }
        self.judge(completion, open, names, ledger)
    }

    fn forget(&mut self, number: u64) {
        self.open.remove(&number);
        self.many.retain(|many| *many != number);
    }

    /// A peek has found and claimed a message: it is received under the same number.
    fn claim(
        &mut self,
        node: &mut Node,
        completion: &Completion,
        open: Open,
        names: &HashMap<u8, u64>,
    ) -> Taken {
        let buffer = self.buffer(self.traffic.longest_bytes);
        let Some(wanted) = wanted(&open.asked, names) else {
            return Taken::Failed(libc::EINVAL);
        };
        match node.take_claimed(&wanted, completion.number, buffer) {
            Posted::Started(_) => {
                let open = Open {
                    step: Step::Claimed,
                    ..open
                };
                self.open.insert(completion.number, open);
                Taken::Other
            }
            Posted::Refused(error) => {
                self.forget(completion.number);
                Taken::Failed(error)
            }
            Posted::Again | Posted::Done => {
                self.forget(completion.number);
                Taken::Failed(libc::EAGAIN)
            }
        }
    }

    fn judge(
        &mut self,
        mut completion: Completion,
        open: Open,
        names: &HashMap<u8, u64>,
        ledger: &mut Writer,
    ) -> Taken {
        let Some(buffer) = completion.bytes.take() else {
            return Taken::Failed(libc::EFAULT);
        };
        let length = completion.length_bytes;
        if open.step == Step::Many && length == 0 && completion.data.is_none() {
            // The end of a buffer that was used up.
            return Taken::Other;
        }
        let bytes = buffer.get(..length).unwrap_or(&buffer);
        let (identity, flaw) = self.examine(bytes, &completion, names);
        ledger.add(Entry::Received(Received {
            identity,
            post: open.post,
            offset: completion.offset as u32,
            asked: open.asked,
            flaw,
        }));
        if open.step != Step::Many {
            self.spare.push(buffer);
        }
        Taken::Message(identity, length)
    }

    /// Who a message says it is, and what is wrong with it.
    fn examine(
        &self,
        bytes: &[u8],
        completion: &Completion,
        names: &HashMap<u8, u64>,
    ) -> (Identity, Option<Flaw>) {
        let first = bytes
            .first_chunk::<8>()
            .map(|word| u64::from_le_bytes(*word));
        let Some(packed) = first.or(completion.data) else {
            let nobody = Identity::unpacked(0);
            return (nobody, Some(Flaw::Unknown));
        };
        let identity = Identity::unpacked(packed);
        let message = self.traffic.message(identity);
        let rank = identity.stream.from.rank;
        let from = names.get(&rank).filter(|_| !self.renamed.contains(&rank));
        let flaw = if message.length_bytes != completion.length_bytes {
            Some(Flaw::Length(completion.length_bytes as u32))
        } else if let Some(at) = message.first_wrong_byte(bytes) {
            Some(Flaw::Byte(at as u32))
        } else if message.tag.is_some_and(|tag| tag != completion.tag) {
            Some(Flaw::Tag)
        } else if message.has_data != completion.data.is_some()
            || completion.data.is_some_and(|data| data != packed)
        {
            Some(Flaw::Data)
        } else if from.is_some()
            && completion
                .source
                .is_some_and(|source| from != Some(&source))
        {
            Some(Flaw::Source)
        } else {
            None
        };
        (identity, flaw)
    }

    /// What is posted, for a report.
    pub(super) fn describe(&self) -> String {
        let count = |step| self.open.values().filter(|open| open.step == step).count();
        let canceled = self.open.values().filter(|open| open.is_canceled).count();
        format!(
            "{} receives, {} multi-receives, {} peeks, {} claimed; {canceled} canceled",
            count(Step::Receive),
            count(Step::Many),
            count(Step::Peek),
            count(Step::Claimed)
        )
    }
}

fn some_rank(random: &mut fastrand::Rng, names: &HashMap<u8, u64>) -> Option<u8> {
    let mut ranks: Vec<u8> = names.keys().copied().collect();
    ranks.sort_unstable();
    (!ranks.is_empty()).then(|| ranks[random.usize(..ranks.len())])
}

fn wanted(asked: &Asked, names: &HashMap<u8, u64>) -> Option<Wanted> {
    let (tag, ignore) = asked.tag?;
    let source = match asked.source {
        Some(rank) => Some(*names.get(&rank)?),
        None => None,
    };
    Some(Wanted {
        source,
        tag,
        ignore,
    })
}
