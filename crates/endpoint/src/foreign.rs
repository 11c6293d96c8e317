// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receives that somebody else matches: the owner of a shared receive context that libfabric's Peer
//! API brings in.
//!
//! Such an endpoint has another owner of its transport (foreign_arrivals.rs), so that the others
//! pay nothing. An arriving message is offered to the foreign owner; one that it has no receive for
//! is kept here under a number, until the owner starts or discards it. Set and called by the
//! provider's peer module (foreign_calls.rs). fi_peer(3).

use std::fmt;

use weft_contract::Class;
use weft_memory::UserBuffer;

use crate::completion::ReceiveEnd;
use crate::ids::FiAddr;
use crate::slots::Slots;
use crate::unexpected::Unexpected;

/// What a foreign owner is told of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForeignMessage {
    /// With or without a tag.
    pub class: Class,
    /// Who sent it, as the user calls it; [`FiAddr::UNSPEC`] if it has no name.
    pub source: FiAddr,
    /// The tag; 0 for [`Class::Message`].
    pub tag: u64,
    /// Length of the whole message.
    pub length_bytes: u64,
    /// The sender's data, if any.
    pub cq_data: Option<u64>,
}

/// A receive of a foreign owner.
#[derive(Debug)]
pub struct ForeignReceive {
    /// Where the message goes.
    pub buffer: UserBuffer,
    /// Comes back in the completion.
    pub context: usize,
    /// Flags of the call.
    pub flags: u64,
}

/// What the owner says to a message.
#[derive(Debug)]
pub enum Found {
    /// It has a receive for it.
    Receive(ForeignReceive),
    /// It has queued the message under the number given.
    Unexpected,
    /// It does not take such messages: dropped.
    Refused,
}

/// The foreign owner.
pub trait ForeignReceives: Send {
    /// Offers a message, which will be kept under `number` if the owner has no receive for it. Fast
    /// path; must not call back into the domain.
    fn offer(&mut self, message: &ForeignMessage, number: u32) -> Found;
}

/// The foreign owner of an endpoint's receives, and what is kept for it.
pub(crate) struct Foreign {
    pub(crate) receives: Box<dyn ForeignReceives>,
    pub(crate) kept: Slots<Unexpected>,
}

impl fmt::Debug for Foreign {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Foreign")
    }
}

/// What the completion of a foreign receive says.
pub(crate) fn end_of(receive: &ForeignReceive) -> ReceiveEnd {
    ReceiveEnd {
        context: receive.context,
        flags: receive.flags,
        capacity_bytes: receive.buffer.length_bytes(),
        address: 0,
        release: false,
    }
}
