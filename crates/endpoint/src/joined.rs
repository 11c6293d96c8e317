// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two transports behind one endpoint: remotes of this host are reached through the local one, all others through
//! the network's. One matching, one address vector and one completion queue stand above both.
//!
//! A route like any other to the endpoint, which knows of no join; `owner` stands between the
//! transports and their owner.
//! Each remote has one way for as long as the endpoint lives, so that order between two processes
//! holds; messages of both ways meet in the endpoint's matching, each exactly once. The idea is that of libfabric's
//! fi_peer(3), built in instead of linked at run time.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use weft_contract::{
    AckToken, DirectAccess, DirectOp, Landing, OfferId, Owner, Peer, Place, PostError, Posted,
    Range, Registration, RemoteId, Route, RouteError, RouteErrorKind, SendOp, Sleep, TransferError,
};
use weft_memory::UserBuffer;
use weft_os::interface;
use weft_os::sleep::WaitSet;

mod detour;
mod owner;
mod turn;
mod ways;

use detour::{Detours, News};
use owner::Between;
use turn::Turn;
pub use ways::Locality;
use ways::{Way, Ways};

/// Set in the network's offers and receipts, to tell them from the local transport's. Chosen: both number theirs
/// from 0, in tables that memory bounds far below this.
const FROM_NETWORK: u64 = 1 << 63;

/// How both transports are opened.
#[derive(Clone, Debug)]
pub struct Settings<L, N> {
    /// The local one's.
    pub local: L,
    /// The network's; `None` leaves only this host to talk to.
    pub network: Option<N>,
    /// Who is local.
    pub locality: Locality,
    /// Tells the user why a remote cannot be reached, in one sentence, once.
    pub report: fn(&str),
    /// What would have to be done for `network` not to be `None`: ends that sentence.
    pub without_network: &'static str,
}

impl<L: Default, N> Default for Settings<L, N> {
    fn default() -> Self {
        Self {
            local: L::default(),
            network: None,
            locality: Locality::ByInterface,
            report: |_| {},
            without_network: "",
        }
    }
}

/// What both transports counted.
#[derive(Clone, Debug, Default)]
pub struct Statistics<L, N> {
    /// The local one.
    pub local: L,
    /// The network's, if it is open.
    pub network: Option<N>,
}

/// The network's transport and what belongs to it alone.
#[derive(Debug)]
struct Far<N> {
    transport: N,
    turn: Turn,
    /// Both transports' descriptors.
    wait_set: WaitSet,
}

/// Both transports.
#[derive(Debug)]
pub struct Joined<L, N> {
    near: L,
    far: Option<Far<N>>,
    ways: Ways,
    /// What one transport has told of remotes, and the other does not know yet.
    unshared: Vec<News>,
    report: fn(&str),
    without_network: &'static str,
    told_unreachable: bool,
}

impl<L: Route, N: Route> Joined<L, N> {
    /// Tells once why a remote on another host gets nothing.
    #[cold]
    fn unreachable(&mut self, remote: RemoteId) -> PostError {
        if !std::mem::replace(&mut self.told_unreachable, true) {
            (self.report)(&format!(
                "remote {} is on another host, and this process talks only to its own. {}",
                remote.0, self.without_network
            ));
        }
        PostError::Failed(TransferError::Unreachable)
    }

    #[inline(never)]
    fn post_send_far(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        match (self.ways.to(op.remote), &mut self.far) {
            (Way::Network, Some(far)) => {
                far.turn.now();
                far.transport.post_send(op, payload)
            }
            // Order: what was given back comes first, with the next progress.
            (Way::Detour, _) => Err(PostError::Busy),
            _ => Err(self.unreachable(op.remote)),
        }
    }

    /// Has both transports know the same remotes under the same ids, and who is reached how.
    #[cold]
    fn share(&mut self, near_knows: bool) {
        for news in std::mem::take(&mut self.unshared) {
            match news {
                News::Met(remote, address) => self.introduce(remote, address, near_knows),
                News::TurnedAway(remote, was_watched) => self.divert(remote, was_watched),
            }
        }
    }

    /// Sends over the network what the local transport gave back.
    #[cold]
    fn post_detours<O: Owner>(&mut self, owner: &mut O) {
        let Some(far) = &mut self.far else { return };
        far.turn.now();
        for remote in self.ways.detours.post(&mut far.transport, owner) {
            self.ways.ways[remote.index()] = Way::Network;
        }
    }

