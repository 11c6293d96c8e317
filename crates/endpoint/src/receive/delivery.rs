// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Matched messages: the message goes into the receive's buffer, and the user is told.
//!
//! Called by receiving.rs and shared.rs, which match. Messages that the transport has to fetch wait
//! here until they have landed.

use slab::Slab;
use weft_contract::{AckToken, Class, Envelope, Landing, LandingToken, Peer, TransferError};
use weft_memory::{BytesView, UserBuffer};

use super::multi::{MultiId, MultiReceives, Release};
use super::unexpected::{Body, Kept, PayloadPool, Unexpected};
use crate::completion::completions::Completions;
use crate::completion::receive::{ReceiveEnd, ReceiveReports};
use crate::error::Error;
use crate::remotes::Remotes;

/// A posted receive.
pub(crate) struct PostedReceive {
    /// Empty for a multi-receive, which keeps its own.
    pub(crate) buffer: UserBuffer,
    pub(crate) context: usize,
    pub(crate) flags: u64,
    /// The multi-receive, if the receive takes several messages.
    pub(crate) multi: Option<MultiId>,
}

impl PostedReceive {
    /// A receive for one message.
    #[inline(always)]
    pub(crate) fn whole(buffer: UserBuffer, context: usize, flags: u64) -> Self {
        Self {
            buffer,
            context,
            flags,
            multi: None,
        }
    }

    /// The end of a message that fills a receive of its own. Fast path.
    #[inline(always)]
    pub(crate) fn end(&self) -> ReceiveEnd {
        ReceiveEnd {
            context: self.context,
            flags: self.flags,
            capacity_bytes: self.buffer.length_bytes(),
            address: 0,
            release: false,
        }
    }
}

/// The receive, or the part of a multi-receive, that a message goes into.
pub(crate) struct Destination {
    pub(crate) buffer: UserBuffer,
    pub(crate) end: ReceiveEnd,
    pub(crate) multi: Option<MultiId>,
}

impl Destination {
    /// A receive for one message.
    #[inline]
    pub(crate) fn whole(posted: PostedReceive) -> Self {
        Self {
            end: posted.end(),
            buffer: posted.buffer,
            multi: None,
        }
    }
}

/// A matched receive that a transport fills.
struct Filling {
    envelope: Envelope,
    end: ReceiveEnd,
    multi: Option<MultiId>,
}

/// The receives that a transport fills, the multi-receives, memory for unexpected messages, and how
/// the ends of receives are reported.
pub(crate) struct Delivery {
    pub(crate) reports: ReceiveReports,
    pub(crate) multis: MultiReceives,
    pub(crate) pool: PayloadPool,
    /// By the number in the transport's token.
    fillings: Slab<Filling>,
}

impl Delivery {
    pub(crate) fn new(reports: ReceiveReports) -> Self {
        Self {
            reports,
            multis: MultiReceives::new(),
            pool: PayloadPool::new(),
            fillings: Slab::new(),
        }
    }

    /// A copy of a message for which no receive was posted. Fast path.
    #[inline(always)]
    pub(crate) fn keep(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> Unexpected {
        Unexpected {
            kept: Kept::of(envelope),
            ack,
            body: self.pool.keep(payload),
        }
    }

    /// A copy of the payload of a message that was announced before.
    #[cold]
    pub(crate) fn body(&mut self, payload: BytesView<'_>) -> Body {
        self.pool.keep(payload)
    }

    /// Notes a receive that the transport fills; [`Self::landed`] follows.
    #[inline]
    pub(crate) fn expect(&mut self, envelope: &Envelope, destination: Destination) -> Landing {
        let Destination { buffer, end, multi } = destination;
        let number = self.fillings.insert(Filling {
            envelope: *envelope,
            end,
            multi,
        });
        Landing {
            token: LandingToken(number as u64),
            buffer,
        }
    }

    /// The transport has filled a landing, or has failed to.
    #[inline]
    pub(crate) fn landed(
        &mut self,
        remotes: &Remotes,
        completions: &mut Completions,
        landing: LandingToken,
        outcome: Result<(), TransferError>,
    ) {
        if let Some(filling) = self.fillings.try_remove(landing.0 as usize) {
            self.finish(remotes, completions, filling, outcome);
        }
    }

    /// A message has been put into a multi-receive.
    pub(crate) fn filled_part(
        &mut self,
        remotes: &Remotes,
        completions: &mut Completions,
        envelope: &Envelope,
        end: ReceiveEnd,
        multi: MultiId,
    ) {
        let filling = Filling {
            envelope: *envelope,
            end,
            multi: Some(multi),
        };
        self.finish(remotes, completions, filling, Ok(()));
    }

    /// Puts an unexpected message into the receive that matches it, and ends both.
    pub(crate) fn deliver<P: Peer>(
        &mut self,
        route: &mut P,
        remotes: &Remotes,
        completions: &mut Completions,
        message: Unexpected,
        destination: Destination,
    ) {
        let Unexpected { kept, ack, body } = message;
        let envelope = kept.envelope();
        if let Body::Offer(offer) = body {
            return route.accept(offer, self.expect(&envelope, destination));
        }
        let Destination { buffer, end, multi } = destination;
        let filling = Filling {
            envelope,
            end,
            multi,
        };
        if let Body::Void(why) = body {
            return self.finish(remotes, completions, filling, Err(why));
        }
        body.fill(&buffer, 0, envelope.length_bytes);
        self.pool.release(body);
        self.finish(remotes, completions, filling, Ok(()));
        if let Some(ack) = ack {
            route.acknowledge(ack);
        }
    }

    /// Drops an unexpected message; its sender sees it as delivered.
    pub(crate) fn drop_message<P: Peer>(&mut self, route: &mut P, message: Unexpected) {
        if let Body::Offer(offer) = message.body {
            route.discard(offer);
        } else if let Some(ack) = message.ack {
            route.acknowledge(ack);
        }
        self.pool.release(message.body);
    }

    /// Ends a matched receive. Fast path.
    #[inline]
    fn finish(
        &mut self,
        remotes: &Remotes,
        completions: &mut Completions,
        filling: Filling,
        outcome: Result<(), TransferError>,
    ) {
        let Filling {
            envelope,
            mut end,
            multi,
        } = filling;
        let released = multi.map_or(Release::Not, |multi| self.multis.end_part(multi));
        end.release = matches!(released, Release::Now);
        let reports = &mut self.reports;
        let source = reports.source(remotes, envelope.remote);
        match outcome {
            Ok(()) => reports.received(completions, &envelope, source, &end),
            Err(why) => {
                let entry = reports.entry(&envelope, source, &end);
                reports.broken(completions, entry, Error::Transfer(why));
            }
        }
        if let Release::Failed(error) = released {
            end.release = true;
            reports.failed(completions, envelope.class, &end, error);
        }
    }

    /// Ends a posted receive without a message: it was cancelled, or its remote is lost. Slow path.
    pub(crate) fn abandon(
        &mut self,
        completions: &mut Completions,
        class: Class,
        posted: &PostedReceive,
        error: Error,
    ) {
        let mut end = posted.end();
        if let Some(multi) = posted.multi {
            if !self.multis.fail(multi, error) {
                return;
            }
            end.release = true;
        }
        self.reports.failed(completions, class, &end, error);
    }
}
