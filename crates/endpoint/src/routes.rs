// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The routes of an endpoint as one: a list in order of preference, and for each remote the first
//! route of the list that reaches it. One matching, one address vector and one completion queue
//! stand above all.
//!
//! To the endpoint the list is itself a route; the endpoint does not know how many routes there
//! are. Each round of progress looks at the first route. It looks at the others less often
//! (turn.rs), since looking at them costs system calls.
//!
//! Each remote has one route for as long as the endpoint lives, which keeps the order of messages
//! between two processes. There is one exception: a route that cannot reach a remote hands it to
//! the next route (rerouted.rs). Messages of all routes meet in the endpoint's matching, each
//! exactly once.
//!
//! owner.rs stands between a route and the endpoint; sleep.rs wakes a thread that sleeps on all
//! routes. The idea is that of libfabric's fi_peer(3), built in instead of linked at run time.

use std::net::SocketAddr;

use weft_contract::{
    AckToken, Closing, DirectAccess, DirectOp, Landing, OfferId, Owner, Peer, Place, PostError,
    Posted, Range, Readiness, Registration, RemoteId, Route, RouteError, SendOp, TransferError,
};
use weft_memory::UserBuffer;
use weft_os::sleep::WaitSet;

mod either;
mod owner;
mod rerouted;
mod routing;
mod settings;
mod sleep;
mod turn;
mod wait_set;

pub use either::Either;
use owner::{Between, News, Routing, unmarked};
use rerouted::ReroutedSends;
pub use routing::{ROUTE_LIMIT, Scope};
use routing::{RouteTo, RoutingTable};
pub use settings::{RouteSettings, Settings, Statistics};
use turn::Turn;

/// A list of routes: the first one, and others, of one type or of several ([`Either`]).
#[derive(Debug)]
pub struct Routes<F, O> {
    first: F,
    /// In order of preference.
    others: Vec<O>,
    routing: Routing,
    turn: Turn,
    /// The descriptors of all routes, if there is more than one route.
    wait_set: Option<WaitSet>,
    report: fn(&str),
    way_out: &'static str,
    told_unreachable: bool,
}

impl<F: Route, O: Route> Routes<F, O> {
    /// The route to a remote, unless it is the first one.
    fn other_to(&mut self, remote: RemoteId) -> Option<&mut O> {
        match self.routing.table.to(remote) {
            RouteTo::Other(index) | RouteTo::Rerouted(index) => {
                self.others.get_mut(usize::from(index))
            }
            RouteTo::First | RouteTo::Nowhere => None,
        }
    }

    #[inline(never)]
    fn post_send_elsewhere(
        &mut self,
        op: &SendOp,
        payload: &UserBuffer,
    ) -> Result<Posted, PostError> {
        match self.routing.table.to(op.remote) {
            RouteTo::Other(index) => {
                self.turn.now();
                self.others[usize::from(index)].post_send(op, payload)
            }
            // Keeps the order: the sends that a route gave back are posted first, by the next
            // progress.
            RouteTo::Rerouted(_) => Err(PostError::Busy),
            RouteTo::First | RouteTo::Nowhere => Err(self.unreachable(op.remote)),
        }
    }

    /// Reports once why messages to a remote cannot be sent.
    #[cold]
    fn unreachable(&mut self, remote: RemoteId) -> PostError {
        if !std::mem::replace(&mut self.told_unreachable, true) {
            (self.report)(&format!(
                "remote {} is on another host, and this process talks only to its own host. {}",
                remote.0, self.way_out
            ));
        }
        PostError::Failed(TransferError::Unreachable)
    }

    /// Drives the first route.
    #[inline(always)]
    fn progress_first<W: Owner>(&mut self, owner: &mut W) -> usize {
        let mut between = Between {
            owner,
            routing: &mut self.routing,
            number: 0,
        };
        let count = self.first.progress(&mut between);
        if !self.routing.news.is_empty() {
            self.share(0);
        }
        count
    }

