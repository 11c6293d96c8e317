// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint: its transport on one side, and on the other all that the transport's callbacks
//! change. fi_endpoint(3).
//!
//! Called by `calls`; hands each part what it needs. `core` holds the parts; `arrivals` and
//! `shared_arrivals` are what a transport calls back; `watches` says whose death matters.

use std::net::SocketAddr;

use weft_contract::{Class, PostError, Readiness, RemoteId, Route};
use weft_matching::Want;
use weft_memory::UserBuffer;

use crate::completion::completions::Completions;
use crate::error::{Error, refused};
use crate::flags;
use crate::ids::{FiAddr, VectorId};
use crate::receive::delivery::PostedReceive;
use crate::receive::receiving::{Asked, Match};
use crate::receive::shared::SharedReceives;
use crate::send::sending::Posting;
use crate::settings::{EndpointSettings, Receive};
use crate::shared_objects::SharedObjects;

mod arrivals;
pub(crate) mod closing;
mod core;
pub(crate) mod own_addresses;
mod patience;
mod shared_arrivals;
mod watches;

use self::arrivals::Arrivals;
use self::core::Core;
use self::own_addresses::OwnAddress;
use self::shared_arrivals::SharedArrivals;
use self::watches::Watches;

/// An endpoint.
pub(crate) struct Endpoint<P> {
    pub(crate) settings: EndpointSettings,
    pub(crate) vector: Option<VectorId>,
    /// Opened by `enable`.
    pub(crate) route: Option<P>,
    /// Entered with it.
    pub(crate) own_address: Option<OwnAddress>,
    pub(crate) core: Core,
    /// Matches the messages, if this endpoint does not do so itself.
    pub(crate) shared: Option<Box<SharedReceives>>,
    watches: Watches,
    /// Queues that sleep on the transport.
    pub(crate) sleepers_count: u32,
    /// The process that opened it.
    process: u32,
}

impl<P: Route> Endpoint<P> {
    pub(crate) fn new(settings: EndpointSettings) -> Self {
        Self {
            settings,
            vector: None,
            route: None,
            own_address: None,
            core: Core::new(settings.source),
            shared: None,
            watches: Watches::default(),
            sleepers_count: 0,
            process: std::process::id(),
        }
    }

    /// Notes the user's name for an address (`fi_addr_t`); `first` is the first name of that
    /// address. Before the endpoint is enabled this does nothing; enabling catches up.
    pub(crate) fn learn(&mut self, name: FiAddr, address: SocketAddr, first: FiAddr) {
        let Some(route) = &mut self.route else { return };
        let (remote, new) = self.core.remotes.at(address);
        if new {
            route.add_remote(remote, address);
        } else {
            route.name_again(remote);
        }
        self.core.remotes.set_name(name, remote, first);
    }

    /// Has the route watch a remote, so that operations that wait for it fail if it dies. Fast
    /// path.
    #[inline(always)]
    pub(crate) fn watch(&mut self, remote: RemoteId) {
        if self.core.remotes.start_watching(remote)
            && let Some(route) = &mut self.route
        {
            self.watches.start(route, remote);
        }
    }

    /// Counts a round of progress without an event. Fast path.
    #[inline(always)]
    fn count_idle_round(&mut self) {
        if self.watches.count_idle_round()
            && let Some(route) = &mut self.route
        {
            self.core.review(&mut self.watches, route);
        }
    }
}

