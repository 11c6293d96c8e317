// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sends to remotes of this host that the local transport gave back, until the network has taken
//! them. Filled by owner, emptied by joined.rs in rounds of progress; later sends wait meanwhile.

use std::collections::VecDeque;
use std::net::SocketAddr;

use weft_contract::{Owner, Peer, PostError, Posted, RemoteId, Returned, SendToken};

/// What one transport has told of a remote, and the other is to learn.
#[derive(Debug)]
pub(super) enum News {
    /// It contacted us first.
    Met(RemoteId, SocketAddr),
    /// The local transport does not reach it; whether its death was to be noticed.
    TurnedAway(RemoteId, bool),
}

/// Sends that were given back.
#[derive(Debug, Default)]
pub(super) struct Detours {
    /// By remote, in their order.
    queues: Vec<(RemoteId, VecDeque<Returned>)>,
}

impl Detours {
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Takes what a remote has not received; later sends to it are to wait until [`Self::post`]
    /// names it.
    pub(super) fn add(&mut self, remote: RemoteId, sends: Vec<Returned>) {
        self.queues.push((remote, sends.into()));
    }

    /// Posts what there is room for; answers for which remotes nothing waits any more.
    pub(super) fn post<N: Peer, O: Owner>(
        &mut self,
        network: &mut N,
        owner: &mut O,
    ) -> Vec<RemoteId> {
        let mut done = Vec::new();
        self.queues.retain_mut(|(remote, sends)| {
            while let Some(send) = sends.front() {
                let posted = network.post_send(&send.op, &send.payload);
                let outcome = match posted {
                    Err(PostError::Busy) => return true,
                    Ok(Posted::Pending) => None,
                    Ok(Posted::Complete) => Some(Ok(())),
                    Err(PostError::Failed(why)) => Some(Err(why)),
                };
                if let Some(outcome) = outcome
                    && send.op.token != SendToken::NOBODY
                {
                    owner.on_sent(send.op.token, outcome);
                }
                sends.pop_front();
            }
            done.push(*remote);
            false
        });
        done
    }

    /// Takes out what waits for a remote that is gone.
    pub(super) fn give_up(&mut self, remote: RemoteId) -> Vec<Returned> {
        let mut sends = Vec::new();
        for (_, queue) in self.queues.iter_mut().filter(|(to, _)| *to == remote) {
            sends.extend(queue.drain(..));
        }
        sends
    }
}
