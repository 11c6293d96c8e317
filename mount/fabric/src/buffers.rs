// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that an endpoint reads and writes while nothing else touches it. It is never freed, but
//! used again. So there are as many buffers as were ever in use at once. [`crate::owner`] has them.

use bytes::{Bytes, BytesMut};
use weft_endpoint::UserBuffer;
use weft_memory::{BytesView, BytesViewMut};

/// Buffers of one length.
pub struct Buffers {
    length_bytes: usize,
    free: Vec<UserBuffer>,
}

impl Buffers {
    /// None yet.
    pub fn new(length_bytes: usize) -> Self {
        Self {
            length_bytes,
            free: Vec::new(),
        }
    }

    /// A buffer that nobody uses.
    pub fn take(&mut self) -> UserBuffer {
        let free = self.free.pop();
        free.unwrap_or_else(|| UserBuffer::leaked(&[self.length_bytes]))
    }

    /// Nobody uses it any more.
    pub fn give_back(&mut self, buffer: UserBuffer) {
        self.free.push(buffer);
    }
}

/// Writes the beginning of a buffer.
pub fn write(buffer: &UserBuffer, at: usize, bytes: &[u8]) -> usize {
    buffer.fill(at, BytesView::from_slice(bytes))
}

/// The beginning of a buffer, read.
pub fn read(buffer: &UserBuffer, length_bytes: usize) -> Bytes {
    let mut bytes = BytesMut::zeroed(length_bytes);
    buffer.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
    bytes.freeze()
}
