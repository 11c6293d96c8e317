// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sends that found no room at their route, by remote, in the order in which they were posted. One
//! queue above every route, so that a send never waits for its remote (MPI-4.1 section 3.7:
//! nonblocking calls are local).
//!
//! Filled by sending.rs when a transport answers that it is busy, emptied by it whenever there may
//! be room again.

use std::collections::VecDeque;

use weft_contract::{RemoteId, SendOp};
use weft_memory::{BytesViewMut, Scratch, UserBuffer};

use crate::completion::transmit::Ending;
use crate::settings::{DEFAULT_INJECT_LIMIT_BYTES, SEND_DEPTH};

/// Payload up to here is copied, so that its buffer is free at once. Chosen: what routes take as
/// eager messages.
pub(crate) const COPY_LIMIT_BYTES: usize = DEFAULT_INJECT_LIMIT_BYTES;

/// Memory of all queues of an endpoint, copies and entries.
const LIMIT_BYTES: usize = weft_facts::limit::WAITING_BYTES;

/// The bytes of a queued send.
#[derive(Debug)]
pub(crate) enum Payload {
    /// A copy, at most [`COPY_LIMIT_BYTES`], which its route copies once more.
    Copied(Box<[u8]>),
    /// A longer one, from which it leaves: so many bytes.
    Kept(Scratch, usize),
    /// Still the user's, until the completion.
    Lent(UserBuffer),
}

impl Payload {
    /// A copy of what lies in `source` now: a message's that is injected, or shorter.
    pub(crate) fn copy_of(source: &UserBuffer) -> Self {
        if source.length_bytes() > COPY_LIMIT_BYTES {
            let scratch = Scratch::take_for(source.length_bytes());
            let length = scratch.copy_in(0, source);
            return Self::Kept(scratch, length);
        }
        let mut bytes = vec![0; source.length_bytes()].into_boxed_slice();
        source.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
        Self::Copied(bytes)
    }

    fn held_bytes(&self) -> usize {
        match self {
            Self::Copied(bytes) => bytes.len(),
            Self::Kept(_, length_bytes) => *length_bytes,
            Self::Lent(_) => 0,
        }
    }
}

/// A send that waits.
#[derive(Debug)]
pub(crate) struct Queued {
    /// As it will be posted.
    pub(crate) op: SendOp,
    pub(crate) payload: Payload,
    /// [`Ending::Told`] if it was told when its payload was copied, or if nobody waits.
    pub(crate) ending: Ending,
    pub(crate) context: usize,
}

impl Queued {
    fn cost_bytes(&self) -> usize {
        size_of::<Self>() + self.payload.held_bytes()
    }
}

/// The queues of one endpoint.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// By remote.
    queues: Vec<VecDeque<Queued>>,
    /// Remotes with queued sends, each once.
    active: Vec<RemoteId>,
    held_bytes: usize,
}

impl Backlog {
    /// Whether nothing waits. Fast path.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// Whether sends to `remote` wait.
    pub(crate) fn holds(&self, remote: RemoteId) -> bool {
        let queue = self.queues.get(remote.index());
        queue.is_some_and(|queue| !queue.is_empty())
    }

    /// Whether the user was told of one that waits there that it is complete.
    pub(crate) fn has_told(&self, remote: RemoteId) -> bool {
        let queue = self.queues.get(remote.index());
        queue.is_some_and(|queue| queue.iter().any(|queued| queued.ending == Ending::Told))
    }

    /// How many sends wait.
    pub(crate) fn count(&self) -> usize {
        let lengths = self
            .active
            .iter()
            .map(|remote| self.queues[remote.index()].len());
        lengths.sum()
    }

    /// Remotes with queued sends.
    pub(crate) fn active(&self) -> &[RemoteId] {
        &self.active
    }

    /// Whether one more send of so many bytes to be copied may wait.
    pub(crate) fn has_room(&self, remote: RemoteId, copied_bytes: usize) -> bool {
        let waiting = self.queues.get(remote.index()).map_or(0, VecDeque::len);
        let cost_bytes = size_of::<Queued>() + copied_bytes;
        waiting < SEND_DEPTH && self.held_bytes + cost_bytes <= LIMIT_BYTES
    }

    /// Takes a send; the caller has asked whether there is room.
    pub(crate) fn push(&mut self, queued: Queued) {
        let remote = queued.op.remote;
        if self.queues.len() <= remote.index() {
            self.queues.resize_with(remote.index() + 1, VecDeque::new);
        }
        self.held_bytes += queued.cost_bytes();
        let queue = &mut self.queues[remote.index()];
        if queue.is_empty() {
            self.active.push(remote);
        }
        queue.push_back(queued);
    }

