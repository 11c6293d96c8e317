// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sends that a route gave back, until the next route has taken them. Filled by owner.rs, emptied
//! by routes.rs in rounds of progress; later sends to the same remote wait meanwhile.

use std::collections::VecDeque;

use weft_contract::{Owner, Peer, PostError, Posted, RemoteId, Returned, SendToken};

/// The sends to one remote that were given back.
#[derive(Debug)]
struct Rerouted {
    remote: RemoteId,
    /// Which of the other routes it takes.
    route: usize,
    /// In their order.
    sends: VecDeque<Returned>,
}

/// Sends that were given back.
#[derive(Debug, Default)]
pub(super) struct ReroutedSends {
    rerouted: Vec<Rerouted>,
}

impl ReroutedSends {
    pub(super) fn is_empty(&self) -> bool {
        self.rerouted.is_empty()
    }

    /// Takes what a remote has not received, to go by the other route of index `route`; later sends
    /// to it are to wait until [`Self::post`] names it.
    pub(super) fn add(&mut self, remote: RemoteId, route: usize, sends: Vec<Returned>) {
        let mut sends = VecDeque::from(sends);
        // What the route that now gives up had not taken yet was posted later.
        if let Some(index) = self.rerouted.iter().position(|one| one.remote == remote) {
            sends.append(&mut self.rerouted.swap_remove(index).sends);
        }
        self.rerouted.push(Rerouted {
            remote,
            route,
            sends,
        });
    }

    /// Posts what there is room for; answers for which remotes nothing waits any more.
    pub(super) fn post<P: Peer, O: Owner>(
        &mut self,
        routes: &mut [P],
        owner: &mut O,
    ) -> Vec<RemoteId> {
        let mut done = Vec::new();
        self.rerouted.retain_mut(|one| {
            let route = &mut routes[one.route];
            while let Some(send) = one.sends.front() {
                let outcome = match route.post_send(&send.op, &send.payload) {
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
                one.sends.pop_front();
            }
            done.push(one.remote);
            false
        });
        done
    }

    /// Takes out what waits for a remote that is gone.
    pub(super) fn give_up(&mut self, remote: RemoteId) -> Vec<Returned> {
        let mut sends = Vec::new();
        for one in self.rerouted.iter_mut().filter(|one| one.remote == remote) {
            sends.extend(one.sends.drain(..));
        }
        sends
    }
}

#[cfg(test)]
mod tests {
    use weft_contract::{Class, CompletionLevel, SendOp};
    use weft_memory::UserBuffer;

    use super::*;

    const SOMEBODY: RemoteId = RemoteId(0);

    fn send(number: u64) -> Returned {
        Returned {
            op: SendOp {
                remote: SOMEBODY,
                class: Class::Message,
                tag: 0,
                cq_data: None,
                level: CompletionLevel::Transmit,
                token: SendToken(number),
                inject: false,
            },
            payload: UserBuffer::empty(),
            copy: None,
        }
    }

    #[test]
    fn what_a_second_route_gives_back_goes_before_what_it_had_not_taken_yet() {
        let mut rerouted = ReroutedSends::default();
        rerouted.add(SOMEBODY, 0, vec![send(3), send(4)]);
        rerouted.add(SOMEBODY, 1, vec![send(1), send(2)]);
        let waiting = rerouted.give_up(SOMEBODY);
        let tokens: Vec<u64> = waiting.iter().map(|send| send.op.token.0).collect();
        assert_eq!(tokens, [1, 2, 3, 4]);
    }
}
