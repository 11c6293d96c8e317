// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The window of an endpoint, and operations on those of others: write, read, fetch-and-add.
//!
//! Called by the worker. Source: fi_rma(3), fi_atomic(3).

use std::ffi::c_void;
use std::ptr;

use super::node::{Node, object};
use super::post::Posted;

/// The key under which each endpoint registers its window. Chosen.
pub const WINDOW_KEY: u64 = 7;

/// `FI_UINT64` and `FI_SUM` of fi_atomic.h.
const FI_UINT64: u32 = 7;
const FI_SUM: u32 = 2;

/// A stretch of a remote's window.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// Whose, as the address vector names it.
    pub address: u64,
    /// Where it begins, in bytes from the window's first.
    pub offset: u64,
}

/// Memory that others read and write while this process runs; it never touches it itself.
pub(super) struct Window {
    /// Words, so that remote atomics find them aligned.
    words: *mut [u64],
}

impl Window {
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

impl Drop for Window {
    fn drop(&mut self) {
        if !self.words.is_null() {
            // SAFETY: it came from a box, and the region over it is closed (else it was forgotten).
            drop(unsafe { Box::from_raw(self.words) });
        }
    }
}

impl Node {
    /// Starts to write bytes into a remote's window.
    pub fn write(&mut self, to: Remote, bytes: Vec<u8>) -> Posted {
        self.start(bytes, |node, base, length, context| {
            // SAFETY: the endpoint is open; the buffer is held until the operation ends.
            unsafe {
                ((*(*object(node.endpoint)).rma).write)(
                    node.endpoint,
                    base,
                    length,
                    ptr::null_mut(),
                    to.address,
                    to.offset,
                    WINDOW_KEY,
                    context,
                )
            }
        })
    }

    /// Starts to read as many bytes as the buffer has from a remote's window.
    pub fn read(&mut self, from: Remote, buffer: Vec<u8>) -> Posted {
        self.start(buffer, |node, base, length, context| {
            // SAFETY: as for `write`; the library may write the buffer, which is held.
            unsafe {
                ((*(*object(node.endpoint)).rma).read)(
                    node.endpoint,
                    base,
                    length,
                    ptr::null_mut(),
                    from.address,
                    from.offset,
                    WINDOW_KEY,
                    context,
                )
            }
        })
    }

    /// Starts to add to a word of a remote's window, which the first 8 bytes of the buffer get as it was before.
    pub fn fetch_and_add(&mut self, at: Remote, summand: u64) -> Posted {
        let mut buffer = vec![0; 16];
        buffer[8..].copy_from_slice(&summand.to_ne_bytes());
        self.start(buffer, |node, base: *mut c_void, _, context| {
            // SAFETY: 16 bytes are held: the result goes to the first 8, the summand is in the others.
            unsafe {
                ((*(*object(node.endpoint)).atomic).readwrite)(
                    node.endpoint,
                    base.cast::<u8>().add(8).cast_const().cast(),
                    1,
                    ptr::null_mut(),
                    base,
                    ptr::null_mut(),
                    at.address,
                    at.offset,
                    WINDOW_KEY,
                    FI_UINT64,
                    FI_SUM,
                    context,
                )
            }
        })
    }
}