    /// The send to `remote` that waits longest.
    pub(crate) fn first(&self, remote: RemoteId) -> Option<&Queued> {
        self.queues.get(remote.index())?.front()
    }

    /// Takes that one out.
    pub(crate) fn pop(&mut self, remote: RemoteId) -> Option<Queued> {
        let queued = self.queues.get_mut(remote.index())?.pop_front()?;
        self.held_bytes -= queued.cost_bytes();
        self.settle(remote);
        Some(queued)
    }

    /// Takes out the earliest send that ends with an entry for `context`.
    pub(crate) fn cancel(&mut self, context: usize) -> Option<Queued> {
        let is_it = |queued: &Queued| queued.ending != Ending::Told && queued.context == context;
        for index in 0..self.active.len() {
            let remote = self.active[index];
            let queue = &mut self.queues[remote.index()];
            if let Some(place) = queue.iter().position(is_it)
                && let Some(queued) = queue.remove(place)
            {
                self.held_bytes -= queued.cost_bytes();
                self.settle(remote);
                return Some(queued);
            }
        }
        None
    }

    /// Takes out all that waits for `remote`.
    pub(crate) fn clear(&mut self, remote: RemoteId) -> VecDeque<Queued> {
        let queue = self.queues.get_mut(remote.index());
        let cleared = queue.map(std::mem::take).unwrap_or_default();
        self.held_bytes -= cleared.iter().map(Queued::cost_bytes).sum::<usize>();
        self.active.retain(|&other| other != remote);
        cleared
    }

    /// Gives memory back once a queue is empty.
    fn settle(&mut self, remote: RemoteId) {
        let queue = &mut self.queues[remote.index()];
        if queue.is_empty() {
            *queue = VecDeque::new();
            self.active.retain(|&other| other != remote);
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_contract::{Class, CompletionLevel, SendToken};

    use super::*;

    fn queued(remote: u32, payload: Payload, context: Option<usize>) -> Queued {
        let op = SendOp {
            remote: RemoteId(remote),
            class: Class::Tagged,
            tag: 0,
            cq_data: None,
            level: CompletionLevel::Inject,
            token: SendToken(0),
            inject: true,
        };
        Queued {
            op,
            payload,
            ending: context.map_or(Ending::Told, |_| Ending::Entry(0)),
            context: context.unwrap_or(0),
        }
    }

    fn copied(length_bytes: usize) -> Payload {
        Payload::copy_of(&UserBuffer::leaked(&[length_bytes]))
    }

    #[test]
    fn the_promised_depth_of_the_longest_copies_fits_and_all_its_memory_is_given_back() {
        let mut backlog = Backlog::default();
        let remote = RemoteId(3);
        for number in 0..SEND_DEPTH {
            assert!(backlog.has_room(remote, COPY_LIMIT_BYTES), "send {number}");
            backlog.push(queued(3, copied(COPY_LIMIT_BYTES), None));
        }
        assert!(!backlog.has_room(remote, 0), "one more than the depth");
        assert!(backlog.has_room(RemoteId(4), COPY_LIMIT_BYTES));
        let mut to_others = 0;
        while backlog.has_room(RemoteId(4), COPY_LIMIT_BYTES) {
            backlog.push(queued(4, copied(COPY_LIMIT_BYTES), None));
            to_others += 1;
        }
        assert!(to_others < SEND_DEPTH, "memory is bounded");
        assert!(backlog.held_bytes <= LIMIT_BYTES);
        assert_eq!(backlog.count(), SEND_DEPTH + to_others);
        while backlog.pop(remote).is_some() {}
        assert_eq!(backlog.clear(RemoteId(4)).len(), to_others);
        assert_eq!(backlog.held_bytes, 0);
        assert!(backlog.is_empty() && backlog.queues.iter().all(|queue| queue.capacity() == 0));
    }

    #[test]
    fn what_is_canceled_is_the_earliest_of_its_context_and_nothing_that_was_told() {
        let mut backlog = Backlog::default();
        backlog.push(queued(1, copied(8), None));
        for length in [16, 24] {
            backlog.push(queued(1, copied(length), Some(7)));
        }
        let first = backlog.cancel(7).expect("it waits");
        assert_eq!(first.payload.held_bytes(), 16);
        assert!(backlog.cancel(8).is_none());
        let left: Vec<usize> = std::iter::from_fn(|| backlog.pop(RemoteId(1)))
            .map(|queued| queued.payload.held_bytes())
            .collect();
        assert_eq!(left, [8, 24]);
        assert!(backlog.is_empty());
    }
}
