// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Copying an offered message straight out of its sender's heap (docs/shm-layout.md, clause 11), which is mapped once for each remote.
//! Called by rendezvous, beside single copy and pipes.
//!
//! What the sender says of its heap is a claim: memory checks the file before it is mapped, and each stretch before it is copied. The
//! worst that a liar gains is that its own message holds other bytes of its own heap.

use weft_memory::ForeignHeap;
use weft_os::heap::Heap;
use weft_os::{clock, crash_point};

use crate::choice::Method;
use crate::fetch::{PULL_BYTES, Stage};
use crate::remote::{Attached, Link};
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
            self.heap = Some(mapped.and_then(Result::ok));
        }
        self.heap.as_ref()?.as_ref()
    }
}

impl Transport {
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
