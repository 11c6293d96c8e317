// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of one-sided operations that wait to be sent: answers, which are never sent from within
//! a transport's callback, and payload that found no room. Filled by target.rs and initiator.rs,
//! emptied after each round of progress.

use std::collections::VecDeque;

use weft_contract::{CompletionLevel, Peer, PostError, Posted, RemoteId, SendOp, SendToken};
use weft_memory::{BytesView, UserBuffer};

use super::outbox::{Bytes, Parcel, SHORT_BYTES};
use super::request::{Kind, Tag};
use super::{NAMELESS, OURS, OneSided, RESULT};
use crate::completion::{Reporter, Sinks};
use crate::error::Error;

/// Bytes of an operation's name in an answer.
const ID_BYTES: usize = 4;

/// A message between endpoints, to be sent at once or not at all.
pub(super) fn service(remote: RemoteId, tag: Tag, token: u64, inject: bool) -> SendOp {
    SendOp {
        remote,
        class: weft_contract::Class::Service,
        tag: tag.pack(),
        cq_data: None,
        level: if inject {
            CompletionLevel::Inject
        } else {
            CompletionLevel::Transmit
        },
        token: SendToken(token),
        inject,
    }
}

impl OneSided {
    /// A token for what nobody waits for; each is used once.
    pub(super) fn nameless_token(&mut self) -> u64 {
        self.nameless_count = (self.nameless_count + 1) % RESULT;
        OURS | NAMELESS | self.nameless_count
    }

    /// Sends what waited, as far as there is room; answers how many messages went. Fast path.
    #[inline(never)]
    pub(crate) fn send_parcels<P: Peer>(
        &mut self,
        local: &mut P,
        report: &mut Reporter,
        sinks: &mut Sinks,
    ) -> usize {
        let mut sent_count = 0;
        let mut index = 0;
        while let Some(remote) = self.outbox.active(index) {
            loop {
                match self.send_next(local, remote) {
                    Ok(Some(payload)) => self.payload_sent(payload, Ok(()), report, sinks),
                    Ok(None) => {}
                    Err(PostError::Busy) => {
                        index += 1;
                        break;
                    }
                    Err(PostError::Failed(why)) => {
                        self.drop_parcels(remote, Error::Transfer(why), report, sinks);
                        break;
                    }
                }
                sent_count += 1;
                if self.outbox.end_turn(index) {
                    break;
                }
            }
        }
        sent_count
    }

    /// Sends the next parcels of one remote; names the long write whose payload is wholly sent, if
    /// that was it.
    fn send_next<P: Peer>(
        &mut self,
        local: &mut P,
        remote: RemoteId,
    ) -> Result<Option<u32>, PostError> {
        let token = self.nameless_token();
        let scratch = &self.scratch;
        let queue = self.outbox.queue(remote);
        let mut taken_count = 1;
        let mut sent = None;
        match queue.front() {
            None => return Ok(None),
            Some(Parcel::Done(_)) => {
                let mut ids = [0; SHORT_BYTES];
                taken_count = gather(queue, &mut ids);
                let length = scratch.write(0, &ids[..taken_count * ID_BYTES]);
                let op = service(remote, Tag::new(Kind::Done, 0), token, true);
                local.post_send(&op, &scratch.payload(length))?;
            }
            Some(&Parcel::Refused(id, reason)) => refuse(local, remote, id, reason, token)?,
            Some(Parcel::Result(id, bytes)) => {
                let payload = match bytes {
                    Bytes::Short(bytes, length_bytes) => {
                        let length = scratch.write(0, &bytes[..usize::from(*length_bytes)]);
                        scratch.payload(length)
                    }
                    Bytes::Long(stretch, length_bytes) => stretch.payload(*length_bytes),
                };
                let op = service(remote, Tag::new(Kind::Result, *id), token, true);
                local.post_send(&op, &payload)?;
            }
            Some(&Parcel::LongResult(number)) => self.send_long_result(local, remote, number)?,
            Some(Parcel::Payload(id)) => {
                let id = *id;
                if let Some(operation) = self.operations.get_mut(id) {
                    let tag = Tag::new(Kind::Payload, id);
                    let op = service(remote, tag, OURS | u64::from(id), false);
                    let posted = local.post_send(&op, &operation.buffer)?;
                    sent = (posted == Posted::Complete).then_some(id);
                }
            }
        }
        self.outbox.forget(remote, taken_count);
        Ok(sent)
    }

    /// A remote is gone: nothing can be sent to it, and payload that waited to be is not in use any
    /// more.
    pub(super) fn drop_parcels(
        &mut self,
        remote: RemoteId,
        why: Error,
        report: &mut Reporter,
        sinks: &mut Sinks,
    ) {
        for parcel in self.outbox.clear(remote) {
            match parcel {
                Parcel::Payload(id) => self.payload_sent(id, Err(why), report, sinks),
                Parcel::LongResult(number) => drop(self.outgoing.remove(number)),
                _ => {}
            }
        }
    }
}

/// Tells a remote that its operation was refused.
pub(super) fn refuse<P: Peer>(
    local: &mut P,
    remote: RemoteId,
    id: u32,
    reason: u8,
    token: u64,
) -> Result<(), PostError> {
    let tag = Tag {
        code: reason,
        ..Tag::new(Kind::Refused, id)
    };
    let op = service(remote, tag, token, true);
    local.post_send(&op, &UserBuffer::empty()).map(drop)
}

/// Collects the names of operations that are carried out one after the other; answers how many.
fn gather(queue: &VecDeque<Parcel>, ids: &mut [u8; SHORT_BYTES]) -> usize {
    let done = queue.iter().map_while(|parcel| match parcel {
        Parcel::Done(id) => Some(id),
        _ => None,
    });
    let mut count = 0;
    for (id, place) in done.zip(ids.chunks_exact_mut(ID_BYTES)) {
        place.copy_from_slice(&id.to_le_bytes());
        count += 1;
    }
    count
}

/// Hands each name in an answer to `visit`; false if the answer is not made of names.
pub(super) fn each_id(answer: BytesView<'_>, mut visit: impl FnMut(u32)) -> bool {
    let length = answer.length_bytes();
    if length > SHORT_BYTES || length % ID_BYTES != 0 {
        return false;
    }
    let mut bytes = [0; SHORT_BYTES];
    answer.copy_to_slice(&mut bytes[..length]);
    for id in bytes[..length].chunks_exact(ID_BYTES) {
        visit(u32::from_le_bytes([id[0], id[1], id[2], id[3]]));
    }
    true
}
