// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A completion queue: a ring of completions that grows and never drops any. Errors are beside it,
//! each with its place in the order.
//!
//! Written where operations end; read by the calls on queues. fi_cq(3).

use std::collections::VecDeque;

use weft_memory::{CqBuffer, ENTRY_WORDS};

use super::alarm::Alarm;
use crate::error::Error;
use crate::ids::{EndpointId, FiAddr};
use crate::settings::QueueSettings;

/// Entries that fit before the ring grows, if the user asked for no size. Chosen.
const DEFAULT_SIZE: usize = 256;
/// Most entries for which room is reserved; for a larger size the ring grows later. Chosen.
const LARGEST_RESERVED: usize = 1 << 16;

/// An operation is complete.
///
/// No two fields are neighbours here that are neighbours in C's entries: the compiler then copies
/// them one by one, as they were written. If it copied two at a time, it would read them in another
/// width than they were written, and the processor would stall.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Completion {
    /// The context given with the operation.
    pub context: usize,
    /// Length of the message received; 0 for sends.
    pub length_bytes: usize,
    /// The sender's data, if `flags` has `REMOTE_CQ_DATA`; else 0.
    pub cq_data: u64,
    /// The kind of operation, and what the entry contains: flags of [`crate::flags`].
    pub flags: u64,
    /// Address where the message begins, for multi-receives; 0 otherwise.
    pub address: usize,
    /// The tag of a tagged message received; else 0.
    pub tag: u64,
    /// Who sent the message received, if the endpoint reports sources and the address is known.
    pub source: FiAddr,
}

impl Completion {
    /// The entry in C's order.
    #[inline(always)]
    fn words(&self) -> [u64; ENTRY_WORDS] {
        [
            self.context as u64,
            self.flags,
            self.length_bytes as u64,
            self.address as u64,
            self.cq_data,
            self.tag,
        ]
    }

    /// An entry with only its context and flags.
    pub(super) const fn bare(context: usize, flags: u64) -> Self {
        Self {
            context,
            flags,
            length_bytes: 0,
            address: 0,
            cq_data: 0,
            tag: 0,
            source: FiAddr::UNSPEC,
        }
    }
}

/// An operation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorCompletion {
    /// The entry as for a success; `length_bytes` counts the bytes that were delivered.
    pub completion: Completion,
    /// Bytes of the message that did not fit, for [`Error::Truncated`]; else 0.
    pub overflow_bytes: usize,
    /// The reason.
    pub error: Error,
}

impl ErrorCompletion {
    /// An error of a message that was not cut off.
    pub(super) fn whole(completion: Completion, error: Error) -> Self {
        Self {
            completion,
            overflow_bytes: 0,
            error,
        }
    }
}

/// Completions in order, in a ring. Entries are written and read in their places: as in
/// `VecDeque`, but without the copies of an entry that its `Option`s cost on the fast path.
#[derive(Debug)]
struct Ring {
    /// The places; their number is a power of two.
    places: Box<[Completion]>,
    pushed: u64,
    popped: u64,
}

impl Ring {
    fn new(size: usize) -> Self {
        Self {
            places: vec![Completion::bare(0, 0); size.next_power_of_two()].into(),
            pushed: 0,
            popped: 0,
        }
    }

    #[inline(always)]
    fn count(&self) -> u64 {
        self.pushed - self.popped
    }

    #[inline(always)]
    fn place(&self, number: u64) -> usize {
        number as usize & (self.places.len() - 1)
    }

    #[inline(always)]
    fn push(&mut self, completion: Completion) {
        if self.count() == self.places.len() as u64 {
            self.grow();
        }
        let place = self.place(self.pushed);
        self.places[place] = completion;
        self.pushed += 1;
    }

    /// The oldest entry; the ring must not be empty.
    #[inline(always)]
    fn pop(&mut self) -> &Completion {
        let place = self.place(self.popped);
        self.popped += 1;
        &self.places[place]
    }

    #[cold]
    fn grow(&mut self) {
        let mut wider = Self::new(2 * self.places.len());
        for number in self.popped..self.pushed {
            let place = wider.place(number);
            wider.places[place] = self.places[self.place(number)];
        }
        self.places = wider.places;
    }
}

