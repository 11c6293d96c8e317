// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A round with what follows from it, and the laws that look at one message or one send.
//!
//! Made by the checker for each round.

use std::collections::{HashMap, HashSet};

use crate::finding::{Finding, Kind};
use crate::ledger::{Flaw, Ledger, Received, SendEnd, Sent};
use crate::traffic::{Form, Identity, Life, Stream, Traffic};

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

/// A round with what follows from it.
pub(super) struct Books<'a> {
    pub(super) round: &'a Round,
    pub(super) traffic: Traffic,
    cut_short: HashSet<Life>,
    pub(super) lives: HashSet<Life>,
    pub(super) received: HashMap<Identity, Vec<(Life, &'a Received)>>,
}

impl<'a> Books<'a> {
    pub(super) fn new(round: &'a Round, traffic: Traffic) -> Self {
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
    pub(super) fn is_cut(&self, stream: Stream) -> bool {
        self.cut_short.contains(&stream.from) || self.cut_short.contains(&stream.to)
    }

    /// The message by itself.
    pub(super) fn check_message(&self, life: Life, received: &Received) -> Option<Finding> {
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

    pub(super) fn check_send(&self, sent: &Sent) -> Option<Finding> {
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

    pub(super) fn check_count(&self) -> Vec<Finding> {
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
    pub(super) fn check_lost(&self) -> Vec<Finding> {
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
