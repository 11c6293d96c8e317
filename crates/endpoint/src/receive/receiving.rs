// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receiving side of an endpoint: a receive takes the earliest unexpected message that it
//! matches, or is posted; a message takes the earliest receive that it matches, or is kept.
//!
//! Called by the endpoint and by `arrivals`; calls matching and delivery.rs. Peeks are in peek.rs.

use weft_contract::{AckToken, Class, Envelope, Landing, OfferId, Peer, RemoteId, TransferError};
use weft_matching::{Matcher, PostedId, UnexpectedId, Want};
use weft_memory::{BytesView, UserBuffer};

use super::delivery::{Delivery, Destination, PostedReceive};
use super::multi::{MultiId, Part};
use super::unexpected::{Body, Unexpected};
use crate::completion::completions::Completions;
use crate::completion::receive::ReceiveReports;
use crate::error::Error;
use crate::remotes::Remotes;
use crate::statistics::Waiting;

/// Names an unexpected message, with or without a tag.
#[derive(Clone, Copy)]
pub(crate) struct Match {
    pub(crate) class: Class,
    pub(crate) id: UnexpectedId,
}

/// A receive as it was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) class: Class,
    pub(crate) want: Want,
    pub(crate) flags: u64,
    pub(crate) context: usize,
}

/// A message that was claimed and not received yet.
pub(super) struct Claimed {
    pub(super) context: usize,
    pub(super) message: Unexpected,
}

/// The receiving side.
pub(crate) struct Receiving {
    messages: Matcher<PostedReceive, Unexpected>,
    tagged: Matcher<PostedReceive, Unexpected>,
    pub(super) claimed: Vec<Claimed>,
    pub(crate) delivery: Delivery,
}

impl Receiving {
    pub(crate) fn new(reports: ReceiveReports) -> Self {
        Self {
            messages: Matcher::new(),
            tagged: Matcher::new(),
            claimed: Vec::new(),
            delivery: Delivery::new(reports),
        }
    }

    /// Fast path.
    #[inline(always)]
    pub(crate) fn matcher(&mut self, class: Class) -> &mut Matcher<PostedReceive, Unexpected> {
        match class {
            Class::Tagged => &mut self.tagged,
            // Service messages never come here: arrivals.rs takes them before they are matched.
            Class::Message | Class::Service => &mut self.messages,
        }
    }

    /// The earliest unexpected message that a receive takes. Fast path.
    #[inline(always)]
    pub(crate) fn find(&mut self, class: Class, want: Want) -> Option<UnexpectedId> {
        self.matcher(class).find_unexpected(want)
    }

    /// Ends a receive with an unexpected message, if the message is here whole and its sender waits
    /// for no answer. That holds for nearly all; for others call [`Self::receive_other`]. The
    /// receive stays in its place, since moving it would copy it.
    #[inline(always)]
    pub(crate) fn receive(
        &mut self,
        remotes: &Remotes,
        completions: &mut Completions,
        found: Match,
        posted: &PostedReceive,
    ) -> bool {
        let matcher = self.matcher(found.class);
        let Some(message) = matcher.unexpected_mut(found.id) else {
            return false;
        };
        let (Body::Heap(bytes), None) = (&mut message.body, message.ack) else {
            return false;
        };
        // Used where it lies.
        let envelope = message.kept.envelope();
        let bytes = std::mem::take(bytes);
        matcher.discard_unexpected(found.id);
        let length_bytes = bytes.len().min(envelope.length_bytes as usize);
        let payload = BytesView::from_slice(&bytes[..length_bytes]);
        posted.buffer.fill(0, payload);
        let delivery = &mut self.delivery;
        delivery.pool.release_bytes(bytes);
        let reports = &mut delivery.reports;
        let source = reports.source(remotes, envelope.remote);
        reports.received(completions, &envelope, source, &posted.end());
        true
    }

    /// As [`Self::receive`], for a message that is not here yet, or whose sender waits
    /// for an answer.
    #[inline(never)]
    pub(crate) fn receive_other<P: Peer>(
        &mut self,
        route: &mut P,
        remotes: &Remotes,
        completions: &mut Completions,
        found: Match,
        posted: PostedReceive,
    ) {
        if let Some(message) = self.take(found) {
            let destination = Destination::whole(posted);
            self.delivery
                .deliver(route, remotes, completions, message, destination);
        }
    }

