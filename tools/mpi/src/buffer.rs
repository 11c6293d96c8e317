// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Page-aligned memory that messages in flight may use.
//!
//! Made by programs, lent to requests. Its bytes are reachable only through `&mut`, and messages in
//! flight hold a shared borrow. So no code can read what MPI is writing, and two Rust references
//! never conflict.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Alignment of every buffer in bytes: one page, as the OSU benchmarks do (chosen).
pub const ALIGNMENT_BYTES: usize = 4096;

/// A fixed-size, page-aligned block of bytes.
pub struct Buffer {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: it owns its memory and has no tie to a thread; a message in flight holds a borrow, which
// keeps it where it is.
unsafe impl Send for Buffer {}

impl Buffer {
    /// A zeroed buffer of `length` bytes. Allocates; setup. Its pages have no memory behind them
    /// until written.
    ///
    /// # Panics
    /// When `length` exceeds the address space (above 2^63 - 4096).
    pub fn new(length: usize) -> Self {
        let layout = Self::layout(length);
        // SAFETY: the layout's size is at least one page, never zero.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        Self { start, length }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bytes, while no message in flight uses them.
    #[inline]
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: allocated for `length` bytes and initialised; `&mut self` excludes messages in
        // flight and other slices.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    #[inline]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn layout(length: usize) -> Layout {
        Layout::from_size_align(length.max(ALIGNMENT_BYTES), ALIGNMENT_BYTES)
            .expect("a buffer fits the address space")
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout; no scope can outlive its borrow of the
        // buffer.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.length)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_is_page_aligned_zeroed_and_writable_to_its_end() {
        for length in [0, 1, 4096, 100_000] {
            let mut buffer = Buffer::new(length);
            assert_eq!(buffer.bytes().as_ptr().addr() % ALIGNMENT_BYTES, 0);
            assert_eq!(buffer.bytes().len(), length);
            assert!(buffer.bytes().iter().all(|byte| *byte == 0));
            buffer.bytes().fill(7);
            assert!(buffer.bytes().iter().all(|byte| *byte == 7));
        }
    }
}
