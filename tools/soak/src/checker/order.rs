// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The law of order: a receive takes, of all that a sender has sent, the earliest message that it
//! matches and that no receive posted before it has taken (fi_endpoint(3), FI_ORDER_SAS; the
//! standard of MPI, 3.5).
//!
//! Called by the checker, for each ledger.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::books::Books;
use crate::finding::{Finding, Kind};
use crate::ledger::{Ledger, Received};
use crate::traffic::Stream;

/// Messages of one stream that no receive has taken, by tag; untagged ones have a place of their
/// own.
type Untaken = BTreeMap<Option<u64>, BTreeSet<u32>>;

/// What is out of order in one ledger.
pub(super) fn check(books: &Books<'_>, ledger: &Ledger) -> Vec<Finding> {
    let number = books.round.number;
    let mut received: Vec<&Received> = ledger
        .received()
        .filter(|one| one.identity.stream.round == number && one.identity.stream.to == ledger.life)
        .filter(|one| !one.identity.is_hello() && one.flaw.is_none())
        .collect();
    received.sort_by_key(|one| (one.post, one.offset));
    let mut untaken: HashMap<Stream, Untaken> = HashMap::new();
    for one in &received {
        let tag = books.traffic.message(one.identity).tag;
        let stream = untaken.entry(one.identity.stream).or_default();
        stream.entry(tag).or_default().insert(one.identity.index);
    }
    let mut findings = Vec::new();
    for one in received {
        let stream = one.identity.stream;
        let tag = books.traffic.message(one.identity).tag;
        let Some(untaken) = untaken.get_mut(&stream) else {
            continue;
        };
        // Where entries may be missing, only messages of one tag can be compared: what took the
        // others is not known.
        let exact = books.is_cut(stream);
        let due = first_due(untaken, one, exact.then_some(tag));
        if due.is_some_and(|due| due < one.identity.index) {
            let text = format!(
                "{} received {} by receive {} before message {}, which that receive matches and \
                 which came later",
                ledger.life,
                one.identity,
                one.post,
                due.unwrap_or(0)
            );
            findings.push(Finding::new(Kind::Misordered, text));
        }
        if let Some(of_tag) = untaken.get_mut(&tag) {
            of_tag.remove(&one.identity.index);
        }
    }
    findings
}

/// The earliest untaken message that a receive matches, among all tags or among those of one.
fn first_due(untaken: &Untaken, receive: &Received, only: Option<Option<u64>>) -> Option<u32> {
    let matches = |tag: &Option<u64>| match (receive.asked.tag, tag) {
        (Some((asked, ignore)), Some(tag)) => (asked ^ tag) & !ignore == 0,
        (None, None) => true,
        _ => false,
    };
    let fitting = untaken
        .iter()
        .filter(|(tag, _)| matches(tag) && only.is_none_or(|only| only == **tag));
    fitting
        .filter_map(|(_, indices)| indices.first().copied())
        .min()
}
