// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the user hears of the operations that it posts: sends, and accesses of remote memory.
//!
//! Called by `send` and by the initiator's half of `one_sided`. fi_endpoint(3) for which counter
//! counts what.

use weft_contract::Class;

use super::completions::{AccessKind, BoundQueue, Completions, class_flag};
use super::counter::CounterBindings;
use super::queue::{Completion, ErrorCompletion};
use crate::error::Error;
use crate::flags;
use crate::ids::CounterId;
use crate::statistics::Counts;

/// What the user hears when an operation succeeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// An entry, if these flags ask for one, and a step of the counter.
    Entry(u64),
    /// A step of the counter alone (inject).
    Silent,
    /// Nothing: it was told already, or nobody waits.
    Told,
}

/// The events that are counted here.
const SENDS: usize = 0;
const READS: usize = 1;
const WRITES: usize = 2;

/// How one endpoint reports what it posts.
#[derive(Debug)]
pub(crate) struct TransmitReports {
    pub(crate) queue: BoundQueue,
    pub(crate) counters: CounterBindings,
    /// What was sent, and what failed.
    pub(crate) counts: Counts,
}

impl TransmitReports {
    pub(crate) fn new() -> Self {
        Self {
            queue: BoundQueue::NONE,
            counters: CounterBindings::new([flags::SEND, flags::READ, flags::WRITE]),
            counts: Counts::default(),
        }
    }

    /// A transport took a send. Fast path.
    #[inline(always)]
    pub(crate) fn count_sent(&mut self, length_bytes: usize) {
        self.counts.sent_count += 1;
        self.counts.sent_bytes += length_bytes as u64;
    }

    /// A send succeeded. Fast path.
    #[inline(always)]
    pub(crate) fn sent(
        &self,
        completions: &mut Completions,
        class: Class,
        context: usize,
        ending: Ending,
    ) {
        match ending {
            Ending::Entry(flags) => {
                if self.queue.wants_entry(flags) {
                    let entry = Completion::bare(context, flags::SEND | class_flag(class));
                    completions.push(self.queue.queue, entry);
                }
            }
            Ending::Silent => {}
            Ending::Told => return,
        }
        completions.count(self.counters.at(SENDS));
    }

    /// A send failed.
    #[cold]
    pub(crate) fn send_failed(
        &mut self,
        completions: &mut Completions,
        class: Class,
        context: usize,
        error: Error,
    ) {
        let entry = Completion::bare(context, flags::SEND | class_flag(class));
        self.fail(completions, entry, error, self.counters.at(SENDS));
    }

    fn access_counter(&self, kind: AccessKind) -> Option<CounterId> {
        self.counters.at(if kind.reads() { READS } else { WRITES })
    }

    /// An access of remote memory succeeded. Fast path.
    #[inline]
    pub(crate) fn accessed(
        &self,
        completions: &mut Completions,
        kind: AccessKind,
        context: usize,
        ending: Ending,
    ) {
        match ending {
            Ending::Entry(flags) => {
                if self.queue.wants_entry(flags) {
                    let entry = Completion::bare(context, kind.flags());
                    completions.push(self.queue.queue, entry);
                }
            }
            Ending::Silent => {}
            Ending::Told => return,
        }
        completions.count(self.access_counter(kind));
    }

    /// An access of remote memory failed.
    #[cold]
    pub(crate) fn access_failed(
        &mut self,
        completions: &mut Completions,
        kind: AccessKind,
        context: usize,
        error: Error,
    ) {
        let entry = Completion::bare(context, kind.flags());
        self.fail(completions, entry, error, self.access_counter(kind));
    }

    fn fail(
        &mut self,
        completions: &mut Completions,
        completion: Completion,
        error: Error,
        counter: Option<CounterId>,
    ) {
        self.counts.error_count += 1;
        let error = ErrorCompletion {
            completion,
            overflow_bytes: 0,
            error,
        };
        completions.push_error(self.queue.queue, error);
        completions.count_error(counter);
    }
}
