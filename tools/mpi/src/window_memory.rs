// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory of a window: this rank's own bytes, which others access, and the address where each
//! rank's memory begins.
//!
//! Part of a window, which makes it known to MPI; one_sided asks it for addresses.

use crate::buffer::Buffer;
use crate::error::{Error, Result};
use std::ptr::NonNull;

/// The memory of this rank in a window. All ranks have equally many bytes.
pub struct WindowMemory {
    /// Ours, unless MPI allocates it.
    _memory: Option<Buffer>,
    /// Where this rank's bytes begin; MPI's once it has allocated them.
    pub(crate) start: NonNull<u8>,
    pub(crate) length: usize,
    /// What to add to a place in each rank's window.
    pub(crate) bases: Vec<isize>,
}

impl WindowMemory {
    /// Bytes on each of some ranks; `is_ours` where MPI does not allocate them.
    pub(crate) fn new(length: usize, ranks: usize, is_ours: bool) -> Self {
        let memory = is_ours.then(|| Buffer::new(length));
        Self {
            start: memory.as_ref().map_or(NonNull::dangling(), Buffer::start),
            _memory: memory,
            length,
            bases: vec![0; ranks],
        }
    }

    /// Copies from this rank's own window. The accesses of others must have ended, as after a flush
    /// there and a barrier.
    ///
    /// # Panics
    /// When the place lies outside.
    pub fn read(&self, place: usize, bytes: &mut [u8]) {
        self.assert_inside(place, bytes.len());
        // SAFETY: inside the window, as asserted; a plain copy of bytes that others may write,
        // which the caller has ordered before this by MPI's calls. `bytes` is Rust's and cannot
        // overlap.
        unsafe {
            self.start
                .as_ptr()
                .add(place)
                .copy_to(bytes.as_mut_ptr(), bytes.len())
        };
    }

    /// Copies into this rank's own window. No other rank may have an access open.
    ///
    /// # Panics
    /// When the place lies outside.
    pub fn write(&mut self, place: usize, bytes: &[u8]) {
        self.assert_inside(place, bytes.len());
        // SAFETY: inside the window, as asserted; no other rank has an access open, as the caller
        // promises by MPI's rules. `bytes` is Rust's and cannot overlap.
        unsafe {
            self.start
                .as_ptr()
                .add(place)
                .copy_from(bytes.as_ptr(), bytes.len())
        };
    }

    fn assert_inside(&self, place: usize, length: usize) {
        let end = place.checked_add(length);
        assert!(
            end.is_some_and(|end| end <= self.length),
            "byte {place} and {length} more lie outside a window of {} bytes",
            self.length
        );
    }

    /// A place in another rank's window as MPI wants it.
    #[inline]
    pub(crate) fn displacement(&self, rank: i32, place: usize, length: usize) -> Result<isize> {
        let base = usize::try_from(rank)
            .ok()
            .and_then(|rank| self.bases.get(rank));
        let end = place.checked_add(length);
        match (base, end) {
            (Some(base), Some(end)) if end <= self.length => Ok(base.wrapping_add(place as isize)),
            _ => Err(self.outside(rank, place, length)),
        }
    }

    #[cold]
    fn outside(&self, rank: i32, place: usize, length: usize) -> Error {
        let got = format!("{length} bytes at byte {place} of rank {rank}");
        let limit = format!(
            "each of {} ranks has {} bytes",
            self.bases.len(),
            self.length
        );
        Error::argument("place in a window", got, limit)
    }
}
