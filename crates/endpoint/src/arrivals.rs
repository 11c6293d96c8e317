// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The owner that a transport calls back during progress: what arrives is matched, put where it
//! belongs and told.
//!
//! Made by progress.rs for each call of [`weft_contract::Peer::progress`].

use std::net::SocketAddr;

use weft_contract::{
    AckToken, Class, Envelope, Landing, LandingToken, OfferId, Owner, RemoteId, SendToken,
    TransferError,
};
use weft_matching::PostedId;
use weft_memory::BytesView;

use crate::completion::{ReceiveEnd, Sinks};
use crate::core::{Core, Filling};
use crate::error::Error;
use crate::multi_buffer::MultiId;
use crate::one_sided;
use crate::unexpected::{Body, Kept, Unexpected};

/// The owner, as a transport sees it during one call of progress.
pub(crate) struct Arrivals<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) sinks: &'a mut Sinks,
}

impl Owner for Arrivals<'_> {
    #[inline(always)]
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> bool {
        if envelope.class != Class::Service {
            let core = &mut *self.core;
            let matcher = core.matching.of(envelope.class);
            if let Some(mut first) = matcher.find_first_posted(envelope.remote, envelope.tag)
                && first.receive().multi.is_none()
            {
                // Used where it lies: moved out, it would be read back in other widths than it was
                // written.
                let posted = first.receive();
                posted.buffer.fill(0, payload);
                let end = ReceiveEnd::whole(posted);
                first.discard();
                let source = core.report.source(&core.remotes, envelope.remote);
                core.report.received(self.sinks, envelope, source, &end);
                return true;
            }
        }
        // A copy, so that the envelope need not be in memory above.
        let envelope = *envelope;
        self.on_other_message(&envelope, payload, ack)
    }

    #[inline]
    fn on_offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing> {
        if envelope.class == Class::Service {
            return Some(self.core.serve_offer(envelope));
        }
        let matcher = self.core.matching.of(envelope.class);
        let Some(mut found) = matcher.find_posted(envelope.remote, envelope.tag) else {
            self.keep(Unexpected {
                kept: Kept::of(envelope),
                ack: None,
                body: Body::Offer(offer),
            });
            return None;
        };
        if let Some(multi) = found.receive().multi {
            let posted = found.id();
            return self.offer_into_multi(multi, posted, envelope);
        }
        let posted = found.take();
        let end = ReceiveEnd::whole(&posted);
        let token = self.core.fillings.insert(Filling {
            envelope: *envelope,
            end,
            multi: None,
        });
        Some(Landing {
            token: LandingToken(u64::from(token)),
            buffer: posted.buffer,
        })
    }

    #[inline]
    fn on_landed(&mut self, landing: LandingToken, outcome: Result<(), TransferError>) {
        if one_sided::is_ours(landing.0) {
            self.core.service_landed(self.sinks, landing.0, outcome);
        } else if let Some(filling) = self.core.fillings.remove(landing.0 as u32) {
            self.core.finish(self.sinks, filling, outcome);
        }
    }

    #[inline]
    fn on_sent(&mut self, token: SendToken, outcome: Result<(), TransferError>) {
        if one_sided::is_ours(token.0) {
            return self.core.service_sent(self.sinks, token.0, outcome);
        }
        let Some(send) = self.core.pending.remove(token.0 as u32) else {
            return;
        };
        let report = &mut self.core.report;
        match outcome {
            Ok(()) if send.silent => report.sent_silently(self.sinks),
            Ok(()) => report.sent(self.sinks, send.class, send.context, send.flags),
            Err(why) => {
                report.send_failed(self.sinks, send.class, send.context, Error::Transfer(why))
            }
        }
    }

    #[cold]
    fn on_remote_lost(&mut self, remote: RemoteId, why: TransferError) {
        let core = &mut *self.core;
        core.remotes.stop_watching(remote);
        core.drop_queued(self.sinks, remote, why);
        if let Some(one_sided) = &mut core.one_sided {
            one_sided.lost(remote, why, &mut core.report, self.sinks);
        }
        for class in [Class::Message, Class::Tagged] {
            while let Some(posted) = core.matching.of(class).remove_posted_from(remote) {
                core.abandon(self.sinks, class, &posted, Error::Transfer(why));
            }
            let is_offer = |message: &Unexpected| matches!(message.body, Body::Offer(_));
            while core
                .matching
                .of(class)
                .remove_unexpected_from(remote, is_offer)
                .is_some()
            {}
        }
        for claim in core
            .claimed
            .iter_mut()
            .filter(|claim| claim.message.kept.remote == remote)
        {
            if let Body::Offer(_) = claim.message.body {
                claim.message.body = Body::Void(why);
            }
        }
    }

    #[cold]
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        self.core.remotes.at(address).0
    }
}

impl Arrivals<'_> {
    /// A message that does not just end the earliest receive.
    #[inline(never)]
    fn on_other_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> bool {
        if envelope.class == Class::Service {
            self.core.serve(self.sinks, envelope, payload);
            return true;
        }
        let core = &mut *self.core;
        let Some(mut found) = core
            .matching
            .of(envelope.class)
            .find_posted(envelope.remote, envelope.tag)
        else {
            self.keep_message(envelope, payload, ack);
            return false;
        };
        if let Some(multi) = found.receive().multi {
            let posted = found.id();
            self.message_into_multi(multi, posted, envelope, payload);
            return true;
        }
        let posted = found.receive();
        posted.buffer.fill(0, payload);
        let end = ReceiveEnd::whole(posted);
        drop(found.take());
        let source = core.report.source(&core.remotes, envelope.remote);
        core.report.received(self.sinks, envelope, source, &end);
        true
    }

    #[inline(always)]
    fn keep_message(&mut self, envelope: &Envelope, payload: BytesView<'_>, ack: Option<AckToken>) {
        let body = self.core.pool.keep(payload);
        self.keep(Unexpected {
            kept: Kept::of(envelope),
            ack,
            body,
        });
    }

    #[inline(always)]
    fn keep(&mut self, message: Unexpected) {
        let envelope = message.kept.envelope();
        self.core.report.counts.unexpected_count += 1;
        self.core.matching.of(envelope.class).push_unexpected(
            envelope.remote,
            envelope.tag,
            message,
        );
    }

    #[inline(never)]
    fn message_into_multi(
        &mut self,
        multi: MultiId,
        posted: PostedId,
        envelope: &Envelope,
        payload: BytesView<'_>,
    ) {
        let Some(part) = self.core.multis.begin_part(multi, envelope.length_bytes) else {
            return;
        };
        if let Some(buffer) = self.core.multis.buffer(multi) {
            buffer.fill(part.offset_bytes, payload);
        }
        if part.full {
            self.core.matching.of(envelope.class).remove_posted(posted);
        }
        let filling = Filling {
            envelope: *envelope,
            end: part.end,
            multi: Some(multi),
        };
        self.core.finish(self.sinks, filling, Ok(()));
    }

    #[inline(never)]
    fn offer_into_multi(
        &mut self,
        multi: MultiId,
        posted: PostedId,
        envelope: &Envelope,
    ) -> Option<Landing> {
        let part = self.core.multis.begin_part(multi, envelope.length_bytes)?;
        let buffer = self.core.multis.part_buffer(multi, &part);
        if part.full {
            self.core.matching.of(envelope.class).remove_posted(posted);
        }
        let filling = Filling {
            envelope: *envelope,
            end: part.end,
            multi: Some(multi),
        };
        let token = LandingToken(u64::from(self.core.fillings.insert(filling)));
        Some(Landing { token, buffer })
    }
}