    /// Drives the other routes, when it is their turn.
    #[inline(never)]
    fn progress_others<W: Owner>(&mut self, owner: &mut W) -> usize {
        let is_undisturbed = self.turn.is_undisturbed() && self.others.len() == 1;
        let mut count = 0;
        for index in 0..self.others.len() {
            let number = index + 1;
            let mut between = Between {
                owner,
                routing: &mut self.routing,
                number,
            };
            let other = &mut self.others[index];
            other.set_undisturbed(is_undisturbed);
            count += other.progress(&mut between);
            if !self.routing.news.is_empty() {
                self.share(number);
            }
        }
        self.turn.after(count);
        if !self.routing.rerouted.is_empty() {
            self.post_rerouted(owner);
        }
        count
    }

    /// Posts the sends that a route gave back to the routes that follow it in the list.
    #[cold]
    fn post_rerouted<W: Owner>(&mut self, owner: &mut W) {
        self.turn.now();
        for remote in self.routing.rerouted.post(&mut self.others, owner) {
            self.routing.table.end_rerouting(remote);
        }
    }

    /// Tells all routes of new remotes, under the same ids, and begins to use the route of each.
    /// `by` is the route that brought the news, and knows it already.
    #[cold]
    fn share(&mut self, by: usize) {
        for news in std::mem::take(&mut self.routing.news) {
            match news {
                News::Met(remote, address) => {
                    if by != 0 {
                        self.first.add_remote(remote, address);
                    }
                    for (index, other) in self.others.iter_mut().enumerate() {
                        if index + 1 != by {
                            other.add_remote(remote, address);
                        }
                    }
                    self.begin_use(remote);
                }
                News::TurnedAway(remote, was_watched) => self.divert(remote, was_watched),
            }
        }
    }

    /// Another route than before leads to `remote` from now on.
    fn divert(&mut self, remote: RemoteId, was_watched: bool) {
        self.begin_use(remote);
        match self.other_to(remote) {
            Some(other) if was_watched => other.watch(remote, true),
            Some(_) => {}
            None => (self.report)(&format!(
                "remote {} is not reached through shared memory, and over the network only once \
                 that is permitted. {}",
                remote.0, self.way_out
            )),
        }
    }

    /// The route with this number, from which an offer or a receipt came; `None` for the first.
    fn other_of(&mut self, number: usize) -> Option<&mut O> {
        let other = self.others.get_mut(number.checked_sub(1)?)?;
        self.turn.now();
        Some(other)
    }
}

impl<F: Route, O: Route> Peer for Routes<F, O> {
    #[inline(always)]
    fn post_send(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        if self.routing.table.to(op.remote) == RouteTo::First {
            return self.first.post_send(op, payload);
        }
        let op = *op;
        self.post_send_elsewhere(&op, payload)
    }

    fn readiness(&mut self, remote: RemoteId, length_bytes: usize) -> Readiness {
        match self.routing.table.to(remote) {
            RouteTo::First => self.first.readiness(remote, length_bytes),
            RouteTo::Other(index) => {
                self.others[usize::from(index)].readiness(remote, length_bytes)
            }
            RouteTo::Rerouted(_) | RouteTo::Nowhere => Readiness::Unknown,
        }
    }

    fn accept(&mut self, offer: OfferId, landing: Landing) {
        let (number, offer) = unmarked(offer.0);
        match self.other_of(number) {
            Some(other) => other.accept(OfferId(offer), landing),
            None => self.first.accept(OfferId(offer), landing),
        }
    }

    fn discard(&mut self, offer: OfferId) {
        let (number, offer) = unmarked(offer.0);
        match self.other_of(number) {
            Some(other) => other.discard(OfferId(offer)),
            None => self.first.discard(OfferId(offer)),
        }
    }

    fn acknowledge(&mut self, ack: AckToken) {
        let (number, ack) = unmarked(ack.0);
        match self.other_of(number) {
            Some(other) => other.acknowledge(AckToken(ack)),
            None => self.first.acknowledge(AckToken(ack)),
        }
    }

    #[inline(always)]
    fn pass(&mut self) -> bool {
        if self.others.is_empty() {
            return self.first.pass();
        }
        self.turn.is_not_yet() && self.first.pass() && !self.turn.has_come()
    }

