// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the user hears of what remotes send to it: receives that end, peeks, and accesses of its
//! own memory.
//!
//! Called by `receive` and by the target's half of `one_sided`. fi_cq(3), fi_cntr(3);
//! fi_endpoint(3) for which counter counts what.

use weft_contract::{Class, Envelope, RemoteId};

use super::completions::{AccessKind, BoundQueue, Completions, class_flag};
use super::counter::CounterBindings;
use super::queue::{Completion, ErrorCompletion};
use crate::error::Error;
use crate::flags;
use crate::ids::FiAddr;
use crate::remotes::Remotes;
use crate::statistics::Counts;

/// The receive that a message ends in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveEnd {
    pub(crate) context: usize,
    /// Flags of the call.
    pub(crate) flags: u64,
    pub(crate) capacity_bytes: usize,
    /// Where the message begins, for a multi-receive; else 0.
    pub(crate) address: usize,
    /// Whether this is the last message of a multi-receive.
    pub(crate) release: bool,
}

/// The events that are counted here.
const RECEIVES: usize = 0;
const REMOTE_READS: usize = 1;
const REMOTE_WRITES: usize = 2;

/// How one endpoint reports what comes to it.
#[derive(Debug)]
pub(crate) struct ReceiveReports {
    pub(crate) queue: BoundQueue,
    pub(crate) counters: CounterBindings,
    /// Whether entries name who sent a message.
    names_source: bool,
    /// What was received, and what failed.
    pub(crate) counts: Counts,
}

impl ReceiveReports {
    pub(crate) fn new(names_source: bool) -> Self {
        let events = [flags::RECV, flags::REMOTE_READ, flags::REMOTE_WRITE];
        Self {
            queue: BoundQueue::NONE,
            counters: CounterBindings::new(events),
            names_source,
            counts: Counts::default(),
        }
    }

    /// What the user calls the source of a message, if it wants to be told. Fast path.
    #[inline(always)]
    pub(crate) fn source(&self, remotes: &Remotes, remote: RemoteId) -> FiAddr {
        if self.names_source {
            remotes.name_of(remote)
        } else {
            FiAddr::UNSPEC
        }
    }

    /// The entry for a message; its source is what [`Self::source`] says.
    #[inline(always)]
    pub(crate) fn entry(
        &self,
        envelope: &Envelope,
        source: FiAddr,
        end: &ReceiveEnd,
    ) -> Completion {
        let mut flags = flags::RECV | class_flag(envelope.class);
        if envelope.cq_data.is_some() {
            flags |= flags::REMOTE_CQ_DATA;
        }
        if end.release {
            flags |= flags::MULTI_RECV;
        }
        Completion {
            context: end.context,
            flags,
            length_bytes: envelope.length_bytes as usize,
            address: end.address,
            cq_data: envelope.cq_data.unwrap_or(0),
            tag: envelope.tag,
            source,
        }
    }

    /// A message is in its receive, whole or cut. Fast path.
    #[inline(always)]
    pub(crate) fn received(
        &mut self,
        completions: &mut Completions,
        envelope: &Envelope,
        source: FiAddr,
        end: &ReceiveEnd,
    ) {
        self.counts.received_count += 1;
        if envelope.length_bytes > end.capacity_bytes as u64 {
            let envelope = *envelope;
            return self.truncated(completions, &envelope, source, *end);
        }
        self.counts.received_bytes += envelope.length_bytes;
        if end.release || self.queue.wants_entry(end.flags) {
            completions.push(self.queue.queue, self.entry(envelope, source, end));
        }
        completions.count(self.counters.at(RECEIVES));
    }

    // The end comes by value and the envelope as a copy, so that neither need be in memory where
    // nothing is cut.
    #[cold]
    fn truncated(
        &mut self,
        completions: &mut Completions,
        envelope: &Envelope,
        source: FiAddr,
        end: ReceiveEnd,
    ) {
        self.counts.received_bytes += end.capacity_bytes as u64;
        let entry = self.entry(envelope, source, &end);
        let error = ErrorCompletion {
            completion: Completion {
                length_bytes: end.capacity_bytes,
                ..entry
            },
            overflow_bytes: entry.length_bytes.saturating_sub(end.capacity_bytes),
            error: Error::Truncated,
        };
        self.fail(completions, error);
    }

    /// A matched message did not arrive.
    #[cold]
    pub(crate) fn broken(
        &mut self,
        completions: &mut Completions,
        entry: Completion,
        error: Error,
    ) {
        let completion = Completion {
            length_bytes: 0,
            ..entry
        };
        self.fail(completions, ErrorCompletion::whole(completion, error));
    }

    /// A receive ended without a message.
    #[cold]
    pub(crate) fn failed(
        &mut self,
        completions: &mut Completions,
        class: Class,
        end: &ReceiveEnd,
        error: Error,
    ) {
        let release = if end.release { flags::MULTI_RECV } else { 0 };
        let flags = flags::RECV | class_flag(class) | release;
        let completion = Completion::bare(end.context, flags);
        self.fail(completions, ErrorCompletion::whole(completion, error));
    }

    fn fail(&mut self, completions: &mut Completions, error: ErrorCompletion) {
        // What the user canceled did not go wrong.
        self.counts.error_count += u64::from(error.error != Error::Canceled);
        completions.push_error(self.queue.queue, error);
        completions.count_error(self.counters.at(RECEIVES));
    }

    /// The answer to a peek that found a message: always an entry, never counted.
    pub(crate) fn peeked(&self, completions: &mut Completions, entry: Completion) {
        completions.push(self.queue.queue, entry);
    }

    /// A claimed message was dropped: reported as a receive of nothing.
    pub(crate) fn discarded(&self, completions: &mut Completions, entry: Completion, flags: u64) {
        if self.queue.wants_entry(flags) {
            let entry = Completion {
                length_bytes: 0,
                ..entry
            };
            completions.push(self.queue.queue, entry);
        }
        completions.count(self.counters.at(RECEIVES));
    }

    /// The answer to a peek that found none.
    pub(crate) fn nothing_peeked(
        &self,
        completions: &mut Completions,
        class: Class,
        context: usize,
        tag: u64,
    ) {
        let completion = Completion {
            tag,
            ..Completion::bare(context, flags::RECV | class_flag(class))
        };
        let error = ErrorCompletion::whole(completion, Error::NoMessage);
        completions.push_error(self.queue.queue, error);
    }

    /// Whether the user counts what remotes do to registered memory, so that nothing must be done
    /// without our knowing.
    pub(crate) fn counts_accesses(&self) -> bool {
        self.counters.at(REMOTE_READS).is_some() || self.counters.at(REMOTE_WRITES).is_some()
    }

    /// A remote's operation was carried out on our memory. Fast path.
    #[inline]
    pub(crate) fn accessed(&self, completions: &mut Completions, kind: AccessKind) {
        let event = if kind.reads() {
            REMOTE_READS
        } else {
            REMOTE_WRITES
        };
        completions.count(self.counters.at(event));
    }

    /// A remote wrote to our memory and gave data for an entry; there always is one. The source is
    /// what [`Self::source`] says.
    pub(crate) fn written_with_data(
        &self,
        completions: &mut Completions,
        source: FiAddr,
        length_bytes: usize,
        cq_data: u64,
    ) {
        let flags = flags::RMA | flags::REMOTE_WRITE | flags::REMOTE_CQ_DATA;
        let entry = Completion {
            length_bytes,
            cq_data,
            source,
            ..Completion::bare(0, flags)
        };
        completions.push(self.queue.queue, entry);
    }
}