/// A completion queue.
#[derive(Debug)]
pub(crate) struct CompletionQueue {
    ready: Ring,
    /// The array of the read that makes progress now. Completions that this progress brings go
    /// there, and not into the ring. It has room only while the ring is empty.
    buffer: CqBuffer,
    /// Errors, each with the place of the success that follows it.
    errors: VecDeque<(u64, ErrorCompletion)>,
    /// The place of the first error, or `u64::MAX`.
    first_error: u64,
    /// Wakes threads that sleep on the queue.
    pub(crate) alarm: Alarm,
    /// Endpoints for which a read of the empty queue makes progress.
    pub(crate) bound: Vec<EndpointId>,
}

impl CompletionQueue {
    pub(crate) fn new(settings: QueueSettings) -> Self {
        let size = if settings.size_hint == 0 {
            DEFAULT_SIZE
        } else {
            settings.size_hint
        };
        Self {
            ready: Ring::new(size.min(LARGEST_RESERVED)),
            buffer: CqBuffer::closed(),
            errors: VecDeque::new(),
            first_error: u64::MAX,
            alarm: Alarm::default(),
            bound: Vec::new(),
        }
    }

    /// Fast path.
    #[inline(always)]
    pub(crate) fn push(&mut self, completion: Completion) {
        if self.buffer.has_room() {
            self.buffer.put(completion.words(), completion.source.0);
            return;
        }
        self.ready.push(completion);
        self.alarm.sound();
    }

    /// From now on completions go into an application's array; the queue must be empty. Fast path.
    #[inline(always)]
    pub(crate) fn hold_out(&mut self, buffer: impl Fn() -> CqBuffer) {
        debug_assert!(self.is_empty(), "entries keep their order");
        // Made in its place: if it were copied there in other widths than it was written, the
        // processor would stall.
        self.buffer = buffer();
    }

    /// From now on completions go into the ring again; returns how many went into the array. Fast
    /// path.
    #[inline(always)]
    pub(crate) fn take_back(&mut self) -> usize {
        self.buffer.close();
        self.buffer.taken()
    }

    /// Reads completions into an application's array, up to the next error.
    ///
    /// # Errors
    /// As [`CompletionQueue::read`].
    #[inline(always)]
    pub(crate) fn read_into(&mut self, max: usize, mut buffer: CqBuffer) -> Result<usize, Error> {
        self.read(max, |entry| buffer.put(entry.words(), entry.source.0))
    }

    #[cold]
    pub(crate) fn push_error(&mut self, error: ErrorCompletion) {
        // The entries that follow it must be read after it.
        self.buffer.close();
        let place = self.ready.pushed;
        self.errors.push_back((place, error));
        self.first_error = self.errors[0].0;
        self.alarm.sound();
    }

    /// Whether there is nothing to read, neither success nor error. Fast path.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.count() == 0 && self.first_error == u64::MAX
    }

    /// Hands up to `max` successes to `take`, up to the next error.
    ///
    /// # Errors
    /// [`Error::Again`] if the queue is empty, [`Error::ErrorAvailable`] if its next entry is an
    /// error.
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        max: usize,
        mut take: impl FnMut(&Completion),
    ) -> Result<usize, Error> {
        let mut count = self.ready.count();
        if count == 0 && self.first_error == u64::MAX {
            return Err(Error::Again);
        }
        if self.first_error != u64::MAX {
            count = count.min(self.before_error());
            if count == 0 {
                return Err(Error::ErrorAvailable);
            }
        }
        let count = count.min(max as u64);
        for _ in 0..count {
            take(self.ready.pop());
        }
        Ok(count as usize)
    }

    /// Successes before the first error.
    #[cold]
    fn before_error(&self) -> u64 {
        self.first_error - self.ready.popped
    }

    /// Takes the next entry, if it is an error.
    #[cold]
    pub(crate) fn read_error(&mut self) -> Option<ErrorCompletion> {
        if self.first_error != self.ready.popped {
            return None;
        }
        let (_, error) = self.errors.pop_front()?;
        self.first_error = self.errors.front().map_or(u64::MAX, |(place, _)| *place);
        Some(error)
    }
}

