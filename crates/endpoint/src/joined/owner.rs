// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stands between one of two joined transports and their owner: marks whose offers and receipts are whose, and notes
//! remotes that contacted us first. All else is passed on as it is.
//!
//! Made by joined.rs for each call of progress.

use std::net::SocketAddr;

use weft_contract::{
    AckToken, Envelope, Landing, LandingToken, OfferId, Owner, RemoteId, SendToken, TransferError,
    TurnedAway,
};
use weft_memory::BytesView;

use super::detour::News;
use super::ways::{Way, Ways};

/// The owner as one transport sees it.
pub(super) struct Between<'a, O> {
    pub(super) owner: &'a mut O,
    pub(super) ways: &'a mut Ways,
    pub(super) unshared: &'a mut Vec<News>,
    /// Added to offers and receipts.
    pub(super) mark: u64,
}

impl<O: Owner> Owner for Between<'_, O> {
    #[inline(always)]
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> bool {
        let ack = ack.map(|ack| AckToken(ack.0 | self.mark));
        self.owner.on_message(envelope, payload, ack)
    }

    #[inline(always)]
    fn on_offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing> {
        self.owner.on_offer(envelope, OfferId(offer.0 | self.mark))
    }

    #[inline(always)]
    fn on_landed(&mut self, landing: LandingToken, outcome: Result<(), TransferError>) {
        self.owner.on_landed(landing, outcome);
    }

    #[inline(always)]
    fn on_sent(&mut self, token: SendToken, outcome: Result<(), TransferError>) {
        self.owner.on_sent(token, outcome);
    }

    #[cold]
    fn on_remote_lost(&mut self, remote: RemoteId, why: TransferError) {
        for send in self.ways.detours.give_up(remote) {
            self.owner.on_sent(send.op.token, Err(why));
        }
        self.owner.on_remote_lost(remote, why);
    }

    #[cold]
    fn on_turned_away(&mut self, turned: TurnedAway) {
        let (remote, was_watched) = (turned.remote, turned.was_watched);
        self.unshared.push(News::TurnedAway(remote, was_watched));
        if !self.ways.has_network {
            return self.owner.on_turned_away(turned);
        }
        self.ways.ways[remote.index()] = Way::Detour;
        self.ways.detours.add(remote, turned.sends);
    }

    #[cold]
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        let remote = self.owner.remote_at(address);
        if remote.index() == self.ways.ways.len() {
            self.ways.add(remote, address);
            self.unshared.push(News::Met(remote, address));
        }
        remote
    }
}
