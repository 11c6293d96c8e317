// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tells the user what became of an operation: an entry on the queue, a step of the counter.
//!
//! Called by send.rs, receive.rs, multi_receive.rs, peek.rs and progress.rs for every operation that ends.

use weft_contract::{Class, Envelope, RemoteId};

use crate::completion_queue::{Completion, CompletionQueue, ErrorCompletion};
use crate::counter::{Counter, CounterBindings};
use crate::error::Error;
use crate::flags;
use crate::ids::{CounterId, FiAddr, QueueId, Table};
use crate::one_sided::Regions;
use crate::remotes::Remotes;
use crate::settings::QueueBinding;
use crate::statistics::Counts;

mod access;

/// Where completions go, and what remotes may touch: the queues, counters and regions of the whole domain, apart from
/// its endpoints, so that an endpoint and the queues can be changed at once.
#[derive(Debug)]
pub(crate) struct Sinks {
    pub(crate) queues: Table<CompletionQueue>,
    pub(crate) counters: Table<Counter>,
    pub(crate) regions: Regions,
}

/// The queue of one direction of an endpoint.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    queue: Option<QueueId>,
    selective: bool,
}

impl Direction {
    fn bind(&mut self, queue: QueueId, selective: bool) -> Result<(), Error> {
        if self.queue.is_some() {
            return Err(Error::Busy);
        }
        *self = Self {
            queue: Some(queue),
            selective,
        };
        Ok(())
    }

    /// Whether an operation with these flags gets an entry when it succeeds.
    #[inline(always)]
    fn wants_entry(&self, flags: u64) -> bool {
        !self.selective || flags & flags::COMPLETION != 0
    }
}

/// How one endpoint reports.
#[derive(Debug)]
pub(crate) struct Reporter {
    transmit: Direction,
    receive: Direction,
    counters: CounterBindings,
    source: bool,
    pub(crate) counts: Counts,
}

impl Reporter {
    pub(crate) fn new(source: bool) -> Self {
        Self {
            transmit: Direction::default(),
            receive: Direction::default(),
            counters: CounterBindings::default(),
            source,
            counts: Counts::default(),
        }
    }

    pub(crate) fn bind_queue(
        &mut self,
        queue: QueueId,
        binding: QueueBinding,
    ) -> Result<(), Error> {
        if !binding.transmit && !binding.receive {
            return Err(Error::Invalid);
        }
        if binding.transmit {
            self.transmit.bind(queue, binding.selective)?;
        }
        if binding.receive {
            self.receive.bind(queue, binding.selective)?;
        }
        Ok(())
    }

    pub(crate) fn bind_counter(&mut self, counter: CounterId, events: u64) -> Result<(), Error> {
        self.counters.bind(counter, events)
    }

    /// What the user calls the source of a message, if he wants to be told. Fast path.
    #[inline(always)]
    pub(crate) fn source(&self, remotes: &Remotes, remote: RemoteId) -> FiAddr {
        if self.source {
            remotes.name_of(remote)
        } else {
            FiAddr::UNSPEC
        }
    }

    /// Whether receives have a queue to be reported on.
    pub(crate) fn has_receive_queue(&self) -> bool {
        self.receive.queue.is_some()
    }
}

/// The flag that tells the receive sides apart.
#[inline(always)]
fn kind(class: Class) -> u64 {
    match class {
        Class::Message | Class::Service => flags::MSG,
        Class::Tagged => flags::TAGGED,
    }
}

/// An entry that says nothing but what it is for.
fn bare(context: usize, flags: u64) -> Completion {
    Completion {
        context,
        flags,
        length_bytes: 0,
        address: 0,
        cq_data: 0,
        tag: 0,
        source: FiAddr::UNSPEC,
    }
}

/// Sends that end.
impl Reporter {
    /// A transport took a send. Fast path.
    #[inline(always)]
    pub(crate) fn count_sent(&mut self, length_bytes: usize) {
        self.counts.sent_count += 1;
        self.counts.sent_bytes += length_bytes as u64;
    }

    /// A send succeeded. Fast path.
    #[inline(always)]
    pub(crate) fn sent(&mut self, sinks: &mut Sinks, class: Class, context: usize, flags: u64) {
        if self.transmit.wants_entry(flags) {
            sinks.push(
                self.transmit.queue,
                bare(context, flags::SEND | kind(class)),
            );
        }
        self.sent_silently(sinks);
    }

    /// A send succeeded that gets no entry. Fast path.
    #[inline(always)]
    pub(crate) fn sent_silently(&mut self, sinks: &mut Sinks) {
        sinks.count(self.counters.send());
    }

    /// A send failed.
    #[cold]
    pub(crate) fn send_failed(
        &mut self,
        sinks: &mut Sinks,
        class: Class,
        context: usize,
        error: Error,
    ) {
        self.counts.error_count += 1;
        let completion = bare(context, flags::SEND | kind(class));
        sinks.push_error(
            self.transmit.queue,
            ErrorCompletion {
                completion,
                overflow_bytes: 0,
                error,
            },
        );
        sinks.count_error(self.counters.send());
    }
}

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