    /// Takes an unexpected message out.
    pub(super) fn take(&mut self, found: Match) -> Option<Unexpected> {
        self.matcher(found.class).remove_unexpected(found.id)
    }

    /// Opens a multi-receive, and fills it with the unexpected messages that it matches; returns
    /// the receive to post, if there is room left in it. Slow path.
    ///
    /// # Errors
    /// [`Error::Invalid`] without a buffer.
    pub(crate) fn receive_many<P: Peer>(
        &mut self,
        route: &mut P,
        remotes: &Remotes,
        completions: &mut Completions,
        asked: &Asked,
        buffer: UserBuffer,
    ) -> Result<Option<PostedReceive>, Error> {
        if buffer.length_bytes() == 0 {
            return Err(Error::Invalid);
        }
        let (context, flags) = (asked.context, asked.flags);
        let multi = self.delivery.multis.open(buffer, context, flags);
        let class = asked.class;
        while let Some(id) = self.find(class, asked.want) {
            let Some(message) = self.take(Match { class, id }) else {
                break;
            };
            let multis = &mut self.delivery.multis;
            let Some(part) = multis.begin_part(multi, message.kept.length_bytes) else {
                break;
            };
            let destination = Destination {
                buffer: multis.part_buffer(multi, &part),
                end: part.end,
                multi: Some(multi),
            };
            self.delivery
                .deliver(route, remotes, completions, message, destination);
            if part.full {
                return Ok(None);
            }
        }
        let mut posted = PostedReceive::whole(UserBuffer::empty(), context, flags);
        posted.multi = Some(multi);
        Ok(Some(posted))
    }

    /// Cancels the earliest receive posted under `context`; returns false if there is none. An
    /// error entry follows. Slow path.
    pub(crate) fn cancel(&mut self, completions: &mut Completions, context: usize) -> bool {
        for class in [Class::Tagged, Class::Message] {
            let is_it = |posted: &PostedReceive| posted.context == context;
            if let Some(posted) = self.matcher(class).cancel(is_it) {
                self.delivery
                    .abandon(completions, class, &posted, Error::Canceled);
                return true;
            }
        }
        false
    }

    /// Whether a waiting receive names `remote`.
    pub(crate) fn names(&self, remote: RemoteId) -> bool {
        self.messages.directed_count(remote) + self.tagged.directed_count(remote) > 0
    }

    /// How many receives and how many unexpected messages wait.
    pub(crate) fn waiting(&self) -> Waiting {
        Waiting {
            posted_count: self.messages.posted_count() + self.tagged.posted_count(),
            unexpected_count: self.messages.unexpected_count() + self.tagged.unexpected_count(),
        }
    }

    /// Ends the earliest posted receive with a message, if they match; returns false if the caller
    /// must call [`Self::message`]. Fast path.
    #[inline(always)]
    pub(crate) fn end_first(
        &mut self,
        remotes: &Remotes,
        completions: &mut Completions,
        envelope: &Envelope,
        payload: BytesView<'_>,
    ) -> bool {
        let matcher = self.matcher(envelope.class);
        let Some(mut first) = matcher.find_first_posted(envelope.remote, envelope.tag) else {
            return false;
        };
        // Used where it lies: moved out, it would be read back in other widths than it was written.
        let posted = first.receive();
        if posted.multi.is_some() || !posted.buffer.is_contiguous() {
            return false;
        }
        posted.buffer.fill(0, payload);
        let end = posted.end();
        // A buffer in one piece owns nothing.
        first.forget();
        let reports = &mut self.delivery.reports;
        let source = reports.source(remotes, envelope.remote);
        reports.received(completions, envelope, source, &end);
        true
    }

