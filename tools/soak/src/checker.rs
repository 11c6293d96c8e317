// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Judges the ledgers of a round: every message once, whole, in order, and every send ended well,
//! unless somebody was
//! killed.
//!
//! Called by the job at the end of each round. Pure. The laws are those of docs/soak.md; `order`
//! holds the one about order.
//! Messages between two processes of which one was killed in the round may be lost and their sends
//! may fail; they still
//! come once at most, whole and in order.

mod order;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use crate::finding::{Finding, Kind};
use crate::ledger::{Entry, Flaw, Ledger, Received, SendEnd, Sent};
use crate::plan::{Form, Identity, Life, Stream, Traffic};

/// Everything that is known of a round.
#[derive(Debug)]
pub struct Round {
    /// Its number.
    pub number: u16,
    /// One for each process that ran in it.
    pub ledgers: Vec<Ledger>,
    /// How many messages each process that was not killed posted on each of its streams.
    pub posted: HashMap<Stream, u32>,
}

/// Judges the rounds of one job, in their order.
#[derive(Debug)]
pub struct Checker {
    traffic: Traffic,
    /// Messages of streams that a kill has cut, which may come in a later round.
    late: HashMap<Identity, Life>,
    cut: HashSet<Stream>,
}

/// A round with what follows from it.
struct Books<'a> {
    round: &'a Round,
    traffic: Traffic,
    cut_short: HashSet<Life>,
    lives: HashSet<Life>,
    received: HashMap<Identity, Vec<(Life, &'a Received)>>,
}

impl Checker {
    /// For a job with this traffic.
    pub fn new(traffic: Traffic) -> Self {
        Self {
            traffic,
            late: HashMap::new(),
            cut: HashSet::new(),
        }
    }

    /// What is wrong in a round; nothing, as it should be.
    pub fn check(&mut self, round: &Round) -> Vec<Finding> {
        let books = Books::new(round, self.traffic);
        let mut findings = Vec::new();
        for ledger in &round.ledgers {
            for received in ledger.received() {
                findings.extend(books.check_message(ledger.life, received));
                findings.extend(self.check_place(&books, ledger.life, received));
            }
            for sent in ledger.sent() {
                findings.extend(books.check_send(sent));
            }
            findings.extend(order::check(&books, ledger));
        }
        findings.extend(books.check_count());
        findings.extend(books.check_lost());
        self.remember(&books);
        findings
    }

    /// Whether a message may come here and now.
    fn check_place(&self, books: &Books<'_>, life: Life, received: &Received) -> Option<Finding> {
        let identity = received.identity;
        let stream = identity.stream;
        let invented = |why: &str| {
            let text = format!("{life} received {identity}, {why}");
            Some(Finding::new(Kind::Wrong, text))
        };
        if stream.to.rank != life.rank || stream.to.generation > life.generation {
            return invented("which was for another");
        }
        if stream.round != books.round.number {
            if !self.cut.contains(&stream) {
                return invented("of a round that had ended with every message received");
            }
            return self.late.get(&identity).map(|before| {
                let text = format!("{life} received {identity}, which {before} had received");
                Finding::new(Kind::Doubled, text)
            });
        }
        if books.is_cut(stream) {
            return None;
        }
        if stream.to != life {
            return invented("which was for an earlier process");
        }
        // A stream that a failed send has ended is not in the list: then the failure is the
        // finding.
        let posted = books.round.posted.get(&stream)?;
        if !identity.is_hello() && identity.index >= *posted {
            return invented("which was never sent");
        }
        None
    }

    fn remember(&mut self, books: &Books<'_>) {
        for (identity, by) in &books.received {
            if books.is_cut(identity.stream) || self.cut.contains(&identity.stream) {
                self.late.insert(*identity, by[0].0);
            }
        }
        let lives: Vec<Life> = books.lives.iter().copied().collect();
        for from in &lives {
            for to in &lives {
                let stream = Stream {
                    round: books.round.number,
                    from: *from,
                    to: *to,
                };
                if books.is_cut(stream) {
                    self.cut.insert(stream);
                }
            }
        }
    }
}

impl<'a> Books<'a> {
    fn new(round: &'a Round, traffic: Traffic) -> Self {
        let mut received: HashMap<Identity, Vec<_>> = HashMap::new();
        for ledger in &round.ledgers {
            for one in ledger.received() {
                received
                    .entry(one.identity)
                    .or_default()
                    .push((ledger.life, one));
            }
        }
        let cut_short = round.ledgers.iter().filter(|ledger| ledger.is_cut_short);
        Self {
            round,
            traffic,
            cut_short: cut_short.map(|ledger| ledger.life).collect(),
            lives: round.ledgers.iter().map(|ledger| ledger.life).collect(),
            received,
        }
    }

