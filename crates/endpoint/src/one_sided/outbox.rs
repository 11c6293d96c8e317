// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What waits to be sent for one-sided operations, by remote. Filled by target.rs and initiator.rs,
//! emptied by parcel.rs.

use std::collections::VecDeque;

use weft_contract::RemoteId;
use weft_memory::{BytesViewMut, Scratch, UserBuffer};

/// Results up to here are kept without memory of their own. Chosen: what shared memory takes in one
/// cell.
pub(super) const SHORT_BYTES: usize = 40;

/// Stretches for long results that are kept for the next ones. Chosen: what an initiator's window
/// of some tens needs, half a megabyte.
const SPARE_COUNT: usize = 64;

/// Bytes that were read when the request was carried out, at most
/// [`REQUEST_LIMIT_BYTES`](super::REQUEST_LIMIT_BYTES).
#[derive(Debug)]
pub(super) enum Bytes {
    Short([u8; SHORT_BYTES], u8),
    /// As many at the beginning of the stretch, which is sent from there.
    Long(Scratch, usize),
}

/// A message that waits.
#[derive(Debug)]
pub(super) enum Parcel {
    /// The remote's operation is carried out.
    Done(u32),
    /// The remote's operation was refused, for this reason.
    Refused(u32, u8),
    /// What the remote's operation read.
    Result(u32, Bytes),
    /// What it read, still where it lies: the outgoing result of this number.
    LongResult(u32),
    /// The payload of a long write of ours.
    Payload(u32),
}

/// Parcels by remote, each remote's in order.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queues: Vec<VecDeque<Parcel>>,
    /// Remotes with parcels, each once.
    active: Vec<RemoteId>,
    /// Stretches that held long results.
    spare: Vec<Scratch>,
}

impl Outbox {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// What lies in `source` now. Fast path.
    #[inline]
    pub(super) fn keep(&mut self, source: &UserBuffer) -> Bytes {
        let length_bytes = source.length_bytes();
        if length_bytes <= SHORT_BYTES {
            let mut bytes = [0; SHORT_BYTES];
            source.drain(0, &mut BytesViewMut::from_slice(&mut bytes[..length_bytes]));
            return Bytes::Short(bytes, length_bytes as u8);
        }
        let stretch = self.spare.pop().unwrap_or_else(Scratch::take);
        stretch.copy_in(0, source);
        Bytes::Long(stretch, length_bytes)
    }

    /// The same of a slice. Fast path.
    #[inline]
    pub(super) fn keep_slice(&mut self, source: &[u8]) -> Bytes {
        if source.len() <= SHORT_BYTES {
            let mut bytes = [0; SHORT_BYTES];
            bytes[..source.len()].copy_from_slice(source);
            return Bytes::Short(bytes, source.len() as u8);
        }
        let stretch = self.spare.pop().unwrap_or_else(Scratch::take);
        stretch.write(0, source);
        Bytes::Long(stretch, source.len())
    }

    /// Forgets the first parcels of a remote, which are sent.
    #[inline]
    pub(super) fn forget(&mut self, remote: RemoteId, count: usize) {
        for parcel in self.queues[remote.index()].drain(..count) {
            if let Parcel::Result(_, Bytes::Long(stretch, _)) = parcel
                && self.spare.len() < SPARE_COUNT
            {
                self.spare.push(stretch);
            }
        }
    }

    pub(super) fn push(&mut self, remote: RemoteId, parcel: Parcel) {
        if self.queues.len() <= remote.index() {
            self.queues.resize_with(remote.index() + 1, VecDeque::new);
        }
        let queue = &mut self.queues[remote.index()];
        if queue.is_empty() {
            self.active.push(remote);
        }
        queue.push_back(parcel);
    }

    /// The remote at `index` among those with parcels, if there are so many.
    pub(super) fn active(&self, index: usize) -> Option<RemoteId> {
        self.active.get(index).copied()
    }

    /// Ends the turn of the remote at `index` if nothing waits for it any more; says whether it
    /// ended.
    pub(super) fn end_turn(&mut self, index: usize) -> bool {
        let is_empty = self.queues[self.active[index].index()].is_empty();
        if is_empty {
            self.active.swap_remove(index);
        }
        is_empty
    }

    /// What waits for a remote that has parcels, in order.
    pub(super) fn queue(&self, remote: RemoteId) -> &VecDeque<Parcel> {
        &self.queues[remote.index()]
    }

    /// Whether something waits for `remote`.
    pub(super) fn waits_for(&self, remote: RemoteId) -> bool {
        self.count(remote) > 0
    }

    /// How much waits for `remote`.
    pub(super) fn count(&self, remote: RemoteId) -> usize {
        self.queues.get(remote.index()).map_or(0, VecDeque::len)
    }

    /// Takes away all that waits for `remote`.
    pub(super) fn clear(&mut self, remote: RemoteId) -> VecDeque<Parcel> {
        self.active.retain(|&other| other != remote);
        let queue = self.queues.get_mut(remote.index());
        queue.map(std::mem::take).unwrap_or_default()
    }
}