    fn introduce(&mut self, remote: RemoteId, address: SocketAddr, near_knows: bool) {
        if let Some(far) = &mut self.far
            && self.ways.to(remote) == Way::Network
        {
            far.turn.start_using();
            far.transport.begin_use(remote);
        }
        match &mut self.far {
            Some(far) if near_knows => far.transport.add_remote(remote, address),
            None if near_knows => {}
            _ => self.near.add_remote(remote, address),
        }
    }

    /// A remote of this host that is reached over the network from now on.
    fn divert(&mut self, remote: RemoteId, was_watched: bool) {
        let Some(far) = &mut self.far else {
            (self.report)(&format!(
                "remote {} is not reached through shared memory, and over the network only once \
                 that is permitted. {}",
                remote.0, self.without_network
            ));
            return;
        };
        far.turn.start_using();
        far.transport.begin_use(remote);
        if was_watched {
            far.transport.watch(remote, true);
        }
    }

    /// Drives the local transport.
    #[inline(always)]
    fn progress_near<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut between = Between {
            owner,
            ways: &mut self.ways,
            unshared: &mut self.unshared,
            mark: 0,
        };
        let count = self.near.progress(&mut between);
        if !self.unshared.is_empty() {
            self.share(true);
        }
        count
    }

    /// Drives the network's transport, when it is its turn.
    #[inline(never)]
    fn progress_far<O: Owner>(&mut self, owner: &mut O) -> usize {
        let Some(far) = &mut self.far else { return 0 };
        let mut between = Between {
            owner,
            ways: &mut self.ways,
            unshared: &mut self.unshared,
            mark: FROM_NETWORK,
        };
        far.transport.set_undisturbed(far.turn.is_undisturbed());
        let count = far.transport.progress(&mut between);
        far.turn.after(count);
        if !self.ways.detours.is_empty() {
            self.post_detours(owner);
        }
        if !self.unshared.is_empty() {
            self.share(false);
        }
        count
    }
}

impl<L: Route, N: Route> Peer for Joined<L, N> {
    #[inline(always)]
    fn post_send(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        if self.ways.to(op.remote) == Way::Local {
            return self.near.post_send(op, payload);
        }
        let op = *op;
        self.post_send_far(&op, payload)
    }

    fn accept(&mut self, offer: OfferId, landing: Landing) {
        match &mut self.far {
            Some(far) if offer.0 & FROM_NETWORK != 0 => {
                far.turn.now();
                far.transport
                    .accept(OfferId(offer.0 & !FROM_NETWORK), landing);
            }
            _ => self.near.accept(offer, landing),
        }
    }

    fn discard(&mut self, offer: OfferId) {
        match &mut self.far {
            Some(far) if offer.0 & FROM_NETWORK != 0 => {
                far.turn.now();
                far.transport.discard(OfferId(offer.0 & !FROM_NETWORK));
            }
            _ => self.near.discard(offer),
        }
    }

    fn acknowledge(&mut self, ack: AckToken) {
        match &mut self.far {
            Some(far) if ack.0 & FROM_NETWORK != 0 => {
                far.turn.now();
                far.transport.acknowledge(AckToken(ack.0 & !FROM_NETWORK));
            }
            _ => self.near.acknowledge(ack),
        }
    }

    #[inline(always)]
    fn pass(&mut self) -> bool {
        match &mut self.far {
            None => self.near.pass(),
            Some(far) => far.turn.is_far_off() && self.near.pass() && !far.turn.has_come(),
        }
    }

    #[inline(always)]
    fn progress<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut count = self.progress_near(owner);
        if let Some(far) = &mut self.far {
            if count > 0 {
                far.turn.disturb();
            }
            if far.turn.has_come() {
                count += self.progress_far(owner);
            }
        }
        count
    }
}

impl<L: Route, N: Route> Route for Joined<L, N> {
    type Settings = Settings<L::Settings, N::Settings>;
    type Statistics = Statistics<L::Statistics, N::Statistics>;

    fn open(settings: &Self::Settings, place: Place) -> Result<Self, RouteError> {
        let far = match &settings.network {
            Some(network) => Some(N::open(network, place)?),
            None => None,
        };
        // The network's sockets need the port itself; for the local transport it is only a name.
        let place = far.as_ref().map_or(place, |far| Place {
            address: Some(far.local_address()),
            is_held: true,
            ..place
        });
        let near = L::open(&settings.local, place)?;
        let far = far
            .map(|transport| joined_far(&near, transport))
            .transpose()?;
        let interfaces = interface::addresses().unwrap_or_default().into_iter();
        let ways = Ways {
            ways: Vec::new(),
            locality: settings.locality,
            own: near.local_address(),
            interfaces: interfaces.map(|entry| entry.address).collect(),
            has_network: far.is_some(),
            detours: Detours::default(),
        };
        Ok(Self {
            near,
            far,
            ways,
            unshared: Vec::new(),
            report: settings.report,
            without_network: settings.without_network,
            told_unreachable: false,
        })
    }

