// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Another process's registered memory, mapped here. Made by shm for a remote whose memory lies in
//! a shared file; used for one access after the other by load and store.

use std::io;

use weft_os::map::RawMap;
use weft_os::mapped_file::map_memory_of;

use crate::UserBuffer;

/// A stretch of another process's memory, in a mapping of our own.
#[derive(Debug)]
pub struct RemoteMemory {
    map: RawMap,
    skipped_bytes: usize,
    length_bytes: usize,
}

impl RemoteMemory {
    /// Maps the memory of process `pid` from `address` on, if it lies in a shared file. Slow path.
    ///
    /// # Errors
    /// `NotFound` if it does not, or the file cannot be had; `PermissionDenied` if we may not look.
    pub fn map(pid: u32, address: u64, length_bytes: u64) -> io::Result<Self> {
        let (map, skipped_bytes) = map_memory_of(pid, address, length_bytes)?;
        Ok(Self {
            map,
            skipped_bytes,
            length_bytes: length_bytes as usize,
        })
    }

    /// The bytes from `offset_bytes` on, as a buffer to copy to and from; shorter if the memory
    /// ends before. Fast path.
    ///
    /// The buffer must not be used after the mapping is dropped, so it is only lent to `access`.
    #[inline]
    pub fn with<R>(
        &self,
        offset_bytes: usize,
        length_bytes: usize,
        access: impl FnOnce(&UserBuffer) -> R,
    ) -> R {
        let offset = offset_bytes.min(self.length_bytes);
        let length = length_bytes.min(self.length_bytes - offset);
        let base = self.map.base().wrapping_add(self.skipped_bytes + offset);
        // SAFETY: the bytes lie in the mapping, which lives through the call; who else touches them
        // meanwhile is the business of the application, as for all remote memory (fi_rma(3)).
        access(&unsafe { UserBuffer::from_raw(base, length) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BytesView, BytesViewMut, Mapping};
    use std::os::fd::AsFd;

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
    fn memory_of_another_process_is_that_process_s_own() {
        let file = weft_os::region_file::create_memfd("weft-remote-memory", 8192).expect("memfd");
        let own = Mapping::shared(file.as_fd(), 8192).expect("map");
        let address = own.bytes(100, 1000).expect("inside") as u64;
        let remote = RemoteMemory::map(std::process::id(), address, 1000).expect("shared");
        remote.with(990, 50, |buffer| {
            assert_eq!(buffer.length_bytes(), 10, "it ends there");
            buffer.fill(0, BytesView::from_slice(&[7; 10]));
        });
        let mut read = [0; 12];
        let base = own.bytes(0, 8192).expect("all");
        // SAFETY: the mapping lives here, and nobody else touches it.
        let whole = unsafe { UserBuffer::from_raw(base, 8192) };
        whole.drain(1089, &mut BytesViewMut::from_slice(&mut read));
        assert_eq!(read, [0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0]);
    }
}
