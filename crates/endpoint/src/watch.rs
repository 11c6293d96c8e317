// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose death matters: the remotes that a waiting receive names. Others may come and go unnoticed.
//!
//! Asked by receive.rs before a receive waits, and by progress.rs now and then. To watch a remote costs the
//! transport a look at it several times a second, so a watch ends when nobody waits for the remote; but not at
//! once, since most receives that are matched are followed by another one from the same remote.

use weft_contract::{RemoteId, Route};

use crate::endpoint::Endpoint;

/// Rounds of progress without an event between reviews. Chosen: some milliseconds of waiting.
const IDLE_ROUNDS_PER_REVIEW: u32 = 1 << 16;

impl<P: Route> Endpoint<P> {
    /// Has the source of a receive watched, so that it does not wait for the dead. Fast path.
    #[inline(always)]
    pub(crate) fn watch(&mut self, source: RemoteId) {
        if self.core.remotes.start_watching(source) {
            self.start_watch(source);
        }
    }

    #[cold]
    fn start_watch(&mut self, source: RemoteId) {
        if let Some(local) = &mut self.local {
            self.watched.push(source);
            local.watch(source, true);
        }
    }

    /// Counts a round of progress without an event. Fast path.
    #[inline(always)]
    pub(crate) fn count_idle_round(&mut self) {
        self.idle_rounds_count = self.idle_rounds_count.wrapping_add(1);
        if self.idle_rounds_count % IDLE_ROUNDS_PER_REVIEW == 0 {
            self.review_watches();
        }
    }

    /// Ends the watches that no receive waits behind, and forgets those that ended by a loss.
    #[cold]
    fn review_watches(&mut self) {
        let Some(local) = &mut self.local else { return };
        let core = &mut self.core;
        self.watched.sort_unstable();
        self.watched.dedup();
        self.watched.retain(|&remote| {
            if !core.remotes.is_watched(remote) {
                return false;
            }
            let one_sided = core.one_sided.as_ref();
            let is_named = core.matching.names(remote)
                || core.backlog.holds(remote)
                || one_sided.is_some_and(|one_sided| one_sided.outstanding(remote) > 0);
            if !is_named {
                core.remotes.stop_watching(remote);
                local.watch(remote, false);
            }
            is_named
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};

    use weft_contract::{
        AckToken, Class, Landing, OfferId, Owner, Peer, Place, PostError, Posted, RouteError,
        RouteErrorKind, SendOp, Sleep, TransferError,
    };
    use weft_memory::UserBuffer;

    use super::*;
    use crate::{Domain, DomainSettings, EndpointSettings, Error, FiAddr, Receive, VectorKind};

    /// Tells of every change of a watch; its remotes die when told so.
    struct Watcher {
        told: Sender<(RemoteId, bool)>,
        dies: Arc<Mutex<Option<RemoteId>>>,
    }

    impl Peer for Watcher {
        fn post_send(&mut self, _: &SendOp, _: &UserBuffer) -> Result<Posted, PostError> {
            Err(PostError::Busy)
        }

        fn accept(&mut self, _: OfferId, _: Landing) {}

        fn discard(&mut self, _: OfferId) {}

        fn acknowledge(&mut self, _: AckToken) {}

        fn progress<O: Owner>(&mut self, owner: &mut O) -> usize {
            if let Some(remote) = self.dies.lock().unwrap().take() {
                owner.on_remote_lost(remote, TransferError::RemoteLost);
            }
            0
        }
    }

    type Ears = (
        Option<Sender<(RemoteId, bool)>>,
        Arc<Mutex<Option<RemoteId>>>,
    );

    impl Sleep for Watcher {}

    impl Route for Watcher {
        type Settings = Ears;
        type Statistics = ();

        fn open((told, dies): &Ears, _: Place) -> Result<Self, RouteError> {
            let told = told.clone().ok_or(RouteError {
                kind: RouteErrorKind::Invalid,
                words: "nobody listens".to_owned(),
            })?;
            Ok(Self {
                told,
                dies: Arc::clone(dies),
            })
        }

        fn add_remote(&mut self, _: RemoteId, _: SocketAddr) {}

        fn name_again(&mut self, _: RemoteId) {}

        fn local_address(&self) -> SocketAddr {
            SocketAddr::from(([127, 0, 0, 1], 1))
        }

        fn watch(&mut self, remote: RemoteId, on: bool) {
            self.told.send((remote, on)).unwrap();
        }

        fn statistics(&self) {}
    }

    fn heard(ears: &Receiver<(RemoteId, bool)>) -> Vec<(u32, bool)> {
        ears.try_iter().map(|(remote, on)| (remote.0, on)).collect()
    }

    #[test]
    fn a_remote_is_watched_while_receives_wait_for_it() {
        let (told, ears) = channel();
        let dies = Arc::new(Mutex::new(None));
        let mut domain = Domain::<Watcher>::with_local_settings(
            DomainSettings::default(),
            (Some(told), Arc::clone(&dies)),
        );
        let (vector, endpoint) = (
            domain.open_vector(VectorKind::Table),
            domain.open_endpoint(EndpointSettings::default()),
        );
        domain.bind_vector(endpoint, vector).unwrap();
        domain.enable(endpoint).unwrap();
        for port in [7, 8] {
            domain
                .insert(vector, SocketAddr::from(([127, 0, 0, 1], port)))
                .unwrap();
        }
        let receive = |source, context| {
            let (class, tag, ignore) = (Class::Tagged, 0, 0);
            Receive {
                class,
                source,
                tag,
                ignore,
                flags: None,
                context,
            }
        };
        for (source, context) in [
            (FiAddr::UNSPEC, 1),
            (FiAddr(0), 2),
            (FiAddr(0), 3),
            (FiAddr(1), 4),
        ] {
            domain
                .receive(endpoint, &receive(source, context), UserBuffer::empty())
                .unwrap();
        }
        assert_eq!(heard(&ears), [(0, true), (1, true)], "once for each remote");

        domain.cancel(endpoint, 4).unwrap();
        let idle = |domain: &mut Domain<Watcher>| {
            (0..=IDLE_ROUNDS_PER_REVIEW).for_each(|_| assert_eq!(domain.progress(endpoint), Ok(0)));
        };
        idle(&mut domain);
        assert_eq!(heard(&ears), [(1, false)], "nobody waits for it any more");
        domain
            .receive(endpoint, &receive(FiAddr(1), 5), UserBuffer::empty())
            .unwrap();
        assert_eq!(heard(&ears), [(1, true)]);

        *dies.lock().unwrap() = Some(RemoteId(0));
        idle(&mut domain);
        assert_eq!(
            domain.cancel(endpoint, 2),
            Err(Error::NoSuch),
            "it failed with its source"
        );
        assert_eq!(heard(&ears), [], "the loss ended the watch");
        domain
            .receive(endpoint, &receive(FiAddr(0), 6), UserBuffer::empty())
            .unwrap();
        idle(&mut domain);
        assert_eq!(
            heard(&ears),
            [(0, true)],
            "it is watched again, to learn whether it is still dead"
        );
    }
}
