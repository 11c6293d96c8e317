// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Progress: drives transports, and is the owner that they call back.
//!
//! Called when a queue or counter is read, and by the provider; calls [`weft_contract::Peer::progress`].

use std::net::SocketAddr;

use weft_contract::{
    AckToken, Class, Envelope, Landing, LandingToken, OfferId, Owner, RemoteId, SendToken,
    TransferError,
};
use weft_matching::PostedId;
use weft_memory::BytesView;

use crate::completion::{ReceiveEnd, Sinks};
use crate::core::{Core, Filling};
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::foreign::{Foreign, ForeignArrivals};
use crate::ids::{CounterId, EndpointId, QueueId};
use crate::multi_receive::MultiId;
use crate::one_sided;
use crate::route::LocalRoute;
use crate::unexpected::{Body, Kept, Unexpected};

/// Idle reads of queues before the domain's other endpoints have a round. Chosen: a read that waits hardly notices.
const IDLE_READS_PER_ROUND: u32 = 16;

impl<P: LocalRoute> Domain<P> {
    /// Moves all that can move on one endpoint without waiting; answers how many events there were.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    #[inline]
    pub fn progress(&mut self, endpoint: EndpointId) -> Result<usize, Error> {
        Ok(self
            .endpoints
            .get_mut(endpoint.0)
            .ok_or(Error::NoSuch)?
            .progress(&mut self.sinks))
    }

    /// Drives all endpoints bound to a queue, most often one. False if nothing can have been reported. Fast path.
    #[inline(always)]
    pub(crate) fn progress_queue(&mut self, queue: QueueId) -> bool {
        let Some(known) = self.sinks.queues.get(queue.0) else {
            return false;
        };
        let [endpoint] = known.bound[..] else {
            self.progress_queue_of_many(queue);
            return true;
        };
        let Some(endpoint) = self.endpoints.get_mut(endpoint.0) else {
            return false;
        };
        let passed = endpoint.pass();
        let was_idle = passed || endpoint.make_progress(&mut self.sinks) == 0;
        if was_idle && self.endpoints.count() > 1 && self.others_are_due() {
            self.progress_all();
            return true;
        }
        !passed
    }

    #[inline(never)]
    fn progress_queue_of_many(&mut self, queue: QueueId) {
        let mut index = 0;
        let mut event_count = 0;
        while let Some(&endpoint) = self
            .sinks
            .queues
            .get(queue.0)
            .and_then(|queue| queue.bound.get(index))
        {
            if let Some(endpoint) = self.endpoints.get_mut(endpoint.0) {
                event_count += endpoint.progress(&mut self.sinks);
            }
            index += 1;
        }
        if event_count == 0 && index < self.endpoints.count() && self.others_are_due() {
            self.progress_all();
        }
    }

    /// An endpoint owes answers also when its own queue is not read: its remotes may wait for them, while this process waits
    /// on another endpoint for just those remotes.
    #[inline(always)]
    pub(crate) fn others_are_due(&mut self) -> bool {
        self.idle_reads_count = self.idle_reads_count.wrapping_add(1);
        self.idle_reads_count % IDLE_READS_PER_ROUND == 0
    }

    /// Drives all endpoints bound to a counter.
    pub(crate) fn progress_counter(&mut self, counter: CounterId) {
        let Some(known) = self.sinks.counters.get(counter.0) else {
            return;
        };
        if known.bound.is_empty() {
            // It may count what comes to a region, by any endpoint.
            self.progress_all();
            return;
        }
        let mut index = 0;
        while let Some(&endpoint) = self
            .sinks
            .counters
            .get(counter.0)
            .and_then(|counter| counter.bound.get(index))
        {
            if let Some(endpoint) = self.endpoints.get_mut(endpoint.0) {
                endpoint.progress(&mut self.sinks);
            }
            index += 1;
        }
    }
}

impl<P: LocalRoute> Endpoint<P> {
    /// Lets a round of progress pass, if there is nothing to do in it; else says false. Fast path.
    #[inline(always)]
    pub(crate) fn pass(&mut self) -> bool {
        let Some(local) = &mut self.local else {
            return true;
        };
        if self.core.has_chores || !local.pass() {
            return false;
        }
        self.count_idle_round();
        true
    }

    #[inline(always)]
    pub(crate) fn progress(&mut self, sinks: &mut Sinks) -> usize {
        if self.pass() {
            return 0;
        }
        self.make_progress(sinks)
    }

    #[inline(never)]
    pub(crate) fn make_progress(&mut self, sinks: &mut Sinks) -> usize {
        let Some(local) = &mut self.local else {
            return 0;
        };
        let core = &mut self.core;
        let own = Arrivals { core, sinks };
        let mut count = match &mut self.foreign {
            None => local.progress(&mut { own }),
            Some(foreign) => progress_foreign(local, own, foreign),
        };
        if self.core.has_chores {
            count += do_chores(local, &mut self.core, sinks);
        }
        if count == 0 {
            self.count_idle_round();
        }
        count
    }
}

/// Posts sends that waited for room, and what one-sided operations have gathered.
#[inline(never)]
fn do_chores<P: LocalRoute>(local: &mut P, core: &mut Core, sinks: &mut Sinks) -> usize {
    let mut count = 0;
    // Answers first: who queues sends without end must not keep its remotes from theirs.
    if let Some(one_sided) = &mut core.one_sided
        && one_sided.has_parcels()
    {
        count += one_sided.send_parcels(local, &mut core.report, sinks);
    }
    if !core.backlog.is_empty() {
        count += core.send_queued(local, sinks);
    }
    core.has_chores = core.one_sided.is_some() || !core.backlog.is_empty();
    count
}

/// Progress of an endpoint whose messages somebody else matches.
#[inline(never)]
fn progress_foreign<P: LocalRoute>(
    local: &mut P,
    own: Arrivals<'_>,
    foreign: &mut Foreign,
) -> usize {
    local.progress(&mut ForeignArrivals { own, foreign })
}

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
                // Used where it lies: moved out, it would be read back in other widths than it was written.
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
        let Some(part) = self.core.begin_part(multi, envelope.length_bytes) else {
            return;
        };
        if let Some(buffer) = self.core.multi_buffer(multi) {
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
        let part = self.core.begin_part(multi, envelope.length_bytes)?;
        let buffer = self.core.part_buffer(multi, &part);
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
