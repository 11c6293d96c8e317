// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Between one route of a list and the owner: marks the route's offers and receipts, keeps what it
//! gives back, and notes remotes that contacted us first. All else is passed on as it is.
//!
//! Made by routes.rs for each call of progress.

use std::net::SocketAddr;

use weft_contract::{
    AckToken, Envelope, Landing, LandingToken, OfferId, Owner, ROUTE_ID_BITS, RemoteId, SendToken,
    TransferError, TurnedAway,
};
use weft_memory::BytesView;

use super::rerouted::ReroutedSends;
use super::routing::RoutingTable;

/// What one route has told of a remote, and the others are to learn.
#[derive(Debug)]
pub(super) enum News {
    /// It contacted us first.
    Met(RemoteId, SocketAddr),
    /// The route does not reach it; whether its death was to be noticed.
    TurnedAway(RemoteId, bool),
}

/// An offer or receipt of a route, with the number of the route.
#[inline(always)]
pub(super) fn marked(number: usize, id: u64) -> u64 {
    debug_assert!(
        id >> ROUTE_ID_BITS == 0,
        "{id:#x} leaves no room for the route"
    );
    id | (number as u64) << ROUTE_ID_BITS
}

/// The number of its route, and what the route itself calls it.
pub(super) fn unmarked(id: u64) -> (usize, u64) {
    (
        (id >> ROUTE_ID_BITS) as usize,
        id & ((1 << ROUTE_ID_BITS) - 1),
    )
}

/// Which route leads to which remote, and what has just changed in that. One part, so that what
/// stands between a route and the owner is short: it is made in each round of progress.
#[derive(Debug)]
pub(super) struct Routing {
    pub(super) table: RoutingTable,
    pub(super) rerouted: ReroutedSends,
    /// What a route has told of remotes, and the others do not know yet. Filled while a route makes
    /// progress, and empty again before the round ends.
    pub(super) news: Vec<News>,
}

/// The owner as one route sees it.
pub(super) struct Between<'a, O> {
    pub(super) owner: &'a mut O,
    pub(super) routing: &'a mut Routing,
    /// The route's place in the list; 0 is the first.
    pub(super) number: usize,
}

impl<O: Owner> Owner for Between<'_, O> {
    #[inline(always)]
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> bool {
        let ack = ack.map(|ack| AckToken(marked(self.number, ack.0)));
        self.owner.on_message(envelope, payload, ack)
    }

    #[inline(always)]
    fn on_offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing> {
        let offer = OfferId(marked(self.number, offer.0));
        self.owner.on_offer(envelope, offer)
    }

    #[inline(always)]
    fn on_begun(&mut self, envelope: &Envelope) -> Option<Landing> {
        self.owner.on_begun(envelope)
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
    fn on_arrived(&mut self, remote: RemoteId, offer: OfferId, payload: BytesView<'_>) {
        let offer = OfferId(marked(self.number, offer.0));
        self.owner.on_arrived(remote, offer, payload);
    }

    #[cold]
    fn on_remote_lost(&mut self, remote: RemoteId, why: TransferError) {
        for send in self.routing.rerouted.give_up(remote) {
            self.owner.on_sent(send.op.token, Err(why));
        }
        self.owner.on_remote_lost(remote, why);
    }

    #[cold]
    fn on_turned_away(&mut self, turned: TurnedAway) {
        let (remote, was_watched) = (turned.remote, turned.was_watched);
        self.routing
            .news
            .push(News::TurnedAway(remote, was_watched));
        match self.routing.table.turn_away(remote, self.number) {
            Some(route) => self.routing.rerouted.add(remote, route, turned.sends),
            None => self.owner.on_turned_away(turned),
        }
    }

    #[cold]
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        let remote = self.owner.remote_at(address);
        if self.routing.table.is_next(remote) {
            self.routing.table.add(remote, address);
            self.routing.news.push(News::Met(remote, address));
        }
        remote
    }
}
