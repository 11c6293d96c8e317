// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads completions and hands the buffers back with them.
//!
//! Called by the worker in its loop. Source: fi_cq(3).

use std::ptr;

use weft_fabric_sys::cq::{FiCqErrEntry, FiCqTaggedEntry};
use weft_fabric_sys::errno::{FI_EAGAIN, FI_EAVAIL};
use weft_fabric_sys::flags::{FI_MULTI_RECV, FI_REMOTE_CQ_DATA};

use super::node::Node;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As it should.
    Well,
    /// With libfabric's error number, positive.
    Failed(i32),
}

/// The end of an operation, or one message in a multi-receive buffer.
#[derive(Debug)]
pub struct Completion {
    /// The number that the post answered.
    pub number: u64,
    /// How it ended.
    pub ended: Ended,
    /// Bytes received, and what they are; of a send: its own bytes. `None` when no operation of this number is under way:
    /// it has ended before.
    pub bytes: Option<Vec<u8>>,
    /// Bytes received or, of a peek, of the message that was found.
    pub length_bytes: usize,
    /// The message's tag.
    pub tag: u64,
    /// Data that the sender gave along.
    pub data: Option<u64>,
    /// Who sent it, if the address vector has the name.
    pub source: Option<u64>,
    /// Where in a multi-receive buffer the bytes were.
    pub offset: usize,
    /// Whether the operation is over; false for messages in a multi-receive buffer that is not used up.
    pub is_last: bool,
}

fn nothing() -> FiCqTaggedEntry {
    FiCqTaggedEntry {
        op_context: ptr::null_mut(),
        flags: 0,
        len: 0,
        buf: ptr::null_mut(),
        data: 0,
        tag: 0,
    }
}

impl Node {
    /// Makes progress and takes up to `most` completions.
    ///
    /// # Errors
    /// What fi_cq_read answered, positive, when it is neither FI_EAGAIN nor an error entry.
    pub fn completions(&mut self, most: usize, many: &[u64]) -> Result<Vec<Completion>, i32> {
        let mut entries = vec![nothing(); most];
        let mut sources = vec![u64::MAX; most];
        // SAFETY: the queue is open, and there is room for `most` entries of its format and as many sources.
        let count = unsafe {
            let ops = &*(*self.queue).ops;
            (ops.readfrom)(
                self.queue,
                entries.as_mut_ptr().cast(),
                most,
                sources.as_mut_ptr(),
            )
        };
        if count == -(FI_EAGAIN as isize) {
            return Ok(Vec::new());
        }
        if count == -(FI_EAVAIL as isize) {
            return self.failure().map(|one| vec![one]);
        }
        let Ok(count) = usize::try_from(count) else {
            return Err(i32::try_from(-count).unwrap_or(i32::MAX));
        };
        let found = entries.into_iter().zip(sources).take(count);
        Ok(found
            .map(|(entry, source)| self.completion(&entry, source, many))
            .collect())
    }

    fn completion(&mut self, entry: &FiCqTaggedEntry, source: u64, many: &[u64]) -> Completion {
        let number = entry.op_context as u64;
        let is_many = many.contains(&number);
        let is_last = !is_many || entry.flags & FI_MULTI_RECV != 0;
        let (bytes, offset) = self.bytes(number, (is_many, is_last), entry);
        Completion {
            number,
            ended: Ended::Well,
            bytes,
            length_bytes: entry.len,
            tag: entry.tag,
            data: (entry.flags & FI_REMOTE_CQ_DATA != 0).then_some(entry.data),
            source: (source != u64::MAX).then_some(source),
            offset,
            is_last,
        }
    }

    /// The bytes of a completion, and where in a multi-receive buffer they were.
    fn bytes(
        &mut self,
        number: u64,
        (is_many, is_last): (bool, bool),
        entry: &FiCqTaggedEntry,
    ) -> (Option<Vec<u8>>, usize) {
        if !is_many {
            let held = self.held.remove(&number);
            return (held.map(|held| held.buffer), 0);
        }
        let Some(held) = self.held.get(&number) else {
            return (None, 0);
        };
        let base = held.buffer.as_ptr() as usize;
        let offset = (entry.buf as usize).wrapping_sub(base);
        // A buffer's release may come without a message.
        let part = if entry.len == 0 && entry.buf.is_null() {
            Some(Vec::new())
        } else {
            let end = offset.checked_add(entry.len);
            end.and_then(|end| held.buffer.get(offset..end))
                .map(<[u8]>::to_vec)
        };
        if is_last {
            self.held.remove(&number);
        }
        (part, offset)
    }

    fn failure(&mut self) -> Result<Completion, i32> {
        // SAFETY: an error entry is plain data, for which zero is valid.
        let mut entry: FiCqErrEntry = unsafe { std::mem::zeroed() };
        // SAFETY: the queue is open, the entry is ours.
        let count = unsafe { ((*(*self.queue).ops).readerr)(self.queue, &raw mut entry, 0) };
        if count != 1 {
            return Err(i32::try_from(-count).unwrap_or(i32::MAX));
        }
        let number = entry.op_context as u64;
        Ok(Completion {
            number,
            ended: Ended::Failed(entry.err),
            bytes: self.held.remove(&number).map(|held| held.buffer),
            length_bytes: entry.len,
            tag: entry.tag,
            data: None,
            source: None,
            offset: 0,
            is_last: true,
        })
    }
}
