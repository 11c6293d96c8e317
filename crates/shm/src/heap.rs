// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Copying an offered message straight out of its sender's heap (docs/shm-layout.md, clause 11), which is mapped once for each remote.
//! Called by rendezvous, beside single copy and pipes.
//!
//! What the sender says of its heap is a claim: memory checks the file before it is mapped, and each stretch before it is copied. The
//! worst that a liar gains is that its own message holds other bytes of its own heap.

use weft_contract::RemoteId;
use weft_memory::{ForeignHeap, UserBuffer};
use weft_os::heap::Heap;
use weft_os::process_id::ProcessId;
use weft_os::{clock, crash_point};

use crate::choice::Method;
use crate::fetch::{PULL_BYTES, Stage};
use crate::remote::{Attached, Link};
use crate::settings::SingleCopy;
use crate::transport::Transport;

impl Attached {
    /// The remote's heap, if it shows one that can be mapped; found out once.
    pub(crate) fn heap(&mut self) -> Option<&ForeignHeap> {
        if self.heap.is_none() {
            let [base, length_bytes, descriptor, inode] = self.region.heap();
            let claimed = Heap {
                base,
                length_bytes,
                descriptor,
                inode,
            };
            let may_be = self.pid != 0 && length_bytes != 0;
            let mapped = may_be.then(|| ForeignHeap::map(self.pid, &claimed));
            // What was mapped is the owner's only if its number is still its own.
            let owner = &self.owner.process;
            let is_its = |_: &ForeignHeap| !owner.has_ended(&ProcessId::own());
            self.heap = Some(mapped.and_then(Result::ok).filter(is_its));
        }
        self.heap.as_ref()?.as_ref()
    }
}

/// A message has a row before it if so many went to its remote, and none came from it meanwhile. Chosen: the least that an exchange in
/// both directions does not look like.
const ROW: u32 = 2;

impl Transport {
    /// Whether a long message that is about to go to a remote is one of a row. To be asked once for each.
    pub(crate) fn is_in_a_row(&mut self, remote: RemoteId) -> bool {
        let entry = &mut self.remotes[remote.index()];
        let inbound = entry.inbound.and_then(|slot| self.inbound[slot].as_ref());
        let heard_bytes = inbound.map_or(0, |lane| lane.counts.bytes);
        let Link::Ready(attached) = &mut entry.link else {
            return false;
        };
        if attached.heard_bytes != heard_bytes {
            (attached.heard_bytes, attached.row) = (heard_bytes, 0);
            return false;
        }
        attached.row = attached.row.saturating_add(1);
        attached.row >= ROW
    }

    /// Whether a remote can copy a message of ours out of our heap, as far as we can tell: it lies there, and we can map the remote's. Fast path
    /// after the first call.
    pub(crate) fn shows(&mut self, remote: RemoteId, payload: &UserBuffer) -> bool {
        let Some(own) = self.settings.heap else {
            return false;
        };
        let may_be = self.settings.single_copy != SingleCopy::Always;
        let address = payload.address() as u64;
        let is_there = payload.is_contiguous()
            && own
                .offset_of(address, payload.length_bytes() as u64)
                .is_some();
        match &mut self.remotes[remote.index()].link {
            Link::Ready(attached) => may_be && is_there && attached.heap().is_some(),
            _ => false,
        }
    }

    /// One stretch out of the sender's heap. Should the heap be gone, the rest comes through a pipe.
    pub(crate) fn copy_mapped(&mut self, index: usize) {
        let fetch = &mut self.transfers.fetches[index];
        if fetch.started_ns == 0 {
            fetch.started_ns = clock::monotonic_ns();
        }
        crash_point!(51, "mapped heap: about to copy");
        let count = (fetch.wanted_bytes - fetch.done_bytes).min(PULL_BYTES);
        let address = fetch.offer.address.wrapping_add(fetch.done_bytes as u64);
        let copied = match &mut self.remotes[fetch.offer.remote.index()].link {
            Link::Ready(attached) => attached.heap().map_or(0, |heap| {
                heap.pull(
                    address,
                    &fetch.landing.buffer,
                    (fetch.done_bytes, count),
                    fetch.method == Method::MappedPastCache,
                )
            }),
            _ => 0,
        };
        fetch.done_bytes += copied;
        if copied == 0 {
            fetch.stage = Stage::AwaitPipe;
            fetch.method = Method::Pipelined;
        }
    }
}

#[cfg(test)]
mod tests;
