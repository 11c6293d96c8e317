// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receives that somebody else matches: a shared receive context that libfabric's Peer API brings
//! in. fi_peer(3).
//!
//! Such an endpoint has another owner of its transport (shared_arrivals.rs), so that the others pay
//! nothing. An arriving message is offered to the context; one that it has no receive for is kept
//! here under a number, until the context starts or discards it. Set and called by the provider's
//! peer module.

use std::fmt;

use slab::Slab;
use weft_contract::{Class, Envelope, OfferId, RemoteId, TransferError};
use weft_memory::UserBuffer;

use super::delivery::{Destination, PostedReceive};
use super::unexpected::{Body, Unexpected};
use crate::error::Error;
use crate::ids::FiAddr;
use crate::remotes::Remotes;

/// What a shared receive context is told of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedMessage {
    /// With or without a tag.
    pub class: Class,
    /// The sender's name in the user's address vector; [`FiAddr::UNSPEC`] if it has no name.
    pub source: FiAddr,
    /// The tag; 0 for [`Class::Message`].
    pub tag: u64,
    /// Length of the whole message.
    pub length_bytes: u64,
    /// The sender's data, if any.
    pub cq_data: Option<u64>,
}

/// A receive of a shared receive context.
#[derive(Debug)]
pub struct SharedReceive {
    /// Where the message goes.
    pub buffer: UserBuffer,
    /// Comes back in the completion.
    pub context: usize,
    /// Flags of the call.
    pub flags: u64,
}

impl SharedReceive {
    pub(crate) fn destination(self) -> Destination {
        let Self {
            buffer,
            context,
            flags,
        } = self;
        Destination::whole(PostedReceive::whole(buffer, context, flags))
    }
}

/// What the context says to a message.
#[derive(Debug)]
pub enum Found {
    /// It has a receive for it.
    Receive(SharedReceive),
    /// It has queued the message under the number given.
    Unexpected,
    /// It does not take such messages: dropped.
    Refused,
}

/// The shared receive context (struct fid_peer_srx).
pub trait SharedContext: Send {
    /// Offers a message, which will be kept under `number` if the context has no receive for it.
    /// Fast path; must not call back into the domain.
    fn offer(&mut self, message: &SharedMessage, number: u32) -> Found;
}

/// The shared receive context of an endpoint, and what is kept for it.
pub(crate) struct SharedReceives {
    context: Box<dyn SharedContext>,
    kept: Slab<Unexpected>,
}

impl fmt::Debug for SharedReceives {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SharedReceives")
    }
}

impl SharedReceives {
    pub(crate) fn new(context: Box<dyn SharedContext>) -> Self {
        let kept = Slab::new();
        Self { context, kept }
    }

    /// Asks the context for a receive.
    pub(crate) fn offer(&mut self, remotes: &Remotes, envelope: &Envelope) -> Found {
        let message = SharedMessage {
            class: envelope.class,
            source: remotes.name_of(envelope.remote),
            tag: envelope.tag,
            length_bytes: envelope.length_bytes,
            cq_data: envelope.cq_data,
        };
        let number = self.kept.vacant_key() as u32;
        self.context.offer(&message, number)
    }

    /// Keeps the message that was just offered.
    pub(crate) fn keep(&mut self, message: Unexpected) {
        self.kept.insert(message);
    }

    /// Takes out the message that is kept under `number`.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub(crate) fn take(&mut self, number: u32) -> Result<Unexpected, Error> {
        self.kept.try_remove(number as usize).ok_or(Error::NoSuch)
    }

    /// Who sent the message that is kept under `number`.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub(crate) fn source(&self, number: u32) -> Result<RemoteId, Error> {
        let message = self.kept.get(number as usize).ok_or(Error::NoSuch)?;
        Ok(message.kept.remote)
    }

    /// The payload of an announced message is here, and `body` makes a copy of it.
    #[cold]
    pub(crate) fn arrived(&mut self, offer: OfferId, body: impl FnOnce() -> Body) {
        let mut kept = self.kept.iter_mut().map(|(_, message)| message);
        if let Some(message) = kept.find(|message| message.is_offered_as(offer)) {
            message.body = body();
        }
    }

    /// A remote is gone: what it only announced is void.
    pub(crate) fn remote_lost(&mut self, remote: RemoteId, why: TransferError) {
        for (_, message) in &mut self.kept {
            message.lose(remote, why);
        }
    }
}
