// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A shared region mapped into this process. Made by shm, read and written through ring.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use weft_os::map::RawMap;

/// Types that may be laid over shared memory: sound for any bytes, and changed by other processes
/// only through atomics or raw copies.
///
/// # Safety
/// The type must be `repr(C)`, valid for every bit pattern, hold no pointers, references, `bool` or
/// enums, and have all its fields atomic or inside `UnsafeCell`, so that a shared reference to it
/// promises nothing about its bytes.
pub unsafe trait SharedLayout {}

/// A region, or one part of it, mapped; clones share the mapping, the last one unmaps it. Places in
/// it are offsets into the file, whichever part is mapped.
#[derive(Clone, Debug)]
pub struct Mapping {
    part: Arc<Part>,
}

/// A mapped part, and where it begins in the file.
#[derive(Debug)]
struct Part {
    map: RawMap,
    start_bytes: usize,
}

/// Addresses that are kept for a region which is to be mapped later.
#[derive(Debug)]
pub struct Reserved(Option<RawMap>);

impl Reserved {
    /// Takes so many bytes of addresses, over a file at least as long which nobody reads there, and
    /// no memory. Slow path.
    ///
    /// # Errors
    /// As [`Mapping::shared`].
    pub fn new(file: BorrowedFd<'_>, length_bytes: usize) -> std::io::Result<Self> {
        RawMap::read_only(file, 0, length_bytes).map(|map| Self(Some(map)))
    }

    /// Gives them back, for the region to be mapped now.
    pub fn give_back(&mut self) {
        self.0 = None;
    }
}

/// A stretch of a region was asked for that it does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfRegion;

impl Mapping {
    /// Maps the first `length_bytes` of `file`, shared, readable and writable. Setup.
    ///
    /// # Errors
    /// The error of mmap(2), or `UnexpectedEof` if the file is shorter (touching it would be
    /// fatal).
    pub fn shared(file: BorrowedFd<'_>, length_bytes: usize) -> std::io::Result<Self> {
        Self::part(file, 0, length_bytes)
    }

    /// The same for `length_bytes` from `start_bytes` (whole pages) on. Setup.
    ///
    /// # Errors
    /// As [`Self::shared`].
    pub fn part(
        file: BorrowedFd<'_>,
        start_bytes: usize,
        length_bytes: usize,
    ) -> std::io::Result<Self> {
        let map = RawMap::part(file, start_bytes, length_bytes)?;
        let part = Arc::new(Part { map, start_bytes });
        Ok(Self { part })
    }

    /// Has the pages of a stretch made at once, if the system can do that; else they are made when
    /// they are touched. The stretch is cut to what is mapped. Slow path.
    pub fn populate(&self, offset_bytes: usize, length_bytes: usize) {
        if let Some(skipped) = offset_bytes.checked_sub(self.part.start_bytes) {
            self.part.map.populate(skipped, length_bytes);
        }
    }

    /// How many bytes are mapped.
    pub fn length_bytes(&self) -> usize {
        self.part.map.length_bytes()
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
        if !(base as usize).is_multiple_of(align_of::<T>()) {
            return Err(OutOfRegion);
        }
        // SAFETY: the range is mapped while self lives, aligned for T, and T is sound for any bytes
        // and any concurrent change by the contract of SharedLayout.
        Ok(unsafe { core::slice::from_raw_parts(base.cast::<T>(), count) })
    }

    /// The address of `length_bytes` bytes at `offset_bytes`, checked to lie inside.
    ///
    /// # Errors
    /// [`OutOfRegion`] if they do not.
    pub fn bytes(&self, offset_bytes: usize, length_bytes: usize) -> Result<*mut u8, OutOfRegion> {
        // An offset before the part becomes one far behind it.
        let skipped = offset_bytes.wrapping_sub(self.part.start_bytes);
        match skipped.checked_add(length_bytes) {
            // wrapping_add: the offset was just checked against the length of one mapping.
            Some(end) if end <= self.length_bytes() => {
                Ok(self.part.map.base().wrapping_add(skipped))
            }
            _ => Err(OutOfRegion),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    const LENGTH: usize = 1 << 16;

    /// A file with one byte that is not zero.
    fn file_with(byte: u8, at: u64) -> File {
        let file = weft_os::region_file::create_memfd("weft-mapping", LENGTH as u64);
        let file = File::from(file.expect("memfd"));
        file.write_all_at(&[byte], at).expect("written");
        file
    }

    fn byte_at(mapping: &Mapping, offset_bytes: usize) -> u8 {
        let byte = mapping.bytes(offset_bytes, 1).expect("inside");
        // SAFETY: the byte lies in the mapping, which nobody writes.
        unsafe { byte.read() }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files in memory")]
    fn pages_made_at_once_keep_what_was_written_and_end_with_the_mapping() {
        let file = file_with(7, 5000);
        let mapping = Mapping::shared(file.as_fd(), LENGTH).expect("mapped");
        mapping.populate(4096, usize::MAX);
        mapping.populate(usize::MAX, 1);
        let found = (byte_at(&mapping, 5000), byte_at(&mapping, LENGTH - 1));
        assert_eq!(found, (7, 0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files in memory")]
    fn a_part_has_the_places_of_the_whole_and_no_others() {
        let file = file_with(7, 9000);
        let part = Mapping::part(file.as_fd(), 8192, 4096).expect("mapped");
        part.populate(0, LENGTH);
        part.populate(8192, usize::MAX);
        assert_eq!((byte_at(&part, 9000), byte_at(&part, 9001)), (7, 0));
        for (offset_bytes, length_bytes) in [
            (8191, 1),
            (0, 1),
            (8192, 4097),
            (12288, 1),
            (0, usize::MAX),
            (8191, usize::MAX),
            (usize::MAX, 2),
        ] {
            let found = part.bytes(offset_bytes, length_bytes);
            assert_eq!(found, Err(OutOfRegion), "{offset_bytes} {length_bytes}");
        }
        assert!(part.bytes(12288, 0).is_ok(), "nothing, at its end");
    }
}
