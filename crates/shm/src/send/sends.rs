// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Our sends that wait for their remote: for its receipt, or until it asks for the payload (CTS).
//! Cells name them by number. Filled by post and rendezvous; checks what a remote says of them.

use slab::Slab;
use weft_contract::{CompletionLevel, Owner, RemoteId, SendOp, SendToken};
use weft_memory::UserBuffer;
use weft_os::crash_point;

use crate::protocol::cell::{Cts, Fin};
use crate::statistics::{Protocol, Sent};

/// A send that waits for its remote.
#[derive(Debug)]
pub(crate) struct Outgoing {
    remote: RemoteId,
    token: SendToken,
    /// The message, while the remote may still ask for it.
    payload: Option<UserBuffer>,
    /// Length of the message; 0 for one that is already in the lane.
    length_bytes: u64,
    /// Whether a FIN comes after the last byte went through a pipe.
    wants_receipt: bool,
}

impl Outgoing {
    pub(crate) fn remote(&self) -> RemoteId {
        self.remote
    }

    pub(crate) fn token(&self) -> SendToken {
        self.token
    }

    /// Length of the message; 0 for one that is already in the lane.
    pub(crate) fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// The message, and the level at which it is complete.
    pub(crate) fn into_payload(self) -> Option<(UserBuffer, CompletionLevel)> {
        let level = if self.wants_receipt {
            CompletionLevel::Delivery
        } else {
            CompletionLevel::Transmit
        };
        Some((self.payload?, level))
    }
}

/// A message that its remote asked for, on its way there.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Its number; its entry stays until the last byte or its receipt.
    send_id: usize,
    pub(crate) remote: RemoteId,
    token: SendToken,
    pub(crate) payload: UserBuffer,
    /// The bytes of it that are still to be sent.
    pub(crate) bytes: std::ops::Range<usize>,
    wants_receipt: bool,
}

/// All sends that wait for their remote, and the counts of what was sent.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    outgoing: Slab<Outgoing>,
    /// By remote, the length of the last message that was described to it since the last call of
    /// [`Self::take_described`].
    described: Vec<Option<u64>>,
    sent: Sent,
}

/// The remote broke the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Corrupt;

impl Sends {
    /// What was sent so far, by protocol.
    pub(crate) fn sent(&self) -> Sent {
        self.sent
    }

    /// Counts one message.
    #[inline(always)]
    pub(crate) fn count(&mut self, protocol: Protocol, bytes: usize) {
        self.sent.count(protocol, bytes as u64);
    }

    /// Adds a message whose payload goes through the lane, and which waits for its receipt. Returns
    /// its number, as [`Self::describe`].
    pub(crate) fn await_receipt(&mut self, op: &SendOp) -> usize {
        self.outgoing.insert(Outgoing {
            remote: op.remote,
            token: op.token,
            payload: None,
            length_bytes: 0,
            wants_receipt: true,
        })
    }

    /// Adds a message that is described to its remote by an RTS. Returns its number.
    pub(crate) fn describe(&mut self, op: &SendOp, payload: &UserBuffer) -> usize {
        let index = op.remote.index();
        if self.described.len() <= index {
            self.described.resize(index + 1, None);
        }
        self.described[index] = Some(payload.length_bytes() as u64);
        self.outgoing.insert(Outgoing {
            remote: op.remote,
            token: op.token,
            payload: Some(payload.clone()),
            length_bytes: payload.length_bytes() as u64,
            wants_receipt: op.level == CompletionLevel::Delivery,
        })
    }

    /// The length of the last message that was described to a remote since the last call.
    pub(crate) fn take_described(&mut self, remote: RemoteId) -> Option<u64> {
        self.described.get_mut(remote.index())?.take()
    }

    /// Removes a send that has ended, or that was not sent.
    pub(crate) fn end(&mut self, send_id: usize) -> Option<Outgoing> {
        self.outgoing.try_remove(send_id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Outgoing> {
        self.outgoing.iter().map(|(_, outgoing)| outgoing)
    }

    /// The remotes of all sends.
    pub(crate) fn remotes(&self) -> impl Iterator<Item = RemoteId> {
        self.outgoing.iter().map(|(_, outgoing)| outgoing.remote)
    }

    /// The remote of a send.
    pub(crate) fn remote(&self, send_id: usize) -> Option<RemoteId> {
        self.outgoing.get(send_id).map(Outgoing::remote)
    }

    /// The payload of a message that was described to a remote, if the remote has not asked for it
    /// yet.
    pub(crate) fn payload(&self, send_id: usize, remote: RemoteId) -> Option<&UserBuffer> {
        let outgoing = self.outgoing.get(send_id);
        let outgoing = outgoing.filter(|outgoing| outgoing.remote == remote);
        outgoing?.payload.as_ref()
    }

    /// A FIN came in: a send is delivered.
    pub(crate) fn take_fin<O: Owner>(
        &mut self,
        remote: RemoteId,
        fin: Fin,
        owner: &mut O,
    ) -> Result<(), Corrupt> {
        let send_id = fin.send_id as usize;
        // A remote may only end a send to itself; and once we send the payload that it asked for,
        // only a send that waits for a receipt.
        let is_its = self.outgoing.get(send_id).is_some_and(|outgoing| {
            outgoing.remote == remote && (outgoing.payload.is_some() || outgoing.wants_receipt)
        });
        if !is_its {
            return Err(Corrupt);
        }
        crash_point!(32, "fin: taken, the send not completed");
        let outgoing = self.outgoing.remove(send_id);
        if let Some(payload) = &outgoing.payload {
            let fetched = if fin.is_mapped {
                Protocol::Mapped
            } else {
                Protocol::SingleCopy
            };
            self.count(fetched, payload.length_bytes());
        }
        owner.on_sent(outgoing.token, Ok(()));
        Ok(())
    }

    /// A CTS came in: the remote says how it wants a described message. It may only ask for bytes
    /// of a message that was described to it.
    pub(crate) fn check_cts(&self, remote: RemoteId, cts: &Cts) -> Result<(), Corrupt> {
        let payload = self.payload(cts.send_id as usize, remote);
        let length_bytes = payload.map_or(0, UserBuffer::length_bytes) as u64;
        (cts.bytes.end <= length_bytes).then_some(()).ok_or(Corrupt)
    }

    /// Takes out the message that a CTS asks for. From now on it is on its way by this protocol.
    pub(crate) fn start(&mut self, cts: &Cts, protocol: Protocol) -> Option<Asked> {
        let send_id = cts.send_id as usize;
        let outgoing = self.outgoing.get_mut(send_id)?;
        let payload = outgoing.payload.take()?;
        let asked = Asked {
            send_id,
            remote: outgoing.remote,
            token: outgoing.token,
            bytes: cts.bytes.start as usize..cts.bytes.end as usize,
            wants_receipt: outgoing.wants_receipt,
            payload,
        };
        self.count(protocol, asked.payload.length_bytes());
        Some(asked)
    }

    /// The last byte of a message has left; it is complete unless it waits for its receipt.
    pub(crate) fn complete<O: Owner>(&mut self, asked: &Asked, owner: &mut O) {
        if !asked.wants_receipt {
            self.outgoing.try_remove(asked.send_id);
            owner.on_sent(asked.token, Ok(()));
        }
    }

    /// Ends all that waits for a remote.
    pub(crate) fn lose(&mut self, remote: RemoteId) -> Vec<SendToken> {
        let mut lost = Vec::new();
        self.outgoing.retain(|_, outgoing| {
            let keep = outgoing.remote != remote;
            if !keep {
                lost.push(outgoing.token);
            }
            keep
        });
        lost
    }
}
