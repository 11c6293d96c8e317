// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Judges the ledgers of a round: every message once, whole, in order, and every send ended well,
//! unless somebody was killed.
//!
//! Called by the job at the end of each round. Pure. The laws are those of docs/soak.md; `books`
//! holds those about one message or one send, `order` the one about order. Messages between two
//! processes of which one was killed in the round may be lost and their sends may fail; they still
//! come once at most, whole and in order.

mod books;
mod order;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use crate::finding::{Finding, Kind};
use crate::ledger::Received;
use crate::traffic::{Identity, Life, Stream, Traffic};
use books::Books;
pub use books::Round;

/// Judges the rounds of one job, in their order.
#[derive(Debug)]
pub struct Checker {
    traffic: Traffic,
    /// Messages of streams that a kill has cut, which may come in a later round.
    late: HashMap<Identity, Life>,
    cut: HashSet<Stream>,
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