    #[inline(always)]
    fn progress<W: Owner>(&mut self, owner: &mut W) -> usize {
        let mut count = self.progress_first(owner);
        if !self.others.is_empty() {
            if count > 0 {
                self.turn.disturb();
            }
            if self.turn.has_come() {
                count += self.progress_others(owner);
            }
        }
        count
    }
}

impl<F: Route, O: Route> Route for Routes<F, O> {
    type Settings = Settings<F::Settings, O::Settings>;
    type Statistics = Statistics<F::Statistics, O::Statistics>;

    fn open(settings: &Self::Settings, place: Place) -> Result<Self, RouteError> {
        let (first, others) = settings.open_all::<F, O>(place)?;
        let wait_set = match &others[..] {
            [] => None,
            others => Some(wait_set::of(&first, others)?),
        };
        Ok(Self {
            routing: Routing {
                table: RoutingTable::new(settings.scopes(), first.local_address()),
                rerouted: ReroutedSends::default(),
                news: Vec::new(),
            },
            first,
            others,
            turn: Turn::default(),
            wait_set,
            report: settings.report,
            way_out: settings.way_out,
            told_unreachable: false,
        })
    }

    fn local_address(&self) -> SocketAddr {
        self.first.local_address()
    }

    fn add_remote(&mut self, remote: RemoteId, address: SocketAddr) {
        self.routing.table.add(remote, address);
        self.first.add_remote(remote, address);
        for other in &mut self.others {
            other.add_remote(remote, address);
        }
        self.begin_use(remote);
    }

    fn name_again(&mut self, remote: RemoteId) {
        self.first.name_again(remote);
        for other in &mut self.others {
            other.name_again(remote);
        }
    }

    fn begin_use(&mut self, remote: RemoteId) {
        match self.other_to(remote) {
            Some(other) => {
                other.begin_use(remote);
                self.turn.start_using();
            }
            None => self.first.begin_use(remote),
        }
    }

    fn watch(&mut self, remote: RemoteId, on: bool) {
        match self.other_to(remote) {
            Some(other) => {
                other.watch(remote, on);
                self.turn.now();
            }
            // No route leads there: the first route reports that nobody is there.
            None => self.first.watch(remote, on),
        }
    }

    fn statistics(&self) -> Self::Statistics {
        Statistics {
            first: self.first.statistics(),
            others: self.others.iter().map(Route::statistics).collect(),
        }
    }

    #[inline]
    fn direct(&mut self) -> Option<&mut impl DirectAccess> {
        Some(self)
    }
}

impl<F: Route, O: Route> Closing for Routes<F, O> {
    fn owed(&mut self) -> Vec<SocketAddr> {
        let mut owed = self.first.owed();
        for other in &mut self.others {
            owed.extend(other.owed());
        }
        if !owed.is_empty() {
            self.turn.now();
        }
        owed
    }

    fn report(&self, words: &str) {
        (self.report)(words);
    }
}

impl<F: Route, O: Route> DirectAccess for Routes<F, O> {
    fn publish_registration(&mut self, registration: &Registration) {
        if let Some(direct) = self.first.direct() {
            direct.publish_registration(registration);
        }
        for direct in self.others.iter_mut().filter_map(Route::direct) {
            direct.publish_registration(registration);
        }
    }

    fn withdraw_registration(&mut self, key: u64) -> bool {
        let mut is_left = true;
        if let Some(direct) = self.first.direct() {
            is_left &= direct.withdraw_registration(key);
        }
        for direct in self.others.iter_mut().filter_map(Route::direct) {
            is_left &= direct.withdraw_registration(key);
        }
        is_left
    }

    #[inline]
    fn access_directly(&mut self, remote: RemoteId, range: &Range, op: &mut DirectOp<'_>) -> bool {
        match self.routing.table.to(remote) {
            RouteTo::First => {
                let direct = self.first.direct();
                direct.is_some_and(|direct| direct.access_directly(remote, range, op))
            }
            RouteTo::Other(index) => {
                let direct = self.others[usize::from(index)].direct();
                direct.is_some_and(|direct| direct.access_directly(remote, range, op))
            }
            RouteTo::Rerouted(_) | RouteTo::Nowhere => false,
        }
    }
}
