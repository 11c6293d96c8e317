// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Copying an offered message straight out of what its sender shares (docs/shm-layout.md, clause
//! 11), and saying of our own messages that they lie there. Called by send, and by fetch, beside
//! single copy and pipes.
//!
//! What the sender says of its memory is a claim: memory checks the file before it is mapped, and
//! each stretch before it is copied. The worst that a liar gains is that its own message holds
//! other bytes that it shares.

use weft_contract::RemoteId;
use weft_memory::foreign_heap::Lying;
use weft_memory::{ForeignHeap, UserBuffer};
use weft_os::heap::Heap;
use weft_os::process_id::ProcessId;
use weft_os::{clock, crash_point};

use crate::choice::Method;
use crate::fetch::{PULL_BYTES, Stage};
use crate::remote::{Attached, Link, Waiting};
use crate::settings::SingleCopy;
use crate::transport::Transport;

impl Attached {
    /// The remote's shared memory, if it shows some that can be mapped; found out once.
    pub(crate) fn heap(&mut self) -> Option<&mut ForeignHeap> {
        if self.heap.is_none() {
            let claimed = Heap::of_words(self.region.heap());
            let may_be = self.pid != 0 && claimed.length_bytes != 0;
            let mapped = may_be.then(|| ForeignHeap::map(self.pid, &claimed));
            // What was mapped is the owner's only if its number is still its own.
            let owner = &self.owner.process;
            let is_its = |_: &ForeignHeap| !owner.has_ended(&ProcessId::own());
            self.heap = Some(mapped.and_then(Result::ok).filter(is_its));
        }
        self.heap.as_mut()?.as_mut()
    }
}

/// A message has a row before it if so many went to its remote, and none came from it meanwhile.
/// Chosen: the least that an exchange in both directions does not look like.
const ROW: u32 = 2;

impl Transport {
    /// Whether a long message that is about to go to a remote is one of a row. To be asked once for
    /// each.
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

    /// Whether a remote can copy a message of ours out of what we share, as far as we can tell: it
    /// lies there, and we can map what the remote shares. To be asked once for each message, since
    /// memory is shared when it was offered often enough. Fast path after the first call, but for
    /// that one.
    pub(crate) fn shows(&mut self, remote: RemoteId, payload: &UserBuffer) -> bool {
        let entry = &mut self.remotes[remote.index()];
        let (Some(own), Link::Ready(attached)) = (&self.settings.heap, &mut entry.link) else {
            return false;
        };
        if self.settings.single_copy == SingleCopy::Always || !payload.is_contiguous() {
            return false;
        }
        // What we send to ourselves is copied from one buffer to the other.
        self.own.is_at(entry.address) || (attached.heap().is_some() && own.offers(payload))
    }

    /// Puts the ends of a message that lies in what we share where its receiver finds them; false
    /// if it does not lie there. `index` is that of the send.
    pub(crate) fn puts_edges(&self, waiting: &Waiting, index: usize) -> bool {
        let own = self.settings.heap.as_ref();
        waiting.is_shown && own.is_some_and(|own| own.put_edges(&waiting.payload, index))
    }

    /// One stretch out of what the sender shares. Should that be gone, the rest comes through a
    /// pipe.
    pub(crate) fn copy_mapped(&mut self, index: usize) {
        let fetch = &mut self.transfers.fetches[index];
        if fetch.started_ns == 0 {
            fetch.started_ns = clock::monotonic_ns();
        }
        crash_point!(51, "mapped heap: about to copy");
        let count = (fetch.wanted_bytes - fetch.done_bytes).min(PULL_BYTES);
        let link = &mut self.remotes[fetch.offer.remote.index()].link;
        let copied = match (link, fetch.offer.address) {
            (Link::Ready(attached), Some(address)) => attached.heap().map_or(0, |heap| {
                let message = Lying {
                    address,
                    length_bytes: fetch.offer.length_bytes,
                    place: fetch.offer.send_id,
                };
                heap.pull(
                    &message,
                    &fetch.landing.buffer,
                    fetch.done_bytes..fetch.done_bytes + count,
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
