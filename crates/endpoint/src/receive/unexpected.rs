// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that arrived before their receive: what is kept of them, and the memory that keeps it.
//!
//! Filled and emptied by receiving.rs and shared.rs. Offers keep nothing but their name: their
//! payload stays with the sender.

use weft_contract::{AckToken, Class, Envelope, OfferId, RemoteId, TransferError};
use weft_memory::{BytesView, UserBuffer};

/// Chosen: the size of the smallest pooled buffer; each further class is twice the one before.
const SMALLEST_POOLED_BYTES: usize = 64;
/// Chosen: classes from 64 bytes to 64 KiB, beyond what transports send as whole messages.
const CLASS_COUNT: usize = 11;
/// Chosen: bytes that the pool keeps for later; what is freed beyond goes back to the heap.
const POOL_LIMIT_BYTES: usize = 1 << 20;

/// The payload of an unexpected message.
pub(crate) enum Body {
    /// Kept in a pooled buffer, as many bytes as the envelope says.
    Heap(Box<[u8]>),
    /// Still with its sender.
    Offer(OfferId),
    /// Gone with its sender, after it was claimed.
    Void(TransferError),
}

/// An envelope as it is kept: without an `Option`, which would be copied in another width than it
/// was just written, and stall.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) remote: RemoteId,
    pub(crate) class: Class,
    has_cq_data: bool,
    tag: u64,
    cq_data: u64,
    pub(crate) length_bytes: u64,
}

impl Kept {
    #[inline(always)]
    pub(crate) fn of(envelope: &Envelope) -> Self {
        Self {
            remote: envelope.remote,
            class: envelope.class,
            has_cq_data: envelope.cq_data.is_some(),
            tag: envelope.tag,
            cq_data: envelope.cq_data.unwrap_or(0),
            length_bytes: envelope.length_bytes,
        }
    }

    #[inline(always)]
    pub(crate) fn envelope(&self) -> Envelope {
        Envelope {
            remote: self.remote,
            class: self.class,
            tag: self.tag,
            cq_data: self.has_cq_data.then_some(self.cq_data),
            length_bytes: self.length_bytes,
        }
    }
}

/// A message that waits for its receive.
pub(crate) struct Unexpected {
    pub(crate) kept: Kept,
    /// The receipt to send when it is delivered, if the sender waits for one.
    pub(crate) ack: Option<AckToken>,
    pub(crate) body: Body,
}

impl Unexpected {
    /// A message whose payload is still with its sender.
    pub(crate) fn offered(envelope: &Envelope, offer: OfferId) -> Self {
        Self {
            kept: Kept::of(envelope),
            ack: None,
            body: Body::Offer(offer),
        }
    }

    /// Whether its payload is still with its sender, under this name.
    pub(crate) fn is_offered_as(&self, offer: OfferId) -> bool {
        matches!(self.body, Body::Offer(named) if named == offer)
    }

    /// Notes that `remote` is gone, and with it the payload that it has still.
    pub(crate) fn lose(&mut self, remote: RemoteId, why: TransferError) {
        if self.kept.remote == remote && matches!(self.body, Body::Offer(_)) {
            self.body = Body::Void(why);
        }
    }
}

impl Body {
    /// Copies the first `length_bytes` of a kept payload into `buffer` at `offset_bytes`, as far as
    /// it reaches.
    pub(crate) fn fill(&self, buffer: &UserBuffer, offset_bytes: usize, length_bytes: u64) {
        let bytes: &[u8] = match self {
            Self::Heap(bytes) => bytes,
            Self::Offer(_) | Self::Void(_) => &[],
        };
        let length_bytes = bytes.len().min(length_bytes as usize);
        buffer.fill(offset_bytes, BytesView::from_slice(&bytes[..length_bytes]));
    }
}

/// Buffers for payloads, by size, used again.
pub(crate) struct PayloadPool {
    free: [Vec<Box<[u8]>>; CLASS_COUNT],
    free_bytes: usize,
}

