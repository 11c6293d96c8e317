// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The owner that a transport calls back during progress: it passes each event on to the part of
//! the endpoint that the event belongs to.
//!
//! Made by endpoint.rs for each call of [`weft_contract::Peer::progress`].

use std::net::SocketAddr;

use weft_contract::{
    AckToken, Class, Envelope, Landing, LandingToken, OfferId, Owner, RemoteId, SendToken,
    TransferError,
};
use weft_memory::BytesView;

use super::core::Core;
use crate::one_sided::token;
use crate::shared_objects::SharedObjects;

/// The owner, as a transport sees it during one call of progress.
pub(super) struct Arrivals<'a> {
    pub(super) core: &'a mut Core,
    pub(super) objects: &'a mut SharedObjects,
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
            let Core {
                remotes, receiving, ..
            } = &mut *self.core;
            let completions = &mut self.objects.completions;
            if receiving.end_first(remotes, completions, envelope, payload) {
                return true;
            }
        }
        // A copy, so that the compiler need not keep the envelope in memory in the caller.
        let envelope = *envelope;
        self.on_other_message(&envelope, payload, ack)
    }

    #[inline]
    fn on_offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing> {
        if envelope.class == Class::Service {
            return Some(self.core.service(self.objects).offer(envelope));
        }
        self.core.receiving.offer(envelope, offer)
    }

    #[inline]
    fn on_begun(&mut self, envelope: &Envelope) -> Option<Landing> {
        if envelope.class == Class::Service {
            return None;
        }
        self.core.receiving.begin(envelope)
    }

    #[inline]
    fn on_landed(&mut self, landing: LandingToken, outcome: Result<(), TransferError>) {
        let core = &mut *self.core;
        if token::is_ours(landing.0) {
            return core.service(self.objects).landed(landing.0, outcome);
        }
        let delivery = &mut core.receiving.delivery;
        let completions = &mut self.objects.completions;
        delivery.landed(&core.remotes, completions, landing, outcome);
    }

    #[inline]
    fn on_sent(&mut self, token: SendToken, outcome: Result<(), TransferError>) {
        if token::is_ours(token.0) {
            return self.core.service(self.objects).sent(token.0, outcome);
        }
        let completions = &mut self.objects.completions;
        self.core.sending.sent(completions, token, outcome);
    }

    #[cold]
    fn on_arrived(&mut self, remote: RemoteId, offer: OfferId, payload: BytesView<'_>) {
        self.core.receiving.arrived(remote, offer, payload);
    }

    #[cold]
    fn on_remote_lost(&mut self, remote: RemoteId, why: TransferError) {
        let completions = &mut self.objects.completions;
        self.core.remote_lost(completions, remote, why);
    }

    #[cold]
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        self.core.remotes.at(address).0
    }
}

impl Arrivals<'_> {
    /// Takes a message that does not simply end the earliest posted receive.
    #[inline(never)]
    fn on_other_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> bool {
        let core = &mut *self.core;
        if envelope.class == Class::Service {
            core.service(self.objects).message(envelope, payload);
            return true;
        }
        let completions = &mut self.objects.completions;
        let receiving = &mut core.receiving;
        receiving.message(&core.remotes, completions, envelope, payload, ack)
    }
}
