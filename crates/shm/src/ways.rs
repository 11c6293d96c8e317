// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which ways are open to an offered message: whether its sender's memory may be read by system
//! call, or is mapped here. Called by rendezvous and direct; choice then picks one.

use weft_memory::UserBuffer;

use crate::both_ways::{Coming, Exchanges};
use crate::choice::{Choice, Lesson, Method, Open, prefers_single_copy};
use crate::contact::attached::Attached;
use crate::contact::contacts::Contacts;
use crate::copy::offer::RemoteOffer;
use crate::send::sends::Sends;
use crate::settings::SingleCopy;

/// Longest message that is copied out of a mapped heap through the cache, without measuring copies
/// past it. Measured: docs/lab/2026-11-22-mapped-copy.md; the receiver's time alone, which is what
/// can be measured here, is in favour of the slower one up to there.
const MAPPED_PLAIN_BYTES: u64 = 2 << 20;

/// What is wanted of a described message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    bytes: u64,
    /// Where it goes is one stretch.
    is_contiguous: bool,
    /// How many messages of its sender are under way.
    depth: usize,
}

impl Wanted {
    pub(crate) fn of(bytes: usize, buffer: &UserBuffer, depth: usize) -> Self {
        Self {
            bytes: bytes as u64,
            is_contiguous: buffer.is_contiguous(),
            depth,
        }
    }
}

/// What is known of the ways, and what the user permits.
#[derive(Debug)]
pub(crate) struct Ways {
    choice: Choice,
    exchanges: Exchanges,
    single_copy: SingleCopy,
}

impl Ways {
    pub(crate) fn new(single_copy: SingleCopy) -> Self {
        Self {
            choice: Choice::new(),
            exchanges: Exchanges::default(),
            single_copy,
        }
    }

    /// How the first bytes of a described message come in, and what that will teach.
    pub(crate) fn choose(
        &mut self,
        contacts: &mut Contacts,
        sends: &mut Sends,
        offer: &RemoteOffer,
        wanted: &Wanted,
    ) -> (Method, Lesson) {
        let shares_cores = contacts.own.node().shares_cores;
        let may_map = self.single_copy != SingleCopy::Always && may_map(contacts, offer);
        // As single copy is taken without measuring where ranks share processors.
        if may_map && (wanted.bytes <= MAPPED_PLAIN_BYTES || shares_cores) {
            return (Method::Mapped, Lesson::OneWay);
        }
        let may_single_copy = offer.address.is_some() && self.may_single_copy(contacts, offer);
        if may_single_copy && prefers_single_copy(self.single_copy, shares_cores) {
            return (Method::SingleCopy, Lesson::OneWay);
        }
        let open = Open {
            single_copy: may_single_copy,
            shared: may_single_copy && wanted.is_contiguous,
            mapped: may_map,
        };
        let bytes = wanted.bytes;
        let goes_both_ways = self.exchanges.goes_both_ways(sends, offer.remote, bytes);
        let coming = Coming {
            remote: offer.remote,
            bytes,
            depth: goes_both_ways.then_some(wanted.depth),
        };
        self.exchanges
            .choose(&mut self.choice, contacts, coming, open)
    }

    /// Whether the sender's memory may be read.
    fn may_single_copy(&self, contacts: &mut Contacts, offer: &RemoteOffer) -> bool {
        if self.single_copy == SingleCopy::Never {
            return false;
        }
        contacts.contact(offer.remote);
        let attached = contacts.remote_mut(offer.remote).attached_mut();
        attached.is_some_and(Attached::may_be_read)
    }

    /// Learns that a transfer of `bytes` took so long.
    pub(crate) fn learn(&mut self, method: Method, bytes: u64, elapsed_ns: u64, lesson: Lesson) {
        self.choice.learn(method, bytes, elapsed_ns, lesson);
    }

    /// What a transfer that began then and ends now is charged: the time since the last one ended.
    pub(crate) fn charge(&mut self, started_ns: u64, now_ns: u64) -> u64 {
        self.exchanges.charge(started_ns, now_ns)
    }

    /// What tools are shown of a size class.
    pub(crate) fn published(&self, class: usize) -> u8 {
        self.choice.published(class)
    }
}

/// Whether an offered message lies where we can map it.
fn may_map(contacts: &mut Contacts, offer: &RemoteOffer) -> bool {
    if !offer.is_shared {
        return false;
    }
    contacts.contact(offer.remote);
    let attached = contacts.remote_mut(offer.remote).attached_mut();
    attached.is_some_and(|attached| attached.heap().is_some())
}
