// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Payload bytes that another process may write while we look: they can be copied, never borrowed.
//!
//! Made by ring (cells, chunks) and by anything that has ordinary bytes; consumed by
//! [`crate::UserBuffer`].

use core::marker::PhantomData;

use crate::copy::{copy, copy_for_others};

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

    /// A view of words, in memory order.
    #[inline(always)]
    pub fn from_words(words: &'a [u64]) -> Self {
        Self {
            base: words.as_ptr().cast(),
            length_bytes: size_of_val(words),
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

    /// At most `length_bytes` bytes from `offset_bytes` on, as far as there are any.
    #[inline]
    pub fn part(self, offset_bytes: usize, length_bytes: usize) -> Self {
        self.split_at(offset_bytes).1.split_at(length_bytes).0
    }

    /// The first eight bytes as a word, in memory order; bytes that are missing count as 0. Fast
    /// path.
    #[inline(always)]
    pub fn first_word(&self) -> u64 {
        if self.length_bytes >= 8 {
            // SAFETY: the view is readable for eight bytes; any bytes are a word.
            return unsafe { self.base.cast::<u64>().read_unaligned() };
        }
        let mut bytes = [0; 8];
        self.copy_to_slice(&mut bytes[..self.length_bytes]);
        u64::from_ne_bytes(bytes)
    }

    /// The address of the first byte, for reads within the length and lifetime of the view.
    #[inline(always)]
    pub fn base(&self) -> *const u8 {
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

    /// A view of words, in memory order.
    #[inline(always)]
    pub fn from_words(words: &'a mut [u64]) -> Self {
        Self {
            base: words.as_mut_ptr().cast(),
            length_bytes: size_of_val(words),
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

    /// At most `length_bytes` bytes from `offset_bytes` on, as far as there are any.
    #[inline]
    pub fn part(&mut self, offset_bytes: usize, length_bytes: usize) -> BytesViewMut<'_> {
        let whole = BytesViewMut {
            base: self.base,
            length_bytes: self.length_bytes,
            owner: PhantomData,
        };
        whole.split_at(offset_bytes).1.split_at(length_bytes).0
    }

    /// The same bytes to read.
    #[inline]
    pub fn as_view(&self) -> BytesView<'_> {
        BytesView {
            base: self.base,
            length_bytes: self.length_bytes,
            owner: PhantomData,
        }
    }

    /// Copies `payload` in at `offset_bytes`, as far as there is room; answers how many bytes that
    /// was. The two should not overlap: what lands is then unspecified. Fast path.
    #[inline(always)]
    pub fn fill(&mut self, offset_bytes: usize, payload: BytesView<'_>) -> usize {
        let room = self.length_bytes.saturating_sub(offset_bytes);
        let count = payload.length_bytes.min(room);
        // SAFETY: offset + count is within the view, which is ours to write (constructor); the
        // payload is readable for count. A writable view is ours alone, so they do not overlap.
        unsafe { copy(payload.base, self.base.wrapping_add(offset_bytes), count) };
        count
    }

    /// As [`Self::fill`], into memory that other processors have read before and will read again: a
    /// long payload is written in whole lines, which need not be fetched first.
    #[inline(always)]
    pub fn fill_for_others(&mut self, offset_bytes: usize, payload: BytesView<'_>) -> usize {
        let room = self.length_bytes.saturating_sub(offset_bytes);
        let count = payload.length_bytes.min(room);
        // SAFETY: as in `fill`.
        unsafe { copy_for_others(payload.base, self.base.wrapping_add(offset_bytes), count) };
        count
    }

    /// The address of the first byte, for accesses within the length and lifetime of the view.
    #[inline(always)]
    pub fn base(&mut self) -> *mut u8 {
        self.base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_where_the_view_ends() {
        let bytes = [1, 2, 3, 4];
        let view = BytesView::from_slice(&bytes);
        assert_eq!(view.part(1, 2).to_vec(), [2, 3]);
        assert_eq!(view.part(3, 9).to_vec(), [4]);
        assert_eq!(view.part(9, 1).length_bytes(), 0);
        let mut target = [0; 4];
        let mut writable = BytesViewMut::from_slice(&mut target);
        assert_eq!(writable.fill(3, view), 1);
        assert_eq!(writable.fill(4, view), 0);
        assert_eq!(writable.part(1, 2).fill(0, view), 2);
        assert_eq!(writable.as_view().to_vec(), [0, 1, 2, 1]);
    }

    #[test]
    fn words_are_bytes_in_memory_order() {
        let words = [7, u64::MAX];
        let view = BytesView::from_words(&words);
        assert_eq!((view.length_bytes(), view.first_word()), (16, 7));
        assert_eq!(
            view.part(15, 1).first_word(),
            u64::from_ne_bytes([255, 0, 0, 0, 0, 0, 0, 0])
        );
    }
}