    /// Whether a kill has cut a stream of this round.
    fn is_cut(&self, stream: Stream) -> bool {
        self.cut_short.contains(&stream.from) || self.cut_short.contains(&stream.to)
    }

    /// The message by itself.
    fn check_message(&self, life: Life, received: &Received) -> Option<Finding> {
        let identity = received.identity;
        if let Some(flaw) = received.flaw {
            let what = match flaw {
                Flaw::Byte(at) => format!("with another byte at {at}"),
                Flaw::Length(length) => format!("with {length} bytes"),
                Flaw::Tag => "with another tag".to_owned(),
                Flaw::Data => "with other completion data".to_owned(),
                Flaw::Source => "from another source".to_owned(),
                Flaw::Unknown => "which nobody sends".to_owned(),
            };
            let should = self.traffic.message(identity).length_bytes;
            let text = format!("{life} received {identity} ({should} bytes) {what}");
            return Some(Finding::new(Kind::Wrong, text));
        }
        let tag = self.traffic.message(identity).tag;
        let fits = match (received.asked.tag, tag) {
            (Some((asked, ignore)), Some(tag)) => (asked ^ tag) & !ignore == 0,
            (None, None) => true,
            _ => false,
        };
        let from = identity.stream.from.rank;
        let fits = fits && received.asked.source.is_none_or(|asked| asked == from);
        (!fits).then(|| {
            let text = format!("{life} received {identity} by a receive that asked for others");
            Finding::new(Kind::Wrong, text)
        })
    }

    fn check_send(&self, sent: &Sent) -> Option<Finding> {
        let identity = sent.identity;
        let to = identity.stream.to;
        match sent.end {
            SendEnd::Never => {
                let text = format!("the send of {identity} did not end");
                Some(Finding::new(Kind::Hung, text))
            }
            SendEnd::Failed(error) if !self.is_cut(identity.stream) && !identity.is_hello() => {
                let text = format!("the send of {identity} failed with error {error}");
                Some(Finding::new(Kind::Failed, text))
            }
            SendEnd::Well
                if self.traffic.message(identity).form == Form::Delivered
                    && self.lives.contains(&to)
                    && !self.cut_short.contains(&to)
                    && !self.received.contains_key(&identity) =>
            {
                let text = format!("{identity} was reported delivered, and nobody received it");
                Some(Finding::new(Kind::Lost, text))
            }
            _ => None,
        }
    }

    fn check_count(&self) -> Vec<Finding> {
        let often = self.received.iter().filter(|(_, by)| by.len() > 1);
        let say = |(identity, by): (&Identity, &Vec<(Life, &Received)>)| {
            let who = by[1].0;
            let text = format!("{who} received {identity}, {} times in all", by.len());
            Finding::new(Kind::Doubled, text)
        };
        let mut findings: Vec<Finding> = often.map(say).collect();
        findings.sort_by(|a, b| a.text.cmp(&b.text));
        findings
    }

    /// Messages that were posted between processes that lived and that nobody received.
    fn check_lost(&self) -> Vec<Finding> {
        let failed: HashSet<Identity> = self
            .round
            .ledgers
            .iter()
            .flat_map(Ledger::sent)
            .filter(|sent| sent.end != SendEnd::Well)
            .map(|sent| sent.identity)
            .collect();
        let mut findings = Vec::new();
        let mut posted: Vec<_> = self.round.posted.iter().collect();
        posted.sort();
        for (stream, count) in posted {
            if self.is_cut(*stream) {
                continue;
            }
            let all = (0..*count).map(|index| Identity {
                stream: *stream,
                index,
            });
            let lost = all.filter(|one| !self.received.contains_key(one) && !failed.contains(one));
            findings.extend(lost.map(|identity| {
                let message = self.traffic.message(identity);
                let (length, form) = (message.length_bytes, message.form);
                let text = format!("{identity} never came ({length} bytes, {form:?})");
                Finding::new(Kind::Lost, text)
            }));
        }
        findings
    }
}

impl Ledger {
    fn received(&self) -> impl Iterator<Item = &Received> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Received(received) => Some(received),
            Entry::Sent(_) => None,
        })
    }

    fn sent(&self) -> impl Iterator<Item = &Sent> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Sent(sent) => Some(sent),
            Entry::Received(_) => None,
        })
    }
}