#[cfg(test)]
mod tests {
    use weft_memory::{BytesViewMut, UserBuffer};

    use super::*;

    /// An array for entries of one word.
    struct Array(UserBuffer);

    impl Array {
        fn new(room: usize) -> Self {
            Self(UserBuffer::leaked(&[8 * room]))
        }

        fn buffer(&self) -> CqBuffer {
            CqBuffer::in_buffer(&self.0, 1).expect("a fresh buffer is aligned")
        }

        /// The contexts in it.
        fn contexts(&self, count: usize) -> Vec<usize> {
            let mut bytes = vec![0; 8 * count];
            self.0.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
            let words = bytes.chunks_exact(8);
            words
                .map(|word| usize::from_le_bytes(word.try_into().expect("eight bytes")))
                .collect()
        }
    }

    #[test]
    fn what_comes_during_a_read_goes_to_its_array_and_what_finds_no_room_follows() {
        let mut queue = CompletionQueue::new(QueueSettings { size_hint: 1 });
        let (first, second) = (Array::new(2), Array::new(9));
        queue.hold_out(|| first.buffer());
        (1..=4).for_each(|context| queue.push(numbered(context)));
        assert_eq!((queue.take_back(), first.contexts(2)), (2, vec![1, 2]));
        queue.push(numbered(5));
        assert_eq!(queue.read_into(9, second.buffer()), Ok(3));
        assert_eq!(second.contexts(3), [3, 4, 5]);
        assert!(queue.is_empty());
    }

    #[test]
    fn an_error_during_a_read_keeps_its_place_between_what_came_before_and_after() {
        let mut queue = CompletionQueue::new(QueueSettings { size_hint: 1 });
        let array = Array::new(9);
        queue.hold_out(|| array.buffer());
        queue.push(numbered(1));
        queue.push_error(failed(2));
        queue.push(numbered(3));
        assert_eq!((queue.take_back(), array.contexts(1)), (1, vec![1]));
        assert_eq!(
            queue.read_into(9, array.buffer()),
            Err(Error::ErrorAvailable)
        );
        assert_eq!(queue.read_error(), Some(failed(2)));
        assert_eq!(queue.read_into(9, array.buffer()), Ok(1));
        assert_eq!(array.contexts(1), [3]);
    }

    fn numbered(context: usize) -> Completion {
        Completion::bare(context, 0)
    }

    fn failed(context: usize) -> ErrorCompletion {
        ErrorCompletion::whole(numbered(context), Error::Canceled)
    }

    #[test]
    fn errors_keep_their_place_between_successes() {
        let mut queue = CompletionQueue::new(QueueSettings { size_hint: 1 });
        queue.push(numbered(1));
        queue.push(numbered(2));
        queue.push_error(failed(3));
        queue.push_error(failed(4));
        queue.push(numbered(5));
        let mut seen = Vec::new();
        assert_eq!(queue.read_error(), None, "two successes come first");
        assert_eq!(queue.read(9, |entry| seen.push(entry.context)), Ok(2));
        assert_eq!(
            queue.read(9, |entry| seen.push(entry.context)),
            Err(Error::ErrorAvailable)
        );
        assert_eq!(queue.read_error(), Some(failed(3)));
        assert_eq!(queue.read(9, |_| ()), Err(Error::ErrorAvailable));
        assert_eq!(queue.read_error(), Some(failed(4)));
        assert_eq!(queue.read(9, |entry| seen.push(entry.context)), Ok(1));
        assert_eq!(queue.read(9, |_| ()), Err(Error::Again));
        assert_eq!(seen, [1, 2, 5]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_queue_grows_and_drops_nothing() {
        let mut queue = CompletionQueue::new(QueueSettings { size_hint: 2 });
        (0..10_000).for_each(|context| queue.push(numbered(context)));
        let mut next = 0;
        while queue
            .read(7, |entry| {
                assert_eq!(entry.context, next);
                next += 1;
            })
            .is_ok()
        {}
        assert_eq!(next, 10_000);
    }
}