    /// Takes a message that is here whole; returns false if it is kept as unexpected.
    pub(crate) fn message(
        &mut self,
        remotes: &Remotes,
        completions: &mut Completions,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> bool {
        let matcher = self.matcher(envelope.class);
        let Some(mut found) = matcher.find_posted(envelope.remote, envelope.tag) else {
            let message = self.delivery.keep(envelope, payload, ack);
            self.keep(message);
            return false;
        };
        if let Some(multi) = found.receive().multi {
            let posted = found.id();
            if let Some(part) = self.begin_part(multi, posted, envelope) {
                let delivery = &mut self.delivery;
                if let Some(buffer) = delivery.multis.buffer(multi) {
                    buffer.fill(part.offset_bytes, payload);
                }
                delivery.filled_part(remotes, completions, envelope, part.end, multi);
            }
            return true;
        }
        let posted = found.receive();
        posted.buffer.fill(0, payload);
        let end = posted.end();
        drop(found.take());
        let reports = &mut self.delivery.reports;
        let source = reports.source(remotes, envelope.remote);
        reports.received(completions, envelope, source, &end);
        true
    }

    /// Takes the announcement of a message; returns its landing if a receive waits for it.
    #[inline]
    pub(crate) fn offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing> {
        let matcher = self.matcher(envelope.class);
        let Some(mut found) = matcher.find_posted(envelope.remote, envelope.tag) else {
            self.keep(Unexpected::offered(envelope, offer));
            return None;
        };
        let destination = match found.receive().multi {
            None => Destination::whole(found.take()),
            Some(multi) => {
                let posted = found.id();
                let part = self.begin_part(multi, posted, envelope)?;
                Destination {
                    buffer: self.delivery.multis.part_buffer(multi, &part),
                    end: part.end,
                    multi: Some(multi),
                }
            }
        };
        Some(self.delivery.expect(envelope, destination))
    }

    /// Takes the beginning of a message; returns its landing if a receive for one message waits
    /// for it.
    #[inline]
    pub(crate) fn begin(&mut self, envelope: &Envelope) -> Option<Landing> {
        let matcher = self.matcher(envelope.class);
        let mut found = matcher.find_posted(envelope.remote, envelope.tag)?;
        if found.receive().multi.is_some() {
            return None;
        }
        let destination = Destination::whole(found.take());
        Some(self.delivery.expect(envelope, destination))
    }

    #[inline(always)]
    fn keep(&mut self, message: Unexpected) {
        let envelope = message.kept.envelope();
        self.delivery.reports.counts.unexpected_count += 1;
        let matcher = self.matcher(envelope.class);
        matcher.push_unexpected(envelope.remote, envelope.tag, message);
    }

    /// Takes room for a message in a multi-receive, which leaves matching when it is full.
    #[inline(never)]
    fn begin_part(
        &mut self,
        multi: MultiId,
        posted: PostedId,
        envelope: &Envelope,
    ) -> Option<Part> {
        let multis = &mut self.delivery.multis;
        let part = multis.begin_part(multi, envelope.length_bytes)?;
        if part.full {
            self.matcher(envelope.class).remove_posted(posted);
        }
        Some(part)
    }

    /// The payload of an announced message is here: it is kept as any unexpected message is.
    #[cold]
    pub(crate) fn arrived(&mut self, remote: RemoteId, offer: OfferId, payload: BytesView<'_>) {
        let is_it = |message: &Unexpected| message.is_offered_as(offer);
        for class in [Class::Message, Class::Tagged] {
            let matcher = self.matcher(class);
            let Some(id) = matcher.find_unexpected_from(remote, is_it) else {
                continue;
            };
            let body = self.delivery.body(payload);
            if let Some(message) = self.matcher(class).unexpected_mut(id) {
                message.body = body;
            }
            return;
        }
        let mut claimed = self.claimed.iter_mut().map(|claim| &mut claim.message);
        if let Some(message) = claimed.find(|message| is_it(message)) {
            message.body = self.delivery.body(payload);
        }
    }

    /// A remote is lost: receives that name it fail, and messages that it only announced are void.
    #[cold]
    pub(crate) fn remote_lost(
        &mut self,
        completions: &mut Completions,
        remote: RemoteId,
        why: TransferError,
    ) {
        for class in [Class::Message, Class::Tagged] {
            while let Some(posted) = self.matcher(class).remove_posted_from(remote) {
                let error = Error::Transfer(why);
                self.delivery.abandon(completions, class, &posted, error);
            }
            let is_offer = |message: &Unexpected| matches!(message.body, Body::Offer(_));
            let matcher = self.matcher(class);
            while matcher.remove_unexpected_from(remote, is_offer).is_some() {}
        }
        for claim in &mut self.claimed {
            claim.message.lose(remote, why);
        }
    }
}
