// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads completions and hands the buffers back with them.
//!
//! Called by the worker in its loop. Source: fi_cq(3).

use std::ptr;

use weft_fabric_sys::cq::{FiCqErrEntry, FiCqTaggedEntry};
use weft_fabric_sys::errno::{FI_EAGAIN, FI_EAVAIL};
use weft_fabric_sys::flags::{FI_MULTI_RECV, FI_REMOTE_CQ_DATA};

use super::in_flight::InFlight;
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
    /// Bytes received, and what they are; of a send: its own bytes. `None` when no operation of
    /// this number is under way: it has ended before.
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
    /// Whether the operation is over; false for messages in a multi-receive buffer that is not used
    /// up.
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

impl Completion {
    /// Makes progress and takes up to `most` completions.
    ///
    /// # Errors
    /// What fi_cq_read answered, positive, when it is neither FI_EAGAIN nor an error entry.
    pub fn read(node: &mut Node, most: usize, many: &[u64]) -> Result<Vec<Self>, i32> {
        let mut entries = vec![nothing(); most];
        let mut sources = vec![u64::MAX; most];
        // SAFETY: the queue is open, and there is room for `most` entries of its format and as many
        // sources.
        let count = unsafe {
            let ops = &*(*node.queue).ops;
            (ops.readfrom)(
                node.queue,
                entries.as_mut_ptr().cast(),
                most,
                sources.as_mut_ptr(),
            )
        };
        if count == -(FI_EAGAIN as isize) {
            return Ok(Vec::new());
        }
        if count == -(FI_EAVAIL as isize) {
            return Self::failure(node).map(|one| vec![one]);
        }
        let Ok(count) = usize::try_from(count) else {
            return Err(i32::try_from(-count).unwrap_or(i32::MAX));
        };
        let found = entries.into_iter().zip(sources).take(count);
        Ok(found
            .map(|(entry, source)| Self::of(&mut node.in_flight, &entry, source, many))
            .collect())
    }

    fn of(in_flight: &mut InFlight, entry: &FiCqTaggedEntry, source: u64, many: &[u64]) -> Self {
        let number = entry.op_context as u64;
        let is_many = many.contains(&number);
        let is_last = !is_many || entry.flags & FI_MULTI_RECV != 0;
        let (part, offset) = match in_flight.buffer(number) {
            Some(buffer) if is_many => part_of(buffer, entry),
            _ => (None, 0),
        };
        let whole = is_last.then(|| in_flight.end(number)).flatten();
        Self {
            number,
            ended: Ended::Well,
            bytes: if is_many { part } else { whole },
            length_bytes: entry.len,
            tag: entry.tag,
            data: (entry.flags & FI_REMOTE_CQ_DATA != 0).then_some(entry.data),
            source: (source != u64::MAX).then_some(source),
            offset,
            is_last,
        }
    }

    fn failure(node: &mut Node) -> Result<Self, i32> {
        // SAFETY: an error entry is plain data, for which zero is valid.
        let mut entry: FiCqErrEntry = unsafe { std::mem::zeroed() };
        // SAFETY: the queue is open, the entry is ours.
        let count = unsafe { ((*(*node.queue).ops).readerr)(node.queue, &raw mut entry, 0) };
        if count != 1 {
            return Err(i32::try_from(-count).unwrap_or(i32::MAX));
        }
        let number = entry.op_context as u64;
        Ok(Self {
            number,
            ended: Ended::Failed(entry.err),
            bytes: node.in_flight.end(number),
            length_bytes: entry.len,
            tag: entry.tag,
            data: None,
            source: None,
            offset: 0,
            is_last: true,
        })
    }
}

/// What a message brought into a multi-receive buffer, and where.
fn part_of(buffer: &[u8], entry: &FiCqTaggedEntry) -> (Option<Vec<u8>>, usize) {
    let offset = (entry.buf as usize).wrapping_sub(buffer.as_ptr() as usize);
    // A buffer's release may come without a message.
    if entry.len == 0 && entry.buf.is_null() {
        return (Some(Vec::new()), offset);
    }
    let end = offset.checked_add(entry.len);
    let part = end.and_then(|end| buffer.get(offset..end));
    (part.map(<[u8]>::to_vec), offset)
}