/// Sends.
impl<P: Route> Endpoint<P> {
    /// Posts a send, or queues it if its route has no room. Fast path.
    ///
    /// # Errors
    /// As for [`crate::EndpointCalls::send`].
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        completions: &mut Completions,
        to: FiAddr,
        posting: Posting,
        payload: &UserBuffer,
    ) -> Result<(), Error> {
        let core = &mut self.core;
        let (Some(route), Some(remote)) = (&mut self.route, core.remotes.open(to)) else {
            return self.send_behind(completions, to, Posting { ..posting }, payload);
        };
        let sending = &mut core.sending;
        match sending.post(route, completions, remote, &posting, payload) {
            Ok(()) => Ok(()),
            Err(PostError::Busy) => {
                self.send_later(completions, remote, Posting { ..posting }, payload)
            }
            Err(failed) => Err(refused(failed)),
        }
    }

    /// Posts or queues a send behind those that wait, if the user's name does not lead straight to
    /// a remote.
    #[cold]
    #[inline(never)]
    fn send_behind(
        &mut self,
        completions: &mut Completions,
        to: FiAddr,
        posting: Posting,
        payload: &UserBuffer,
    ) -> Result<(), Error> {
        if self.route.is_none() {
            return Err(Error::BadState);
        }
        let remote = self.core.remotes.named(to).ok_or(Error::Invalid)?;
        self.send_later(completions, remote, posting, payload)
    }

    /// Queues a send whose route has no room, and posts queued sends that have room by now.
    #[cold]
    #[inline(never)]
    fn send_later(
        &mut self,
        completions: &mut Completions,
        remote: RemoteId,
        posting: Posting,
        payload: &UserBuffer,
    ) -> Result<(), Error> {
        let route = self.route.as_mut().ok_or(Error::BadState)?;
        let remotes = &mut self.core.remotes;
        let sending = &mut self.core.sending;
        sending.post_queued_to(route, remotes, completions, remote);
        sending.queue(remotes, completions, remote, &posting, payload)?;
        self.core.has_chores = true;
        sending.post_queued_to(route, remotes, completions, remote);
        self.watch(remote);
        Ok(())
    }

    /// Posts an inject that is longer than every route takes, as soon as all of it can leave at
    /// once: the program may compute next, and then nobody would send the rest. If the route cannot
    /// tell when, or it takes long, the inject is queued as a copy.
    ///
    /// # Errors
    /// As for [`crate::EndpointCalls::inject`].
    #[cold]
    pub(crate) fn inject_long(
        &mut self,
        completions: &mut Completions,
        to: FiAddr,
        posting: Posting,
        payload: &UserBuffer,
    ) -> Result<(), Error> {
        let route = self.route.as_mut().ok_or(Error::BadState)?;
        let remote = self.core.remotes.named(to).ok_or(Error::Invalid)?;
        let sending = &mut self.core.sending;
        if !sending.holds(remote) {
            match route.readiness(remote, payload.length_bytes()) {
                Readiness::Now => {
                    match sending.post(route, completions, remote, &posting, payload) {
                        Err(PostError::Busy) => {}
                        posted => return posted.map_err(refused),
                    }
                }
                Readiness::Soon if sending.puts_off() => return Err(Error::Again),
                Readiness::Soon | Readiness::Unknown => {}
            }
        }
        self.send_later(completions, remote, posting, payload)
    }
}

/// Flags that make more of a receive than one buffer for one message.
const SPECIAL: u64 = flags::MULTI_RECV | flags::PEEK | flags::CLAIM | flags::DISCARD;

/// Receives.
impl<P: Route> Endpoint<P> {
    /// Posts a receive, or does what its flags say. Fast path.
    ///
    /// # Errors
    /// As for [`crate::EndpointCalls::receive`].
    #[inline(always)]
    pub(crate) fn receive(
        &mut self,
        objects: &mut SharedObjects,
        receive: &Receive,
        buffer: impl FnOnce() -> UserBuffer,
    ) -> Result<(), Error> {
        let flags = receive.flags.unwrap_or(self.settings.receive_flags);
        if flags & SPECIAL != 0 {
            let receive = *receive;
            return self.receive_specially(objects, &receive, flags, buffer());
        }
        let want = self.want(receive)?;
        let (class, context) = (receive.class, receive.context);
        if self.core.receiving.matcher(class).unexpected_count() > 0 {
            let posted = PostedReceive::whole(buffer(), context, flags);
            self.receive_unexpected(&mut objects.completions, class, want, posted);
        } else {
            self.post(class, want, PostedReceive::whole(buffer(), context, flags));
        }
        Ok(())
    }

    /// Ends a receive with the earliest unexpected message that it matches, or posts it. Separate
    /// from [`Self::receive`], which needs fewer registers in this way when no message is there.
    #[inline(never)]
    fn receive_unexpected(
        &mut self,
        completions: &mut Completions,
        class: Class,
        want: Want,
        posted: PostedReceive,
    ) {
        let remotes = &self.core.remotes;
        let receiving = &mut self.core.receiving;
        let Some(id) = receiving.find(class, want) else {
            return self.post(class, want, posted);
        };
        let found = Match { class, id };
        if receiving.receive(remotes, completions, found, &posted) {
            return;
        }
        if let Some(route) = &mut self.route {
            receiving.receive_other(route, remotes, completions, found, posted);
        }
    }

    /// What a receive asks for, in matching's words. Fast path.
    #[inline(always)]
    fn want(&self, receive: &Receive) -> Result<Want, Error> {
        if self.route.is_none() {
            return Err(Error::BadState);
        }
        let source = if receive.source == FiAddr::UNSPEC || !self.settings.directed_receive {
            None
        } else {
            let named = self.core.remotes.named(receive.source);
            Some(named.ok_or(Error::Invalid)?)
        };
        Ok(Want {
            source,
            tag: receive.tag,
            ignore: receive.ignore,
        })
    }

