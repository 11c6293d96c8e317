// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All that one endpoint keeps for one-sided operations: its own, those of remotes, and what waits
//! to be sent for both.
//!
//! Changed by initiator.rs from above and by service.rs from below; emptied after each round of
//! progress.

use weft_contract::{Peer, PostError, RemoteId, TransferError};

use super::operations::Operations;
use super::send_queues::{SendEntry, SendQueues};
use super::target::Target;
use crate::completion::completions::Completions;
use crate::completion::transmit::TransmitReports;
use crate::error::Error;

/// The two sides of one endpoint.
pub(crate) struct OneSided {
    pub(super) operations: Operations,
    pub(super) target: Target,
    pub(super) send_queues: SendQueues,
}

impl OneSided {
    /// Nothing is under way.
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            operations: Operations::default(),
            target: Target::new(),
            send_queues: SendQueues::new(),
        })
    }

    /// Whether an operation waits for an answer of `remote`.
    pub(crate) fn awaits(&self, remote: RemoteId) -> bool {
        self.operations.outstanding(remote) > 0
    }

    /// Whether all that was posted to a remote has been carried out.
    #[inline]
    pub(super) fn is_all_done(&self, remote: RemoteId) -> bool {
        !self.awaits(remote)
            && self.send_queues.count(remote) == 0
            && !self.operations.is_unconfirmed(remote)
    }

    /// Whether something waits to be sent. Fast path.
    #[inline(always)]
    pub(crate) fn has_waiting(&self) -> bool {
        !self.send_queues.is_empty()
    }

    /// Sends what waits, as far as there is room; answers how many messages went. Fast path.
    #[inline(never)]
    pub(crate) fn send_waiting<P: Peer>(
        &mut self,
        route: &mut P,
        reports: &mut TransmitReports,
        completions: &mut Completions,
    ) -> usize {
        let mut sent_count = 0;
        let mut index = 0;
        while let Some(remote) = self.send_queues.active(index) {
            loop {
                match self.send_next(route, remote) {
                    Ok(Some(payload)) => {
                        self.operations
                            .payload_sent(reports, completions, payload, Ok(()));
                    }
                    Ok(None) => {}
                    Err(PostError::Busy) => {
                        index += 1;
                        break;
                    }
                    Err(PostError::Failed(why)) => {
                        self.drop_waiting(reports, completions, remote, why);
                        break;
                    }
                }
                sent_count += 1;
                if self.send_queues.end_turn(index) {
                    break;
                }
            }
        }
        sent_count
    }

    /// Sends the next entries of one remote; names the long write whose payload is wholly sent, if
    /// that was it.
    fn send_next<P: Peer>(
        &mut self,
        route: &mut P,
        remote: RemoteId,
    ) -> Result<Option<u32>, PostError> {
        let token = self.send_queues.nameless_token();
        let mut taken_count = 1;
        let mut sent = None;
        match self.send_queues.first(remote) {
            None => return Ok(None),
            Some(&SendEntry::LongResult(number)) => {
                self.target.send_result(route, remote, number, token)?;
            }
            Some(&SendEntry::Payload(id)) => {
                let is_sent = self.operations.send_payload(route, remote, id)?;
                sent = is_sent.then_some(id);
            }
            Some(_) => taken_count = self.send_queues.send_answer(route, remote, token)?,
        }
        self.send_queues.forget(remote, taken_count);
        Ok(sent)
    }

    /// A remote is gone: nothing can be sent to it, and payload that waited to be is not in use any
    /// more.
    fn drop_waiting(
        &mut self,
        reports: &mut TransmitReports,
        completions: &mut Completions,
        remote: RemoteId,
        why: TransferError,
    ) {
        for entry in self.send_queues.clear(remote) {
            match entry {
                SendEntry::Payload(id) => {
                    let why = Err(Error::Transfer(why));
                    self.operations.payload_sent(reports, completions, id, why);
                }
                SendEntry::LongResult(number) => self.target.end_result(number),
                _ => {}
            }
        }
    }

    /// A remote is gone: whatever waits for it ends, but for what its route still uses, which ends
    /// when that does.
    pub(crate) fn remote_lost(
        &mut self,
        reports: &mut TransmitReports,
        completions: &mut Completions,
        remote: RemoteId,
        why: TransferError,
    ) {
        self.drop_waiting(reports, completions, remote, why);
        self.operations
            .remote_lost(reports, completions, remote, why);
        self.target.remote_lost(remote);
    }

    /// Refuses whatever was announced for a region and has not begun to move. Whether nothing moves
    /// there now, so that nothing will. Setup.
    pub(crate) fn leave(&mut self, key: u64) -> bool {
        self.target.leave(key, &mut self.send_queues)
    }
}
