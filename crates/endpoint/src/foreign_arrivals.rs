// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The owner that a transport calls back where somebody else matches: each message is offered to
//! the foreign owner. Made by progress.rs in place of arrivals.rs's.

use std::net::SocketAddr;

use weft_contract::{
    AckToken, Class, Envelope, Landing, LandingToken, OfferId, Owner, RemoteId, SendToken,
    TransferError,
};
use weft_memory::{BytesView, UserBuffer};

use crate::arrivals::Arrivals;
use crate::core::Filling;
use crate::foreign::{Foreign, ForeignMessage, Found, end_of};
use crate::unexpected::{Body, Kept, Unexpected};

/// The owner of a transport whose endpoint has a foreign owner of its receives.
pub(crate) struct ForeignArrivals<'a> {
    pub(crate) own: Arrivals<'a>,
    pub(crate) foreign: &'a mut Foreign,
}

impl ForeignArrivals<'_> {
    fn offer(&mut self, envelope: &Envelope) -> Found {
        let message = ForeignMessage {
            class: envelope.class,
            source: self.own.core.remotes.name_of(envelope.remote),
            tag: envelope.tag,
            length_bytes: envelope.length_bytes,
            cq_data: envelope.cq_data,
        };
        let number = self.foreign.kept.next();
        self.foreign.receives.offer(&message, number)
    }

    fn keep(&mut self, message: Unexpected) {
        self.own.core.report.counts.unexpected_count += 1;
        self.foreign.kept.insert(message);
    }
}

impl Owner for ForeignArrivals<'_> {
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> bool {
        if envelope.class == Class::Service {
            return self.own.on_message(envelope, payload, ack);
        }
        match self.offer(envelope) {
            Found::Receive(receive) => {
                receive.buffer.fill(0, payload);
                let core = &mut *self.own.core;
                let source = core.report.source(&core.remotes, envelope.remote);
                let end = end_of(&receive);
                core.report.received(self.own.sinks, envelope, source, &end);
                true
            }
            Found::Unexpected => {
                let body = self.own.core.pool.keep(payload);
                self.keep(Unexpected {
                    kept: Kept::of(envelope),
                    ack,
                    body,
                });
                false
            }
            Found::Refused => true,
        }
    }

    fn on_offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing> {
        if envelope.class == Class::Service {
            return self.own.on_offer(envelope, offer);
        }
        match self.offer(envelope) {
            Found::Receive(receive) => {
                let filling = Filling {
                    envelope: *envelope,
                    end: end_of(&receive),
                    multi: None,
                };
                let token = self.own.core.fillings.insert(filling);
                Some(Landing {
                    token: LandingToken(u64::from(token)),
                    buffer: receive.buffer,
                })
            }
            Found::Unexpected => {
                self.keep(Unexpected {
                    kept: Kept::of(envelope),
                    ack: None,
                    body: Body::Offer(offer),
                });
                None
            }
            // Taken, and dropped: nothing is under way by this name.
            Found::Refused => Some(Landing {
                token: LandingToken(u64::from(u32::MAX)),
                buffer: UserBuffer::empty(),
            }),
        }
    }

    fn on_landed(&mut self, landing: LandingToken, outcome: Result<(), TransferError>) {
        self.own.on_landed(landing, outcome);
    }

    fn on_sent(&mut self, token: SendToken, outcome: Result<(), TransferError>) {
        self.own.on_sent(token, outcome);
    }

    #[cold]
    fn on_remote_lost(&mut self, remote: RemoteId, why: TransferError) {
        self.foreign.kept.for_each_mut(|message| {
            if message.kept.remote == remote && matches!(message.body, Body::Offer(_)) {
                message.body = Body::Void(why);
            }
        });
        self.own.on_remote_lost(remote, why);
    }

    #[cold]
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        self.own.remote_at(address)
    }
}
