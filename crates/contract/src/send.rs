// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One form for every fi_send, fi_tsend and inject call. Built by the endpoint, consumed by a
//! transport.

use crate::{Class, RemoteId};

/// The longest message that any route carries. Chosen: longer than any host's memory, and with so
/// few bits that no sum of lengths overflows.
pub const MESSAGE_LIMIT_BYTES: u64 = 1 << 40;

/// The owner's name for a send that is under way; handed back in [`crate::Owner::on_sent`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SendToken(pub u64);

impl SendToken {
    /// The token of sends whose end the owner does not want to know. Chosen: an owner never has so
    /// many sends under way.
    pub const NOBODY: Self = Self(u32::MAX as u64);
}

/// When a send counts as complete (fi_cq(3), completion event semantics).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionLevel {
    /// The user asked for no level. If a copy is cheap, the route copies the payload and the send
    /// is complete at once; else as [`Self::Transmit`].
    Unstated,
    /// The user's buffer may be reused (FI_INJECT_COMPLETE, and fi_inject itself).
    Inject,
    /// The message arrives without any more help of the sender (FI_TRANSMIT_COMPLETE).
    Transmit,
    /// The message is in the buffer of the receive it matched (FI_DELIVERY_COMPLETE).
    Delivery,
}

/// A message to send; its payload travels beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendOp {
    /// The receiver.
    pub remote: RemoteId,
    /// What it is for.
    pub class: Class,
    /// Its tag; 0 for [`Class::Message`].
    pub tag: u64,
    /// Remote completion data, if any.
    pub cq_data: Option<u64>,
    /// When it counts as complete.
    pub level: CompletionLevel,
    /// Named in `on_sent` if the transport answers [`crate::Posted::Pending`].
    pub token: SendToken,
    /// The payload must be taken before `post_send` returns (fi_inject); a transport that cannot do
    /// so returns [`crate::PostError::Busy`].
    pub inject: bool,
}
