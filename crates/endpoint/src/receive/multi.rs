// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Multi-receives: one buffer that takes message after message until little room is left
//! (FI_MULTI_RECV).
//!
//! Opened and filled by receiving.rs, ended by delivery.rs. Specified in fi_msg(3): messages are
//! packed one behind the other; the buffer is released when less than FI_OPT_MIN_MULTI_RECV bytes
//! are left, and the completion that releases it carries FI_MULTI_RECV and is always written.
//! Several messages may be on their way into one buffer at once, so the one that ends last releases
//! it.

use slab::Slab;
use weft_memory::UserBuffer;

use crate::completion::receive::ReceiveEnd;
use crate::error::Error;
use crate::settings::DEFAULT_MIN_MULTI_RECEIVE_BYTES;

/// A multi-receive of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MultiId(u32);

/// Whether a multi-receive takes more messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    /// No more; released with the last message under way.
    Full,
    /// No more; released by an error after the last message under way.
    Failed(Error),
}

/// A multi-receive.
struct MultiReceive {
    buffer: UserBuffer,
    used_bytes: usize,
    context: usize,
    flags: u64,
    /// Messages matched whose payload is not here yet.
    filling_count: u32,
    state: State,
}

/// Room for one message in a multi-receive.
pub(crate) struct Part {
    pub(crate) end: ReceiveEnd,
    pub(crate) offset_bytes: usize,
    /// Whether the multi-receive takes no more, and must be taken out of matching.
    pub(crate) full: bool,
}

/// What ends together with a message.
pub(crate) enum Release {
    /// Nothing else.
    Not,
    /// The multi-receive.
    Now,
    /// The multi-receive, with an error after the message.
    Failed(Error),
}

impl MultiReceive {
    /// The address of the byte at `offset_bytes`.
    fn address(&self, offset_bytes: usize) -> usize {
        if self.buffer.is_contiguous() {
            return self.buffer.address() + offset_bytes;
        }
        let mut found = self.buffer.address();
        self.buffer
            .for_each_piece(offset_bytes, 1, |address, _| found = address);
        found
    }
}

/// The multi-receives of one endpoint.
pub(crate) struct MultiReceives {
    open: Slab<MultiReceive>,
    /// Room below which one is released.
    pub(crate) minimum_bytes: usize,
}

impl MultiReceives {
    /// None is open.
    pub(crate) fn new() -> Self {
        Self {
            open: Slab::new(),
            minimum_bytes: DEFAULT_MIN_MULTI_RECEIVE_BYTES,
        }
    }

    /// Opens a multi-receive; it is not posted yet.
    pub(crate) fn open(&mut self, buffer: UserBuffer, context: usize, flags: u64) -> MultiId {
        let state = State::Open;
        let number = self.open.insert(MultiReceive {
            buffer,
            used_bytes: 0,
            context,
            flags,
            filling_count: 0,
            state,
        });
        MultiId(number as u32)
    }

    /// Takes room for a message of `length_bytes` in an open multi-receive: all the room there is,
    /// if that is less. [`Self::end_part`] must follow.
    pub(crate) fn begin_part(&mut self, multi: MultiId, length_bytes: u64) -> Option<Part> {
        let minimum_bytes = self.minimum_bytes.max(1);
        let multi = self.open.get_mut(multi.0 as usize)?;
        let offset_bytes = multi.used_bytes;
        let room_bytes = multi.buffer.length_bytes() - offset_bytes;
        let capacity_bytes =
            usize::try_from(length_bytes).map_or(room_bytes, |length| length.min(room_bytes));
        multi.used_bytes += capacity_bytes;
        multi.filling_count += 1;
        let full = room_bytes - capacity_bytes < minimum_bytes;
        if full {
            multi.state = State::Full;
        }
        let (context, flags, address) = (multi.context, multi.flags, multi.address(offset_bytes));
        let end = ReceiveEnd {
            context,
            flags,
            capacity_bytes,
            address,
            release: false,
        };
        Some(Part {
            end,
            offset_bytes,
            full,
        })
    }

    /// The memory of a part.
    pub(crate) fn part_buffer(&mut self, multi: MultiId, part: &Part) -> UserBuffer {
        match self.open.get_mut(multi.0 as usize) {
            Some(multi) => multi
                .buffer
                .part(part.offset_bytes, part.end.capacity_bytes),
            None => UserBuffer::empty(),
        }
    }

    /// The whole buffer.
    pub(crate) fn buffer(&mut self, multi: MultiId) -> Option<&UserBuffer> {
        Some(&self.open.get_mut(multi.0 as usize)?.buffer)
    }

    /// Ends a message in a multi-receive, and the multi-receive with it if it was the last.
    pub(crate) fn end_part(&mut self, number: MultiId) -> Release {
        let Some(multi) = self.open.get_mut(number.0 as usize) else {
            return Release::Not;
        };
        multi.filling_count -= 1;
        let release = match multi.state {
            _ if multi.filling_count > 0 => return Release::Not,
            State::Open => return Release::Not,
            State::Full => Release::Now,
            State::Failed(error) => Release::Failed(error),
        };
        self.open.try_remove(number.0 as usize);
        release
    }

    /// Ends a multi-receive that was taken out of matching; false if messages are still under way
    /// into it.
    pub(crate) fn fail(&mut self, number: MultiId, error: Error) -> bool {
        match self.open.get_mut(number.0 as usize) {
            Some(multi) if multi.filling_count > 0 => {
                multi.state = State::Failed(error);
                false
            }
            _ => self.open.try_remove(number.0 as usize).is_some(),
        }
    }
}
