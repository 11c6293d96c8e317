// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A route that is one of two types, so that a list can hold several types of them without virtual
//! calls: `Either<A, Either<B, C>>` is one of three. Every call is passed on as it is.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use weft_contract::{
    AckToken, Closing, DirectAccess, DirectOp, Landing, OfferId, Owner, Peer, Place, PostError,
    Posted, Range, Readiness, Registration, RemoteId, Route, RouteError, SendOp, Sleep,
};
use weft_memory::UserBuffer;

/// One of two.
#[derive(Clone, Copy, Debug)]
pub enum Either<A, B> {
    /// The one.
    Left(A),
    /// The other.
    Right(B),
}

/// What a call of whichever it is answers.
macro_rules! pass_on {
    ($either:expr, $one:ident => $call:expr) => {
        match $either {
            Either::Left($one) => $call,
            Either::Right($one) => $call,
        }
    };
}

impl<A: Default, B> Default for Either<A, B> {
    fn default() -> Self {
        Self::Left(A::default())
    }
}

impl<A: Peer, B: Peer> Peer for Either<A, B> {
    #[inline]
    fn post_send(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        pass_on!(self, route => route.post_send(op, payload))
    }

    fn readiness(&mut self, remote: RemoteId, length_bytes: usize) -> Readiness {
        pass_on!(self, route => route.readiness(remote, length_bytes))
    }

    fn accept(&mut self, offer: OfferId, landing: Landing) {
        pass_on!(self, route => route.accept(offer, landing))
    }

    fn discard(&mut self, offer: OfferId) {
        pass_on!(self, route => route.discard(offer))
    }

    fn acknowledge(&mut self, ack: AckToken) {
        pass_on!(self, route => route.acknowledge(ack))
    }

    #[inline]
    fn pass(&mut self) -> bool {
        pass_on!(self, route => route.pass())
    }

    #[inline]
    fn set_undisturbed(&mut self, undisturbed: bool) {
        pass_on!(self, route => route.set_undisturbed(undisturbed))
    }

    #[inline]
    fn progress<O: Owner>(&mut self, owner: &mut O) -> usize {
        pass_on!(self, route => route.progress(owner))
    }
}

impl<A: Sleep, B: Sleep> Sleep for Either<A, B> {
    fn wait_fd(&self) -> Option<RawFd> {
        pass_on!(self, route => route.wait_fd())
    }

    fn before_sleep(&mut self) -> bool {
        pass_on!(self, route => route.before_sleep())
    }

    fn after_sleep(&mut self) {
        pass_on!(self, route => route.after_sleep())
    }

    fn is_busy(&self) -> bool {
        pass_on!(self, route => route.is_busy())
    }

    fn wakes_for_room(&self, remote: RemoteId) -> bool {
        pass_on!(self, route => route.wakes_for_room(remote))
    }
}

impl<A: Closing, B: Closing> Closing for Either<A, B> {
    fn owed(&mut self) -> Vec<SocketAddr> {
        pass_on!(self, route => route.owed())
    }

    fn report(&self, words: &str) {
        pass_on!(self, route => route.report(words))
    }
}

impl<A: Route, B: Route> Route for Either<A, B> {
    type Settings = Either<A::Settings, B::Settings>;
    type Statistics = Either<A::Statistics, B::Statistics>;

    fn open(settings: &Self::Settings, place: Place) -> Result<Self, RouteError> {
        Ok(match settings {
            Either::Left(settings) => Self::Left(A::open(settings, place)?),
            Either::Right(settings) => Self::Right(B::open(settings, place)?),
        })
    }

    fn local_address(&self) -> SocketAddr {
        pass_on!(self, route => route.local_address())
    }

    fn add_remote(&mut self, remote: RemoteId, address: SocketAddr) {
        pass_on!(self, route => route.add_remote(remote, address))
    }

    fn name_again(&mut self, remote: RemoteId) {
        pass_on!(self, route => route.name_again(remote))
    }

    fn begin_use(&mut self, remote: RemoteId) {
        pass_on!(self, route => route.begin_use(remote))
    }

    fn watch(&mut self, remote: RemoteId, on: bool) {
        pass_on!(self, route => route.watch(remote, on))
    }

    fn statistics(&self) -> Self::Statistics {
        match self {
            Self::Left(route) => Either::Left(route.statistics()),
            Self::Right(route) => Either::Right(route.statistics()),
        }
    }

    #[inline]
    fn direct(&mut self) -> Option<&mut impl DirectAccess> {
        Some(self)
    }
}

impl<A: Route, B: Route> DirectAccess for Either<A, B> {
    fn publish_registration(&mut self, registration: &Registration) {
        pass_on!(self, route => if let Some(direct) = route.direct() {
            direct.publish_registration(registration);
        })
    }

    fn withdraw_registration(&mut self, key: u64) -> bool {
        pass_on!(self, route => {
            let direct = route.direct();
            direct.is_none_or(|direct| direct.withdraw_registration(key))
        })
    }

    #[inline]
    fn access_directly(&mut self, remote: RemoteId, range: &Range, op: &mut DirectOp<'_>) -> bool {
        pass_on!(self, route => {
            let direct = route.direct();
            direct.is_some_and(|direct| direct.access_directly(remote, range, op))
        })
    }
}
