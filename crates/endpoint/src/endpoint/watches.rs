// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose death matters: the remotes that something waits for. Others may come and go unnoticed.
//!
//! Asked by endpoint.rs before a receive waits, and now and then. To watch a remote costs the
//! transport a look at it several times a second, so a watch ends when nobody waits for the remote;
//! but not at once, since most receives that are matched are followed by another one from the same
//! remote.

use weft_contract::{RemoteId, Route};

use crate::remotes::Remotes;

/// Rounds of progress without an event between reviews. Chosen: some milliseconds of waiting.
const IDLE_ROUNDS_PER_REVIEW: u32 = 1 << 16;

/// The watches of one endpoint.
#[derive(Default)]
pub(super) struct Watches {
    /// Remotes whose death the transport was asked to notice, and some that were before.
    watched: Vec<RemoteId>,
    /// Rounds of progress without an event.
    idle_rounds_count: u32,
}

impl Watches {
    /// Has the death of a remote noticed.
    #[cold]
    pub(super) fn start<P: Route>(&mut self, route: &mut P, remote: RemoteId) {
        self.watched.push(remote);
        route.watch(remote, true);
    }

    /// Counts a round of progress without an event; says whether a review is due. Fast path.
    #[inline(always)]
    pub(super) fn count_idle_round(&mut self) -> bool {
        self.idle_rounds_count = self.idle_rounds_count.wrapping_add(1);
        self.idle_rounds_count
            .is_multiple_of(IDLE_ROUNDS_PER_REVIEW)
    }

    /// Ends the watches of remotes that are not `awaited`, and forgets those that ended by a loss.
    pub(super) fn review<P: Route>(
        &mut self,
        route: &mut P,
        remotes: &mut Remotes,
        awaited: impl Fn(RemoteId) -> bool,
    ) {
        self.watched.sort_unstable();
        self.watched.dedup();
        self.watched.retain(|&remote| {
            if !remotes.is_watched(remote) {
                return false;
            }
            let is_awaited = awaited(remote);
            if !is_awaited {
                remotes.stop_watching(remote);
                route.watch(remote, false);
            }
            is_awaited
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};

    use weft_contract::{
        AckToken, Class, Closing, Landing, OfferId, Owner, Peer, Place, PostError, Posted,
        RouteError, RouteErrorKind, SendOp, Sleep, TransferError,
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

    impl Closing for Watcher {}

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
            domain.vectors().open(VectorKind::Table),
            domain.endpoints().open(EndpointSettings::default()),
        );
        domain.endpoints().bind_vector(endpoint, vector).unwrap();
        domain.endpoints().enable(endpoint).unwrap();
        for port in [7, 8] {
            domain
                .vectors()
                .insert(vector, SocketAddr::from(([127, 0, 0, 1], port)))
                .unwrap();
        }
        let receive = |domain: &mut Domain<Watcher>, source, context| {
            let receive = Receive {
                class: Class::Tagged,
                source,
                tag: 0,
                ignore: 0,
                flags: None,
                context,
            };
            let calls = domain.endpoint(endpoint).unwrap();
            calls.receive(&receive, UserBuffer::empty).unwrap();
        };
        for (source, context) in [
            (FiAddr::UNSPEC, 1),
            (FiAddr(0), 2),
            (FiAddr(0), 3),
            (FiAddr(1), 4),
        ] {
            receive(&mut domain, source, context);
        }
        assert_eq!(heard(&ears), [(0, true), (1, true)], "once for each remote");

        domain.endpoint(endpoint).unwrap().cancel(4).unwrap();
        let idle = |domain: &mut Domain<Watcher>| {
            (0..=IDLE_ROUNDS_PER_REVIEW)
                .for_each(|_| assert_eq!(domain.endpoint(endpoint).unwrap().progress(), 0));
        };
        idle(&mut domain);
        assert_eq!(heard(&ears), [(1, false)], "nobody waits for it any more");
        receive(&mut domain, FiAddr(1), 5);
        assert_eq!(heard(&ears), [(1, true)]);

        *dies.lock().unwrap() = Some(RemoteId(0));
        idle(&mut domain);
        assert_eq!(
            domain.endpoint(endpoint).unwrap().cancel(2),
            Err(Error::NoSuch),
            "it failed with its source"
        );
        assert_eq!(heard(&ears), [], "the loss ended the watch");
        receive(&mut domain, FiAddr(0), 6);
        idle(&mut domain);
        assert_eq!(
            heard(&ears),
            [(0, true)],
            "it is watched again, to learn whether it is still dead"
        );
    }
}
