// SPDX-License-Identifier: Apache-2.0 OR MIT
//! By which method each described message is copied: gathers the facts, has the table select, and
//! has the fastest one found where several are open. Called by fetches and by what asks for the
//! rest of a message with early data.

use std::time::{Duration, Instant};

use weft_memory::UserBuffer;

use crate::contact::attached::Attached;
use crate::contact::contacts::Contacts;
use crate::copy::bidirectional::{Coming, Exchanges};
use crate::copy::offer::RemoteOffer;
use crate::protocol::copy_method::{CopyMethod, Facts, Selection, select};
use crate::send::sends::Sends;
use crate::settings::SingleCopy;
use crate::tuner::copies::{CopyTuner, Lesson};

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

/// What is known of the methods, and what the user permits.
#[derive(Debug)]
pub(crate) struct CopyMethods {
    tuner: CopyTuner,
    exchanges: Exchanges,
    single_copy: SingleCopy,
}

impl CopyMethods {
    pub(crate) fn new(single_copy: SingleCopy) -> Self {
        Self {
            tuner: CopyTuner::new(),
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
    ) -> (CopyMethod, Lesson) {
        let facts = Facts {
            bytes: wanted.bytes,
            is_mapped: offer.is_shared
                && can(contacts, offer, |attached| attached.heap().is_some()),
            is_contiguous: wanted.is_contiguous,
            asked: self.single_copy,
            shares_cores: contacts.own.node().shares_cores,
        };
        let may_read =
            || offer.address.is_some() && can(contacts, offer, |attached| attached.may_be_read());
        let open = match select(&facts, may_read) {
            Selection::Fixed(method) => return (method, Lesson::Unidirectional),
            Selection::Tuned(open) => open,
        };
        let (remote, bytes) = (offer.remote, wanted.bytes);
        let is_bidirectional = self.exchanges.is_bidirectional(sends, remote, bytes);
        let coming = Coming {
            remote,
            bytes,
            depth: is_bidirectional.then_some(wanted.depth),
        };
        let tuner = &mut self.tuner;
        self.exchanges.choose(tuner, contacts, coming, open)
    }

    /// Learns that a transfer of `bytes` took so long.
    pub(crate) fn learn(
        &mut self,
        method: CopyMethod,
        bytes: u64,
        elapsed: Duration,
        lesson: Lesson,
    ) {
        self.tuner.learn(method, bytes, elapsed, lesson);
    }

    /// What a transfer that began then and ends now is charged: the time since the last one ended.
    pub(crate) fn charge(&mut self, started: Option<Instant>, now: Instant) -> Duration {
        self.exchanges.charge(started, now)
    }

    /// What tools are shown of a size class.
    pub(crate) fn published(&self, class: usize) -> u8 {
        self.tuner.published(class)
    }
}

/// Whether this is so of the sender of a message, once it is in contact.
fn can(
    contacts: &mut Contacts,
    offer: &RemoteOffer,
    is_so: impl FnOnce(&mut Attached) -> bool,
) -> bool {
    contacts.contact(offer.remote);
    let attached = contacts.remote_mut(offer.remote).attached_mut();
    attached.is_some_and(is_so)
}
