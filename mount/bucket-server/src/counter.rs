// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts requests and sent bytes, so that tests can demand "at most 100 lists and no head" or "at
//! most 1.3 times the bytes".

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::Serialize;

/// Chosen: so many ranges are kept; further ones are counted only.
const RANGES_KEPT: usize = 200_000;

/// What was counted since the start, or since the counters were last set to zero.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// Requests by the name of their call.
    pub requests: BTreeMap<String, u64>,
    /// Refusals by S3's code, and `Reset` for connections given up.
    pub refusals: BTreeMap<String, u64>,
    /// Bytes of objects promised in answers to reads.
    pub read_bytes: u64,
    /// Bytes that the sockets have taken, heads of answers included: less than was promised where
    /// clients gave reads up.
    pub sent_bytes: u64,
    /// Bytes of objects received.
    pub written_bytes: u64,
    /// What was read: key, first byte, length; in order of arrival.
    pub ranges: Vec<Range>,
    /// Ranges that were not kept because there were too many.
    pub ranges_left_out: u64,
    /// The most requests at work at once.
    pub most_at_once: u64,
    /// Requests at work now.
    pub at_work: u64,
}

/// One read of an object.
#[derive(Clone, Debug, Serialize)]
pub struct Range {
    /// Its key.
    pub key: String,
    /// Its first byte.
    pub first: u64,
    /// How many bytes.
    pub length: u64,
}

/// The counters of a running server.
#[derive(Debug, Default)]
pub struct Counters {
    counts: Mutex<Counts>,
    /// What the sockets had taken when the counters were last set to zero.
    sent_before: Mutex<u64>,
}

impl Counters {
    /// What has been counted, where the sockets have taken `sent_bytes` since the start.
    pub fn counts(&self, sent_bytes: u64) -> Counts {
        let mut counts = crate::locked(&self.counts).clone();
        counts.sent_bytes = sent_bytes - *crate::locked(&self.sent_before);
        counts
    }

    /// Begins anew.
    pub fn clear(&self, sent_bytes: u64) {
        let mut counts = crate::locked(&self.counts);
        let at_work = counts.at_work;
        *counts = Counts::default();
        counts.at_work = at_work;
        *crate::locked(&self.sent_before) = sent_bytes;
    }

    /// A request has arrived; it is at work until what comes back is dropped.
    pub fn begin(&self, name: String) -> AtWork<'_> {
        let mut counts = crate::locked(&self.counts);
        *counts.requests.entry(name).or_insert(0) += 1;
        counts.at_work += 1;
        counts.most_at_once = counts.most_at_once.max(counts.at_work);
        AtWork(self)
    }

    /// A request was refused.
    pub fn refused(&self, code: String) {
        let mut counts = crate::locked(&self.counts);
        *counts.refusals.entry(code).or_insert(0) += 1;
    }

    /// Bytes of an object are about to be sent.
    pub fn read(&self, key: &str, first: u64, length: u64) {
        let mut counts = crate::locked(&self.counts);
        counts.read_bytes += length;
        if counts.ranges.len() == RANGES_KEPT {
            counts.ranges_left_out += 1;
            return;
        }
        counts.ranges.push(Range {
            key: key.to_owned(),
            first,
            length,
        });
    }

    /// Bytes of an object have arrived.
    pub fn written(&self, length: u64) {
        crate::locked(&self.counts).written_bytes += length;
    }
}

/// A request being answered.
#[derive(Debug)]
pub struct AtWork<'a>(&'a Counters);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        crate::locked(&self.0.counts).at_work -= 1;
    }
}
