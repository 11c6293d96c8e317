// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tells the user what became of an operation: an entry on the queue, a step of the counter.
//!
//! Called by send.rs, receive.rs, multi_receive.rs, peek.rs and progress.rs for every operation that ends.

use weft_contract::{Class, RemoteId};

use crate::completion_queue::{Completion, CompletionQueue, ErrorCompletion};
use crate::counter::{Counter, CounterBindings};
use crate::error::Error;
use crate::flags;
use crate::ids::{CounterId, FiAddr, QueueId, Table};
use crate::settings::QueueBinding;
use crate::statistics::Counts;

/// Where completions go: the queues and counters of the whole domain, apart from its endpoints, so that an
/// endpoint and the queues can be changed at once.
#[derive(Debug)]
pub(crate) struct Sinks {
    pub(crate) queues: Table<CompletionQueue>,
    pub(crate) counters: Table<Counter>,
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
}