    fn local_address(&self) -> SocketAddr {
        self.near.local_address()
    }

    fn add_remote(&mut self, remote: RemoteId, address: SocketAddr) {
        self.ways.add(remote, address);
        self.near.add_remote(remote, address);
        if let Some(far) = &mut self.far {
            far.transport.add_remote(remote, address);
            if self.ways.to(remote) == Way::Network {
                far.turn.start_using();
                far.transport.begin_use(remote);
            }
        }
    }

    fn name_again(&mut self, remote: RemoteId) {
        self.near.name_again(remote);
        if let Some(far) = &mut self.far {
            far.transport.name_again(remote);
        }
    }

    fn watch(&mut self, remote: RemoteId, on: bool) {
        match (self.ways.to(remote), &mut self.far) {
            (Way::Network | Way::Detour, Some(far)) => {
                far.turn.now();
                far.transport.watch(remote, on);
            }
            // The local transport knows best that nobody is there.
            _ => self.near.watch(remote, on),
        }
    }

    fn statistics(&self) -> Self::Statistics {
        Statistics {
            local: self.near.statistics(),
            network: self.far.as_ref().map(|far| far.transport.statistics()),
        }
    }

    #[inline]
    fn direct(&mut self) -> Option<&mut impl DirectAccess> {
        Some(self)
    }
}

impl<L: Route, N: Route> DirectAccess for Joined<L, N> {
    fn publish_registration(&mut self, registration: &Registration) {
        if let Some(direct) = self.near.direct() {
            direct.publish_registration(registration);
        }
    }

    fn withdraw_registration(&mut self, key: u64) -> bool {
        let direct = self.near.direct();
        direct.is_none_or(|direct| direct.withdraw_registration(key))
    }

    #[inline]
    fn access_directly(&mut self, remote: RemoteId, range: &Range, op: &mut DirectOp<'_>) -> bool {
        self.ways.to(remote) == Way::Local
            && self
                .near
                .direct()
                .is_some_and(|direct| direct.access_directly(remote, range, op))
    }
}

impl<L: Route, N: Route> Sleep for Joined<L, N> {
    fn wait_fd(&self) -> Option<RawFd> {
        match &self.far {
            Some(far) => Some(far.wait_set.descriptor()),
            None => self.near.wait_fd(),
        }
    }

    fn before_sleep(&mut self) -> bool {
        if !self.ways.detours.is_empty() || !self.near.before_sleep() {
            return false;
        }
        let Some(far) = &mut self.far else {
            return true;
        };
        let may_sleep = far.transport.before_sleep();
        if !may_sleep {
            far.turn.now();
            self.near.after_sleep();
        }
        may_sleep
    }

    fn after_sleep(&mut self) {
        self.near.after_sleep();
        if let Some(far) = &mut self.far {
            far.transport.after_sleep();
            far.turn.now();
        }
    }

    fn is_busy(&self) -> bool {
        let far = self.far.as_ref();
        !self.unshared.is_empty()
            || self.near.is_busy()
            || far.is_some_and(|far| far.transport.is_busy())
    }

    fn wakes_for_room(&self, remote: RemoteId) -> bool {
        match (self.ways.to(remote), &self.far) {
            (Way::Network | Way::Detour, Some(far)) => far.transport.wakes_for_room(remote),
            _ => self.near.wakes_for_room(remote),
        }
    }
}

/// Puts both transports' descriptors into one.
fn joined_far<L: Route, N: Route>(near: &L, transport: N) -> Result<Far<N>, RouteError> {
    let no_descriptor = |error: std::io::Error| RouteError {
        kind: RouteErrorKind::NoResources,
        words: format!(
            "cannot make a descriptor to wait on: {error}; see the limit of open files (ulimit -n)"
        ),
    };
    let wait_set = WaitSet::new().map_err(no_descriptor)?;
    for descriptor in [near.wait_fd(), transport.wait_fd()].into_iter().flatten() {
        wait_set.add_raw(descriptor).map_err(no_descriptor)?;
    }
    Ok(Far {
        transport,
        turn: Turn::default(),
        wait_set,
    })
}
