// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which ways are open to an offered message: whether its sender's memory may be read by system
//! call, or is mapped here. Called by rendezvous and direct; choice then picks one.

use weft_contract::RemoteId;
use weft_memory::{UserBuffer, single_copy};

use crate::choice::{Lesson, Method, Open, prefers_single_copy};
use crate::remote::Link;
use crate::rendezvous::RemoteOffer;
use crate::settings::SingleCopy;
use crate::transport::Transport;

/// Longest message that is copied out of a mapped heap through the cache, without measuring copies
/// past it. Measured: docs/lab/2026-11-22-mapped-copy.md; the receiver's time alone, which is what
/// can be measured here, is in favour of the slower one up to there.
const MAPPED_PLAIN_BYTES: u64 = 2 << 20;

impl Transport {
    /// How the first `bytes` bytes of an offered message come into this buffer, and what that will
    /// teach.
    pub(crate) fn method_for(
        &mut self,
        offer: &RemoteOffer,
        buffer: &UserBuffer,
        bytes: u64,
    ) -> (Method, Lesson) {
        let may_map = self.settings.single_copy != SingleCopy::Always && self.may_map(offer);
        // As single copy is taken without measuring where ranks share processors.
        if may_map && (bytes <= MAPPED_PLAIN_BYTES || self.housekeeping.shares_cores) {
            return (Method::Mapped, Lesson::OneWay);
        }
        let may_single_copy = offer.address.is_some() && self.may_single_copy(offer.remote);
        if may_single_copy
            && prefers_single_copy(self.settings.single_copy, self.housekeeping.shares_cores)
        {
            return (Method::SingleCopy, Lesson::OneWay);
        }
        let open = Open {
            single_copy: may_single_copy,
            shared: may_single_copy && buffer.is_contiguous(),
            mapped: may_map,
        };
        self.choose(offer.remote, bytes, open)
    }

    /// Whether the remote's memory may be read; found out by reading a word of it, once.
    pub(crate) fn may_single_copy(&mut self, remote: RemoteId) -> bool {
        if self.settings.single_copy == SingleCopy::Never {
            return false;
        }
        self.contact(remote);
        let Link::Ready(attached) = &mut self.remotes[remote.index()].link else {
            return false;
        };
        *attached.single_copy.get_or_insert_with(|| {
            let (address, value) = attached.region.probe();
            attached.pid != 0 && single_copy::can_read(attached.pid, address, value)
        })
    }

    /// Whether an offered message lies where we can map it.
    pub(crate) fn may_map(&mut self, offer: &RemoteOffer) -> bool {
        if !offer.is_shared {
            return false;
        }
        self.contact(offer.remote);
        let Link::Ready(attached) = &mut self.remotes[offer.remote.index()].link else {
            return false;
        };
        attached.heap().is_some()
    }
}
