// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What this route shows of its counts to tools of the same user (docs/shm-layout.md, clause 9),
//! about once a millisecond; the fast path only adds to words of its own.

use weft_ring::published::{CLASS_COUNT, Counters, PROTOCOL_COUNT};

use crate::protocol::STREAM_BYTES;
use crate::statistics::{Protocol, Statistics};
use crate::transport::traffic::Traffic;

/// What was counted so far.
pub(super) fn counters(traffic: &Traffic, statistics: &Statistics, now_ns: u64) -> Counters {
    let mut sent = [[0; 2]; PROTOCOL_COUNT];
    for protocol in Protocol::ALL {
        let count = statistics.sent(protocol);
        sent[protocol as usize] = [count.messages, count.bytes];
    }
    let mut choices = [0; CLASS_COUNT];
    let first_class = STREAM_BYTES.ilog2() as usize;
    for (class, choice) in choices.iter_mut().enumerate().skip(first_class) {
        *choice = traffic.methods.published(class);
    }
    let moving_count = traffic.fetches.count() + traffic.feeds.count() + traffic.data.count();
    Counters {
        written_ns: now_ns,
        sent,
        received: statistics.received,
        remotes_count: statistics.remotes,
        lost_count: statistics.lost,
        waiting_count: traffic.contacts.remotes.waiting_count() as u64,
        moving_count: moving_count as u64,
        offered_count: traffic.receives.offers.count() as u64,
        wide_lanes_count: u64::from(traffic.sender.wide_lanes()),
        choices,
        direct: [statistics.mapped, statistics.copied].map(|count| [count.messages, count.bytes]),
    }
}
