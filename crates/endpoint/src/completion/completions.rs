// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The completion queues and counters of a domain, apart from its endpoints, so that an endpoint
//! and the queues can be changed at once.
//!
//! Written through `transmit` and `receive`; read by the calls on queues and counters.

use weft_contract::Class;

use super::counter::Counter;
use super::queue::{Completion, CompletionQueue, ErrorCompletion};
use crate::error::Error;
use crate::flags;
use crate::ids::{CounterId, EndpointId, QueueId, Table};

/// The queues and counters.
#[derive(Debug)]
pub(crate) struct Completions {
    pub(crate) queues: Table<CompletionQueue>,
    pub(crate) counters: Table<Counter>,
}

impl Completions {
    /// None is open.
    pub(crate) const fn new() -> Self {
        Self {
            queues: Table::new(),
            counters: Table::new(),
        }
    }

    /// Fast path.
    #[inline(always)]
    pub(crate) fn queue(&mut self, queue: QueueId) -> Result<&mut CompletionQueue, Error> {
        self.queues.get_mut(queue.0).ok_or(Error::NoSuch)
    }

    /// Fast path.
    #[inline(always)]
    pub(crate) fn counter(&mut self, counter: CounterId) -> Result<&mut Counter, Error> {
        self.counters.get_mut(counter.0).ok_or(Error::NoSuch)
    }

    /// Has reads of queues and counters drive an endpoint no longer. Setup.
    pub(crate) fn unbind(&mut self, endpoint: EndpointId) {
        let queues = self.queues.iter_mut().map(|queue| &mut queue.bound);
        let counters = self.counters.iter_mut().map(|counter| &mut counter.bound);
        queues
            .chain(counters)
            .for_each(|bound| bound.retain(|&other| other != endpoint));
    }

    #[inline(always)]
    pub(super) fn push(&mut self, queue: QueueId, completion: Completion) {
        if let Some(queue) = self.queues.get_mut(queue.0) {
            queue.push(completion);
        }
    }

    #[cold]
    pub(super) fn push_error(&mut self, queue: QueueId, error: ErrorCompletion) {
        if let Some(queue) = self.queues.get_mut(queue.0) {
            queue.push_error(error);
        }
    }

    /// One operation succeeded. Fast path.
    #[inline(always)]
    pub(crate) fn count(&mut self, counter: Option<CounterId>) {
        if let Some(counter) = counter.and_then(|counter| self.counters.get_mut(counter.0)) {
            counter.add(1);
        }
    }

    #[cold]
    pub(super) fn count_error(&mut self, counter: Option<CounterId>) {
        if let Some(counter) = counter.and_then(|counter| self.counters.get_mut(counter.0)) {
            counter.add_errors(1);
        }
    }
}

/// The queue of one direction of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundQueue {
    /// Names no queue while none is bound: so an entry costs one look at the table and no question.
    pub(super) queue: QueueId,
    selective: bool,
}

/// What no queue is called. Chosen: no table grows so far.
const NO_QUEUE: QueueId = QueueId(u32::MAX);

impl BoundQueue {
    /// Before a queue is bound.
    pub(crate) const NONE: Self = Self {
        queue: NO_QUEUE,
        selective: false,
    };

    pub(crate) fn new(queue: QueueId, selective: bool) -> Self {
        Self { queue, selective }
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.queue != NO_QUEUE
    }

    /// Whether an operation with these flags gets an entry when it succeeds.
    #[inline(always)]
    pub(super) fn wants_entry(&self, flags: u64) -> bool {
        !self.selective || flags & flags::COMPLETION != 0
    }
}

/// What a one-sided operation does to memory, as completions and counters tell it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AccessKind {
    Read,
    Write,
    AtomicFetch,
    AtomicWrite,
}

impl AccessKind {
    pub(super) fn flags(self) -> u64 {
        match self {
            Self::Read => flags::RMA | flags::READ,
            Self::Write => flags::RMA | flags::WRITE,
            Self::AtomicFetch => flags::ATOMIC | flags::READ,
            Self::AtomicWrite => flags::ATOMIC | flags::WRITE,
        }
    }

    /// Whether it counts as a read.
    pub(super) fn reads(self) -> bool {
        matches!(self, Self::Read | Self::AtomicFetch)
    }
}

/// The flag that tells messages with and without a tag apart.
#[inline(always)]
pub(super) fn class_flag(class: Class) -> u64 {
    match class {
        Class::Message | Class::Service => flags::MSG,
        Class::Tagged => flags::TAGGED,
    }
}
