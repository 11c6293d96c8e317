// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory of contents, used again. Otherwise a fetch of 8 MiB would take 2,048 new pages from the
//! kernel each time. `mount/s3` takes a buffer for each large answer, `mount/files` for each part
//! of an upload; it comes back when the last one who has the bytes drops them.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Chosen: below this the allocator is as fast.
const SMALLEST_BYTES: usize = 1 << 20;
/// Chosen: what lies unused at most, where nobody says less.
const UNUSED_BYTES: usize = 48 << 20;

/// Buffers that nobody uses. Clones share them.
#[derive(Debug, Clone)]
pub struct Buffers {
    unused: Arc<Mutex<Vec<Vec<u8>>>>,
    unused_limit_bytes: usize,
}

impl Default for Buffers {
    fn default() -> Self {
        Self::within(u64::MAX)
    }
}

/// A buffer that returns when it is dropped.
struct Lent {
    bytes: Vec<u8>,
    home: Buffers,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.home.give(std::mem::take(&mut self.bytes));
    }
}

impl Buffers {
    /// None yet; as many of them lie unused as fit in so many bytes, and no more than 48 MiB.
    pub fn within(bytes: u64) -> Self {
        Self {
            unused: Arc::default(),
            unused_limit_bytes: UNUSED_BYTES.min(usize::try_from(bytes).unwrap_or(usize::MAX)),
        }
    }

    /// What lies unused.
    pub fn unused_bytes(&self) -> usize {
        let unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        unused.iter().map(Vec::capacity).sum()
    }

    /// An empty buffer with room for so many bytes, and not for many times as many.
    pub fn take(&self, wanted_bytes: usize) -> Vec<u8> {
        if wanted_bytes >= SMALLEST_BYTES {
            let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
            let fits =
                |buffer: &Vec<u8>| (wanted_bytes..=wanted_bytes * 2).contains(&buffer.capacity());
            if let Some(at) = unused.iter().position(fits) {
                return unused.swap_remove(at);
            }
        }
        Vec::with_capacity(wanted_bytes)
    }

    /// A buffer that is not needed any more.
    pub fn give(&self, mut bytes: Vec<u8>) {
        if bytes.capacity() < SMALLEST_BYTES {
            return;
        }
        bytes.clear();
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        let unused_bytes: usize = unused.iter().map(Vec::capacity).sum();
        if unused_bytes + bytes.capacity() <= self.unused_limit_bytes {
            unused.push(bytes);
        }
    }

    /// The bytes, to be shared; the buffer comes back when nobody has them any more.
    pub fn share(&self, bytes: Vec<u8>) -> Bytes {
        if bytes.capacity() < SMALLEST_BYTES {
            return Bytes::from(bytes);
        }
        Bytes::from_owner(Lent {
            bytes,
            home: self.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_lies_unused_than_was_said() {
        for (limit, kept) in [(0, 0), (5 << 20, 4 << 20), (u64::MAX, 48 << 20)] {
            let buffers = Buffers::within(limit);
            let taken: Vec<Vec<u8>> = (0..30).map(|_| buffers.take(2 << 20)).collect();
            for buffer in taken {
                buffers.give(buffer);
            }
            assert_eq!(buffers.unused_bytes(), kept);
        }
    }

    #[test]
    fn buffer_comes_back_when_the_last_part_of_it_is_dropped() {
        let buffers = Buffers::default();
        let mut bytes = buffers.take(2 << 20);
        bytes.resize(2 << 20, 7);
        let address = bytes.as_ptr();
        let shared = buffers.share(bytes);
        let part = shared.slice(5..10);
        drop(shared);
        assert_eq!(&part[..], [7; 5]);
        let other = buffers.take(2 << 20);
        assert_ne!(other.as_ptr(), address);
        drop(part);
        let again = buffers.take(2 << 20);
        assert_eq!((again.as_ptr(), again.len()), (address, 0));
        // Too large for what is wanted.
        drop(buffers.share(again));
        let smaller = buffers.take(1 << 19);
        assert_ne!(smaller.as_ptr(), address);
    }
}
