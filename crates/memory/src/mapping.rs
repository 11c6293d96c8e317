// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A shared region mapped into this process. Made by shm, read and written through ring.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use weft_os::map::RawMap;

/// Types that may be laid over shared memory: sound for any bytes, and changed by other processes only
/// through atomics or raw copies.
///
/// # Safety
/// The type must be `repr(C)`, valid for every bit pattern, hold no pointers, references, `bool` or enums, and
/// have all its fields atomic or inside `UnsafeCell`, so that a shared reference to it promises nothing about
/// its bytes.
pub unsafe trait SharedLayout {}

/// A mapped region; clones share the mapping, the last one unmaps it.
#[derive(Clone, Debug)]
pub struct Mapping {
    map: Arc<RawMap>,
}

/// A stretch of a region was asked for that it does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfRegion;

impl Mapping {
    /// Maps the first `length_bytes` of `file`, shared, readable and writable. Setup.
    ///
    /// # Errors
    /// The error of mmap(2), or `UnexpectedEof` if the file is shorter (touching it would be fatal).
    pub fn shared(file: BorrowedFd<'_>, length_bytes: usize) -> std::io::Result<Self> {
        Ok(Self {
            map: Arc::new(RawMap::new(file, length_bytes)?),
        })
    }

    /// Has the pages of a stretch made at once, if the system can do that; else they are made when they are touched. Slow path.
    pub fn populate(&self, offset_bytes: usize, length_bytes: usize) {
        self.map.populate(offset_bytes, length_bytes);
    }

    /// How many bytes are mapped.
    pub fn length_bytes(&self) -> usize {
        self.map.length_bytes()
    }

    /// `count` values of `T` laid over the region at `offset_bytes`.
    ///
    /// # Errors
    /// [`OutOfRegion`] if they do not fit or the offset is not aligned for `T`.
    pub fn values<T: SharedLayout>(
        &self,
        offset_bytes: usize,
        count: usize,
    ) -> Result<&[T], OutOfRegion> {
        let base = self.bytes(
            offset_bytes,
            count.checked_mul(size_of::<T>()).ok_or(OutOfRegion)?,
        )?;
        if base as usize % align_of::<T>() != 0 {
            return Err(OutOfRegion);
        }
        // SAFETY: the range is mapped while self lives, aligned for T, and T is sound for any bytes and any
        // concurrent change by the contract of SharedLayout.
        Ok(unsafe { core::slice::from_raw_parts(base.cast::<T>(), count) })
    }

    /// The address of `length_bytes` bytes at `offset_bytes`, checked to lie inside.
    ///
    /// # Errors
    /// [`OutOfRegion`] if they do not.
    pub fn bytes(&self, offset_bytes: usize, length_bytes: usize) -> Result<*mut u8, OutOfRegion> {
        match offset_bytes.checked_add(length_bytes) {
            // wrapping_add: the offset was just checked against the length of one mapping.
            Some(end) if end <= self.length_bytes() => {
                Ok(self.map.base().wrapping_add(offset_bytes))
            }
            _ => Err(OutOfRegion),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "needs files in memory")]
    fn pages_made_at_once_keep_what_was_written_and_end_with_the_mapping() {
        let file = weft_os::region_file::create_memfd("weft-populate", 1 << 16).expect("memfd");
        let mapping = Mapping::shared(file.as_fd(), 1 << 16).expect("mapped");
        let byte = |offset_bytes| mapping.bytes(offset_bytes, 1).expect("inside");
        // SAFETY: the byte lies in the mapping, which nobody else uses.
        unsafe { byte(5000).write(7) };
        mapping.populate(4096, usize::MAX);
        mapping.populate(usize::MAX, 1);
        // SAFETY: as above.
        let found = unsafe { (byte(5000).read(), byte((1 << 16) - 1).read()) };
        assert_eq!(found, (7, 0));
    }
}
