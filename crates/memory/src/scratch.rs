// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory of our own to build messages in. Used by the endpoint for the requests and answers of
//! one-sided operations.
//!
//! A transport may keep a [`UserBuffer`] longer than whoever made it, so this memory is never
//! freed, only handed on: what is given back waits in a list of the process for the next taker.

use std::sync::{Mutex, PoisonError};

use crate::{BytesView, UserBuffer};

/// Bytes of a short one. Chosen: two pages and the longest head of a request.
pub const SCRATCH_BYTES: usize = 8192 + 256;
/// Bytes of a long one. Chosen: the longest inject.
pub const LONG_SCRATCH_BYTES: usize = 64 * 1024;

type FreeList = Mutex<Vec<UserBuffer>>;
static FREE: FreeList = Mutex::new(Vec::new());
static FREE_LONG: FreeList = Mutex::new(Vec::new());

/// The list that holds those of one length.
fn list_of(length_bytes: usize) -> &'static FreeList {
    match length_bytes {
        ..=SCRATCH_BYTES => &FREE,
        _ => &FREE_LONG,
    }
}

/// A stretch of [`SCRATCH_BYTES`] or [`LONG_SCRATCH_BYTES`] bytes.
#[derive(Debug)]
pub struct Scratch(UserBuffer);

impl Scratch {
    /// Takes a short one; allocates only if none was given back.
    pub fn take() -> Self {
        Self::take_of(SCRATCH_BYTES)
    }

    /// Takes one that holds so many bytes, [`LONG_SCRATCH_BYTES`] at most; allocates only if none
    /// was given back.
    pub fn take_for(length_bytes: usize) -> Self {
        match length_bytes {
            ..=SCRATCH_BYTES => Self::take(),
            _ => Self::take_of(LONG_SCRATCH_BYTES),
        }
    }

    fn take_of(length_bytes: usize) -> Self {
        let free = list_of(length_bytes).lock();
        let free = free.unwrap_or_else(PoisonError::into_inner).pop();
        Self(free.unwrap_or_else(|| UserBuffer::leaked(&[length_bytes])))
    }

    /// Writes `bytes` at `offset_bytes`, as far as there is room. Fast path.
    #[inline(always)]
    pub fn write(&self, offset_bytes: usize, bytes: &[u8]) -> usize {
        self.0.fill(offset_bytes, BytesView::from_slice(bytes))
    }

    /// Copies `source` in at `offset_bytes`, as far as there is room; answers how many bytes that
    /// was. Fast path.
    #[inline(always)]
    pub fn copy_in(&self, offset_bytes: usize, source: &UserBuffer) -> usize {
        source.copy_to(&self.0, offset_bytes)
    }

    /// The first `length_bytes` bytes as a message's payload. Fast path.
    #[inline(always)]
    pub fn payload(&self, length_bytes: usize) -> UserBuffer {
        self.0.part(0, length_bytes)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let memory = std::mem::replace(&mut self.0, UserBuffer::empty());
        list_of(memory.length_bytes())
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BytesViewMut;

    #[test]
    fn what_is_written_is_what_is_sent_and_no_more_than_fits() {
        let scratch = Scratch::take();
        assert_eq!(scratch.write(0, &[1, 2, 3]), 3);
        let tail = UserBuffer::leaked(&[2, 2]);
        tail.fill(0, BytesView::from_slice(&[4, 5, 6, 7]));
        assert_eq!(scratch.copy_in(3, &tail), 4);
        let payload = scratch.payload(7);
        let mut bytes = [0; 7];
        payload.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(scratch.write(SCRATCH_BYTES - 1, &[1, 2]), 1);
        assert_eq!(
            scratch.copy_in(0, &UserBuffer::leaked(&[2 * SCRATCH_BYTES])),
            SCRATCH_BYTES
        );
        for (length, bytes) in [(SCRATCH_BYTES, 2), (LONG_SCRATCH_BYTES, LONG_SCRATCH_BYTES)] {
            let source = UserBuffer::leaked(&[bytes]);
            assert_eq!(Scratch::take_for(length).copy_in(0, &source), bytes);
        }
    }
}
