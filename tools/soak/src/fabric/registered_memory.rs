// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The registered memory of an endpoint, which others read and write.
//!
//! Owned by the node, which registers it. Source: fi_mr(3).

use std::ptr;

/// The key under which each endpoint registers its memory. Chosen.
pub const MEMORY_KEY: u64 = 7;

/// Memory that others read and write while this process runs; it never touches it itself.
pub(super) struct RegisteredMemory {
    /// Words, so that remote atomics find them aligned.
    words: *mut [u64],
}

impl RegisteredMemory {
    pub(super) fn new(length_bytes: usize) -> Self {
        let words = vec![0; length_bytes.div_ceil(8)].into_boxed_slice();
        Self {
            words: Box::into_raw(words),
        }
    }

    pub(super) fn base(&self) -> *mut u8 {
        self.words.cast()
    }

    pub(super) fn length_bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// Keeps the memory for good.
    pub(super) fn forget(&mut self) {
        self.words = ptr::slice_from_raw_parts_mut(ptr::null_mut(), 0);
    }
}

impl Drop for RegisteredMemory {
    fn drop(&mut self) {
        if !self.words.is_null() {
            // SAFETY: it came from a box, and the region over it is closed (else it was forgotten).
            drop(unsafe { Box::from_raw(self.words) });
        }
    }
}
