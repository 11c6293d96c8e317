// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Payload bytes that another process may write while we look: they can be copied, never borrowed.
//!
//! Made by ring (cells, chunks) and by anything that has ordinary bytes; consumed by
//! [`crate::UserBuffer`].

use core::marker::PhantomData;

use crate::copy::copy;

/// Bytes to read. As cheap as a slice to pass on.
#[derive(Clone, Copy, Debug)]
pub struct BytesView<'a> {
    base: *const u8,
    length_bytes: usize,
    owner: PhantomData<&'a [u8]>,
}

impl<'a> BytesView<'a> {
    /// A view of ordinary memory.
    #[inline]
    pub fn from_slice(bytes: &'a [u8]) -> Self {
        Self {
            base: bytes.as_ptr(),
            length_bytes: bytes.len(),
            owner: PhantomData,
        }
    }

    /// A view of shared memory.
    ///
    /// # Safety
    /// `base` must be readable for `length_bytes` during `'a`. Concurrent writes by other processes
    /// are fine.
    #[inline]
    pub unsafe fn from_raw(base: *const u8, length_bytes: usize) -> Self {
        Self {
            base,
            length_bytes,
            owner: PhantomData,
        }
    }

    /// How many bytes there are.
    #[inline]
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// The first `length_bytes` bytes (or fewer, if there are fewer) and the rest.
    #[inline]
    pub fn split_at(self, length_bytes: usize) -> (Self, Self) {
        let head_bytes = length_bytes.min(self.length_bytes);
        let head = Self {
            length_bytes: head_bytes,
            ..self
        };
        let rest = Self {
            base: self.base.wrapping_add(head_bytes),
            length_bytes: self.length_bytes - head_bytes,
            owner: PhantomData,
        };
        (head, rest)
    }

    /// Copies into ordinary memory; both lengths must agree.
    ///
    /// # Panics
    /// If `target` has another length.
    #[inline]
    pub fn copy_to_slice(&self, target: &mut [u8]) {
        assert_eq!(
            target.len(),
            self.length_bytes,
            "view and target differ in length"
        );
        // SAFETY: the view is readable for its length (constructor), the slice is writable for the
        // same length, and an exclusive borrow cannot overlap memory that the view reads.
        unsafe { copy(self.base, target.as_mut_ptr(), self.length_bytes) }
    }

    /// A copy on the heap. Allocates: slow path.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = vec![0; self.length_bytes];
        self.copy_to_slice(&mut copy);
        copy
    }

    pub(crate) fn base(&self) -> *const u8 {
        self.base
    }
}

/// Bytes to write, of the same kind.
#[derive(Debug)]
pub struct BytesViewMut<'a> {
    base: *mut u8,
    length_bytes: usize,
    owner: PhantomData<&'a mut [u8]>,
}

impl<'a> BytesViewMut<'a> {
    /// A view of ordinary memory.
    #[inline]
    pub fn from_slice(bytes: &'a mut [u8]) -> Self {
        Self {
            base: bytes.as_mut_ptr(),
            length_bytes: bytes.len(),
            owner: PhantomData,
        }
    }

    /// A view of shared memory.
    ///
    /// # Safety
    /// `base` must be writable for `length_bytes` during `'a`, and no Rust reference to those bytes
    /// may live.
    #[inline]
    pub unsafe fn from_raw(base: *mut u8, length_bytes: usize) -> Self {
        Self {
            base,
            length_bytes,
            owner: PhantomData,
        }
    }

    /// How many bytes there are.
    #[inline]
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// The first `length_bytes` bytes (or fewer, if there are fewer) and the rest.
    #[inline]
    pub fn split_at(self, length_bytes: usize) -> (Self, Self) {
        let head = length_bytes.min(self.length_bytes);
        // SAFETY: head is at most the view's length, so both parts stay inside it; they do not
        // overlap.
        let rest = unsafe { self.base.add(head) };
        (
            Self {
                base: self.base,
                length_bytes: head,
                owner: PhantomData,
            },
            Self {
                base: rest,
                length_bytes: self.length_bytes - head,
                owner: PhantomData,
            },
        )
    }

    /// Copies `bytes` to the start of the view.
    ///
    /// # Panics
    /// If `bytes` is longer than the view.
    #[inline]
    pub fn copy_from_slice(&mut self, bytes: &[u8]) {
        assert!(
            bytes.len() <= self.length_bytes,
            "more bytes than the view holds"
        );
        // SAFETY: the view is writable for its length, `bytes` is no longer, and a shared borrow
        // cannot overlap memory that the view may write.
        unsafe { copy(bytes.as_ptr(), self.base, bytes.len()) }
    }

    pub(crate) fn base(&mut self) -> *mut u8 {
        self.base
    }
}
