// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The heap of another process, mapped here for reading. Made by shm for a remote that shows its heap; long messages are copied
//! straight out of it.

use std::io;

use weft_os::heap::{Heap, map_heap_of};
use weft_os::map::RawMap;

use crate::UserBuffer;
use crate::view::BytesView;

/// Another process's heap. Unmapped when dropped.
#[derive(Debug)]
pub struct ForeignHeap {
    map: RawMap,
    heap: Heap,
}

impl ForeignHeap {
    /// Maps the heap that process `pid` claims to have. Slow path.
    ///
    /// # Errors
    /// `PermissionDenied` if we may not look; `NotFound` if there is no such heap; the errno of mmap(2).
    pub fn map(pid: u32, heap: &Heap) -> io::Result<Self> {
        Ok(Self {
            map: map_heap_of(pid, heap)?,
            heap: *heap,
        })
    }

    /// Whether all of a stretch of the other process's memory lies in its heap. Fast path.
    #[inline]
    pub fn holds(&self, address: u64, length_bytes: u64) -> bool {
        self.heap.offset_of(address, length_bytes).is_some()
    }

    /// Copies `length_bytes` bytes that the other process has at `address` into `target` at `offset_bytes`; answers how many that
    /// were: none if they do not all lie in its heap. Stores go past this processor's cache if so wanted. What it changes meanwhile arrives as any mix of old and new.
    #[inline]
    pub fn pull(
        &self,
        address: u64,
        target: &UserBuffer,
        (offset_bytes, length_bytes): (usize, usize),
        past_cache: bool,
    ) -> usize {
        let Some(offset) = self.heap.offset_of(address, length_bytes as u64) else {
            return 0;
        };
        let base = self.map.base().wrapping_add(offset as usize);
        // SAFETY: the stretch was just checked to lie in the heap, all of which is mapped while self lives; its file cannot
        // become shorter.
        let view = unsafe { BytesView::from_raw(base, length_bytes) };
        if past_cache {
            target.fill_past_cache(offset_bytes, view)
        } else {
            target.fill(offset_bytes, view)
        }
    }
}

/// A heap of this process's own, and a buffer that is all of it, neither ever freed: for tests.
///
/// # Errors
/// The error of memfd_create(2) or mmap(2).
pub fn leaked(length_bytes: usize) -> io::Result<(Heap, UserBuffer)> {
    use std::os::fd::AsFd;
    let file = weft_os::region_file::create_memfd("weft-heap", length_bytes as u64)?;
    let map = RawMap::new(file.as_fd(), length_bytes)?;
    let heap = Heap::of_file(file.as_fd(), map.base() as u64, length_bytes as u64)?;
    // SAFETY: the mapping lives as long as the process, and no reference to it remains.
    let buffer = unsafe { UserBuffer::from_raw(map.base(), length_bytes) };
    std::mem::forget(map);
    std::mem::forget(file);
    Ok((heap, buffer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
    fn bytes_are_pulled_out_of_the_heap_and_nothing_beside_it() {
        let (heap, own) = leaked(8192).expect("a heap");
        let bytes: Vec<u8> = (0..8192_u32)
            .map(|index| (index * 7 + index / 256) as u8)
            .collect();
        own.fill(0, BytesView::from_slice(&bytes));
        let foreign = ForeignHeap::map(std::process::id(), &heap).expect("it is ours");
        for (past_cache, offset, length) in [
            (false, 1, 4),
            (true, 1, 4),
            (true, 0, 64),
            (true, 5, 3000),
            (false, 64, 4000),
            (true, 64, 4000),
        ] {
            let target = UserBuffer::leaked(&[8192]);
            let copied = foreign.pull(heap.base + 100, &target, (offset, length), past_cache);
            assert_eq!(copied, length);
            let mut read = vec![0; 8192];
            target.drain(0, &mut crate::BytesViewMut::from_slice(&mut read));
            assert_eq!(read[offset..offset + length], bytes[100..100 + length]);
            assert!(
                read[..offset]
                    .iter()
                    .chain(&read[offset + length..])
                    .all(|&byte| byte == 0)
            );
        }
        assert!(foreign.holds(heap.base + 8190, 2));
        let target = UserBuffer::leaked(&[8192]);
        for (address, length) in [(heap.base + 8190, 3), (heap.base - 1, 2), (u64::MAX, 4)] {
            assert!(!foreign.holds(address, length));
            assert_eq!(
                foreign.pull(address, &target, (0, length as usize), false),
                0
            );
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
    fn scattered_targets_are_filled_past_the_cache_too() {
        let (heap, own) = leaked(4096).expect("a heap");
        own.fill(0, BytesView::from_slice(&[7; 4096]));
        let foreign = ForeignHeap::map(std::process::id(), &heap).expect("it is ours");
        let target = UserBuffer::leaked(&[100, 1000, 5]);
        assert_eq!(foreign.pull(heap.base, &target, (50, 1055), true), 1055);
        let mut read = [0; 1105];
        target.drain(0, &mut crate::BytesViewMut::from_slice(&mut read));
        assert!(
            read[..50].iter().all(|&byte| byte == 0) && read[50..].iter().all(|&byte| byte == 7)
        );
    }
}
