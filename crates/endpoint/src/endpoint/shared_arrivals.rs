// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The owner that a transport calls back where a shared receive context matches: each message is
//! offered to it. Made by endpoint.rs in place of the owner of arrivals.rs.

use std::net::SocketAddr;

use weft_contract::{
    AckToken, Class, Envelope, Landing, LandingToken, OfferId, Owner, RemoteId, SendToken,
    TransferError,
};
use weft_memory::{BytesView, UserBuffer};

use super::arrivals::Arrivals;
use crate::receive::shared::{Found, SharedReceives};
use crate::receive::unexpected::Unexpected;

/// The owner of a transport whose endpoint has a shared receive context.
pub(super) struct SharedArrivals<'a> {
    pub(super) own: Arrivals<'a>,
    pub(super) shared: &'a mut SharedReceives,
}

impl SharedArrivals<'_> {
    fn keep(&mut self, message: Unexpected) {
        let reports = &mut self.own.core.receiving.delivery.reports;
        reports.counts.unexpected_count += 1;
        self.shared.keep(message);
    }
}

impl Owner for SharedArrivals<'_> {
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> bool {
        if envelope.class == Class::Service {
            return self.own.on_message(envelope, payload, ack);
        }
        let core = &mut *self.own.core;
        match self.shared.offer(&core.remotes, envelope) {
            Found::Receive(receive) => {
                receive.buffer.fill(0, payload);
                let end = receive.destination().end;
                let reports = &mut core.receiving.delivery.reports;
                let source = reports.source(&core.remotes, envelope.remote);
                let completions = &mut self.own.objects.completions;
                reports.received(completions, envelope, source, &end);
                true
            }
            Found::Unexpected => {
                let message = core.receiving.delivery.keep(envelope, payload, ack);
                self.keep(message);
                false
            }
            Found::Refused => true,
        }
    }

    fn on_offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing> {
        if envelope.class == Class::Service {
            return self.own.on_offer(envelope, offer);
        }
        let core = &mut *self.own.core;
        match self.shared.offer(&core.remotes, envelope) {
            Found::Receive(receive) => {
                let delivery = &mut core.receiving.delivery;
                Some(delivery.expect(envelope, receive.destination()))
            }
            Found::Unexpected => {
                self.keep(Unexpected::offered(envelope, offer));
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
    fn on_arrived(&mut self, _: RemoteId, offer: OfferId, payload: BytesView<'_>) {
        let delivery = &mut self.own.core.receiving.delivery;
        self.shared.arrived(offer, || delivery.body(payload));
    }

    #[cold]
    fn on_remote_lost(&mut self, remote: RemoteId, why: TransferError) {
        self.shared.remote_lost(remote, why);
        self.own.on_remote_lost(remote, why);
    }

    #[cold]
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        self.own.remote_at(address)
    }
}