impl PayloadPool {
    pub(crate) const fn new() -> Self {
        Self {
            free: [const { Vec::new() }; CLASS_COUNT],
            free_bytes: 0,
        }
    }

    /// Keeps a copy of `payload`.
    #[inline(always)]
    pub(crate) fn keep(&mut self, payload: BytesView<'_>) -> Body {
        let length_bytes = payload.length_bytes();
        let mut bytes = self.take(length_bytes);
        payload.copy_to_slice(&mut bytes[..length_bytes]);
        Body::Heap(bytes)
    }

    /// Takes the memory of a payload back.
    #[inline(always)]
    pub(crate) fn release(&mut self, body: Body) {
        if let Body::Heap(bytes) = body {
            self.release_bytes(bytes);
        }
    }

    /// The same for the memory itself.
    #[inline(always)]
    pub(crate) fn release_bytes(&mut self, bytes: Box<[u8]>) {
        let class = Self::class_of(bytes.len());
        if class < CLASS_COUNT && self.free_bytes + bytes.len() <= POOL_LIMIT_BYTES {
            self.free_bytes += bytes.len();
            self.free[class].push(bytes);
        }
    }

    #[inline(always)]
    fn take(&mut self, length_bytes: usize) -> Box<[u8]> {
        let class = Self::class_of(length_bytes);
        if let Some(bytes) = self.free.get_mut(class).and_then(Vec::pop) {
            self.free_bytes -= bytes.len();
            return bytes;
        }
        Self::make(class, length_bytes)
    }

    #[cold]
    fn make(class: usize, length_bytes: usize) -> Box<[u8]> {
        let size_bytes = if class < CLASS_COUNT {
            SMALLEST_POOLED_BYTES << class
        } else {
            length_bytes
        };
        vec![0; size_bytes].into_boxed_slice()
    }

    /// The smallest class whose buffers hold `length_bytes`.
    #[inline(always)]
    fn class_of(length_bytes: usize) -> usize {
        if length_bytes <= SMALLEST_POOLED_BYTES {
            return 0;
        }
        length_bytes
            .div_ceil(SMALLEST_POOLED_BYTES)
            .next_power_of_two()
            .trailing_zeros() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_buffers_are_used_again_and_the_pool_stays_small() {
        let mut pool = PayloadPool::new();
        for length_bytes in [0, 8, 64, 65, 128, 129, 4096, 65_536, 100_000] {
            let payload: Vec<u8> = (0..length_bytes).map(|index| (index * 3) as u8).collect();
            let bodies: Vec<Body> = (0..40)
                .map(|_| pool.keep(BytesView::from_slice(&payload)))
                .collect();
            for body in bodies {
                match &body {
                    Body::Heap(bytes) => assert_eq!(bytes[..length_bytes], payload),
                    _ => panic!("{length_bytes} bytes belong on the heap"),
                }
                pool.release(body);
            }
            assert!(pool.free_bytes <= POOL_LIMIT_BYTES);
            let held: usize = pool.free.iter().flatten().map(|bytes| bytes.len()).sum();
            assert_eq!(held, pool.free_bytes, "after {length_bytes}");
        }
        let before = pool.free_bytes;
        let body = pool.keep(BytesView::from_slice(&[1; 100]));
        assert_eq!(pool.free_bytes, before - 128, "taken from the pool");
        pool.release(body);
        assert_eq!(pool.free_bytes, before);
    }

    #[test]
    fn classes_hold_what_they_are_asked_for() {
        for length_bytes in 0..70_000 {
            let class = PayloadPool::class_of(length_bytes);
            let size_bytes = SMALLEST_POOLED_BYTES << class;
            assert!(size_bytes >= length_bytes, "{length_bytes} in {size_bytes}");
            assert!(
                class == 0 || size_bytes / 2 < length_bytes,
                "{length_bytes} in {size_bytes}"
            );
        }
    }
}