    /// Posts a receive that no unexpected message matches. Fast path.
    #[inline(always)]
    fn post(&mut self, class: Class, want: Want, posted: PostedReceive) {
        if let Some(source) = want.source {
            self.watch(source);
        }
        self.core.receiving.matcher(class).post(want, posted);
    }

    #[cold]
    fn receive_specially(
        &mut self,
        objects: &mut SharedObjects,
        receive: &Receive,
        flags: u64,
        buffer: UserBuffer,
    ) -> Result<(), Error> {
        const CLAIM_AND_DISCARD: u64 = flags::CLAIM | flags::DISCARD;
        const PEEK_AND_CLAIM: u64 = flags::PEEK | flags::CLAIM;
        const PEEK_AND_DISCARD: u64 = flags::PEEK | flags::DISCARD;
        let special = flags & SPECIAL;
        let is_peek = matches!(special, flags::PEEK | PEEK_AND_CLAIM | PEEK_AND_DISCARD);
        if is_peek {
            self.progress(objects);
        }
        let is_claimed = matches!(special, flags::CLAIM | CLAIM_AND_DISCARD);
        // A claimed message is found by its context, whoever sent it.
        let want = if is_claimed {
            Want {
                source: None,
                tag: 0,
                ignore: 0,
            }
        } else {
            self.want(receive)?
        };
        let (class, context) = (receive.class, receive.context);
        let asked = Asked {
            class,
            want,
            flags,
            context,
        };
        let route = self.route.as_mut().ok_or(Error::BadState)?;
        let completions = &mut objects.completions;
        let remotes = &self.core.remotes;
        let receiving = &mut self.core.receiving;
        match special {
            flags::MULTI_RECV => {
                let left = receiving.receive_many(route, remotes, completions, &asked, buffer)?;
                if let Some(posted) = left {
                    self.post(class, want, posted);
                }
                Ok(())
            }
            _ if is_claimed => {
                receiving.receive_claimed(route, remotes, completions, &asked, buffer)
            }
            _ if is_peek => receiving.peek(route, remotes, completions, &asked),
            _ => Err(Error::Invalid),
        }
    }
}

/// Progress and sleep.
impl<P: Route> Endpoint<P> {
    /// Ends a round of progress and returns true if there is nothing to do in it; else returns
    /// false. Fast path.
    #[inline(always)]
    pub(crate) fn pass(&mut self) -> bool {
        let Some(route) = &mut self.route else {
            return true;
        };
        if self.core.has_chores || !route.pass() {
            return false;
        }
        self.count_idle_round();
        true
    }

    /// One round of progress: does all that can be done without waiting. Returns how many events
    /// there were.
    #[inline(always)]
    pub(crate) fn progress(&mut self, objects: &mut SharedObjects) -> usize {
        if self.pass() {
            return 0;
        }
        self.make_progress(objects)
    }

    #[inline(never)]
    pub(crate) fn make_progress(&mut self, objects: &mut SharedObjects) -> usize {
        let Some(route) = &mut self.route else {
            return 0;
        };
        let core = &mut self.core;
        let own = Arrivals { core, objects };
        let mut count = match &mut self.shared {
            None => route.progress(&mut { own }),
            Some(shared) => progress_shared(route, own, shared),
        };
        if self.core.has_chores {
            count += self.core.do_chores(route, &mut objects.completions);
        }
        if count == 0 {
            self.count_idle_round();
        }
        count
    }

    /// Whether transfers are under way that move only while somebody makes progress.
    pub(crate) fn is_busy(&self) -> bool {
        self.route
            .as_ref()
            .is_some_and(|route| route.is_busy() || !self.core.sending.wakes_for_room(route))
    }

    /// Counts one more sleeper; false, and none is counted, if the transport has something to do
    /// first.
    pub(crate) fn fall_asleep(&mut self) -> bool {
        let Some(route) = &mut self.route else {
            return true;
        };
        let one_sided = self.core.one_sided.as_ref();
        if one_sided.is_some_and(|one_sided| one_sided.has_waiting())
            || !self.core.sending.wakes_for_room(route)
            || self.sleepers_count == 0 && !route.before_sleep()
        {
            return false;
        }
        self.sleepers_count += 1;
        true
    }

    /// Counts one sleeper less.
    pub(crate) fn wake_up(&mut self) {
        if self.sleepers_count == 0 {
            return;
        }
        self.sleepers_count -= 1;
        if let (0, Some(route)) = (self.sleepers_count, &mut self.route) {
            route.after_sleep();
        }
    }
}

/// Progress of an endpoint whose messages somebody else matches.
#[inline(never)]
fn progress_shared<P: Route>(
    route: &mut P,
    own: Arrivals<'_>,
    shared: &mut SharedReceives,
) -> usize {
    route.progress(&mut SharedArrivals { own, shared })
}