/// Receives that end.
impl Reporter {
    /// The entry for a message; its source is what [`Reporter::source`] says.
    #[inline(always)]
    pub(crate) fn entry(
        &self,
        envelope: &Envelope,
        source: FiAddr,
        end: &ReceiveEnd,
    ) -> Completion {
        let mut flags = flags::RECV | kind(envelope.class);
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
        sinks: &mut Sinks,
        envelope: &Envelope,
        source: FiAddr,
        end: &ReceiveEnd,
    ) {
        self.counts.received_count += 1;
        if envelope.length_bytes > end.capacity_bytes as u64 {
            let envelope = *envelope;
            return self.truncated(sinks, &envelope, source, *end);
        }
        self.counts.received_bytes += envelope.length_bytes;
        if end.release || self.receive.wants_entry(end.flags) {
            sinks.push(self.receive.queue, self.entry(envelope, source, end));
        }
        sinks.count(self.counters.receive());
    }

    // The end comes by value and the envelope as a copy, so that neither need be in memory where nothing is cut.
    #[cold]
    fn truncated(
        &mut self,
        sinks: &mut Sinks,
        envelope: &Envelope,
        source: FiAddr,
        end: ReceiveEnd,
    ) {
        self.counts.received_bytes += end.capacity_bytes as u64;
        let entry = self.entry(envelope, source, &end);
        let completion = Completion {
            length_bytes: end.capacity_bytes,
            ..entry
        };
        let overflow_bytes = entry.length_bytes.saturating_sub(end.capacity_bytes);
        self.fail(
            sinks,
            ErrorCompletion {
                completion,
                overflow_bytes,
                error: Error::Truncated,
            },
        );
    }

    /// A matched message did not arrive.
    #[cold]
    pub(crate) fn receive_broken(&mut self, sinks: &mut Sinks, entry: Completion, error: Error) {
        let completion = Completion {
            length_bytes: 0,
            ..entry
        };
        self.fail(
            sinks,
            ErrorCompletion {
                completion,
                overflow_bytes: 0,
                error,
            },
        );
    }

    /// A receive ended without a message.
    #[cold]
    pub(crate) fn receive_failed(
        &mut self,
        sinks: &mut Sinks,
        class: Class,
        end: &ReceiveEnd,
        error: Error,
    ) {
        let release = if end.release { flags::MULTI_RECV } else { 0 };
        let completion = bare(end.context, flags::RECV | kind(class) | release);
        self.fail(
            sinks,
            ErrorCompletion {
                completion,
                overflow_bytes: 0,
                error,
            },
        );
    }

    fn fail(&mut self, sinks: &mut Sinks, error: ErrorCompletion) {
        // What the user canceled did not go wrong.
        self.counts.error_count += u64::from(error.error != Error::Canceled);
        sinks.push_error(self.receive.queue, error);
        sinks.count_error(self.counters.receive());
    }

    /// The answer to a peek that found a message: always an entry, never counted.
    pub(crate) fn peeked(&mut self, sinks: &mut Sinks, entry: Completion) {
        sinks.push(self.receive.queue, entry);
    }

    /// A claimed message was dropped: reported as a receive of nothing.
    pub(crate) fn discarded(&mut self, sinks: &mut Sinks, entry: Completion, flags: u64) {
        if self.receive.wants_entry(flags) {
            sinks.push(
                self.receive.queue,
                Completion {
                    length_bytes: 0,
                    ..entry
                },
            );
        }
        sinks.count(self.counters.receive());
    }

    /// The answer to a peek that found none.
    pub(crate) fn nothing_peeked(
        &mut self,
        sinks: &mut Sinks,
        class: Class,
        context: usize,
        tag: u64,
    ) {
        let completion = Completion {
            tag,
            ..bare(context, flags::RECV | kind(class))
        };
        sinks.push_error(
            self.receive.queue,
            ErrorCompletion {
                completion,
                overflow_bytes: 0,
                error: Error::NoMessage,
            },
        );
    }
}

impl Sinks {
    #[inline(always)]
    fn push(&mut self, queue: Option<QueueId>, completion: Completion) {
        if let Some(queue) = queue.and_then(|queue| self.queues.get_mut(queue.0)) {
            queue.push(completion);
        }
    }

    #[cold]
    fn push_error(&mut self, queue: Option<QueueId>, error: ErrorCompletion) {
        if let Some(queue) = queue.and_then(|queue| self.queues.get_mut(queue.0)) {
            queue.push_error(error);
        }
    }

    #[inline(always)]
    pub(crate) fn count(&mut self, counter: Option<CounterId>) {
        if let Some(counter) = counter.and_then(|counter| self.counters.get_mut(counter.0)) {
            counter.add(1);
        }
    }

    #[cold]
    fn count_error(&mut self, counter: Option<CounterId>) {
        if let Some(counter) = counter.and_then(|counter| self.counters.get_mut(counter.0)) {
            counter.add_errors(1);
        }
    }
}
