// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is known of an arriving message before its payload is touched. Built by a transport, read
//! by matching.

use crate::RemoteId;

/// What a message is for. The first two are the receive sides of an endpoint; a message of one
/// never matches a receive of the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// fi_msg(3): no tag, received in order of posting.
    Message,
    /// fi_tagged(3): matched by tag.
    Tagged,
    /// Between the endpoints themselves (one-sided operations): has a tag, is never matched by a
    /// receive of the user's, and keeps its place among the messages of its sender like any other.
    Service,
}

/// An arriving message, as its transport has checked it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Who sent it.
    pub remote: RemoteId,
    /// What it is for.
    pub class: Class,
    /// Its tag; 0 for [`Class::Message`].
    pub tag: u64,
    /// Remote completion data (FI_REMOTE_CQ_DATA), if the sender gave any.
    pub cq_data: Option<u64>,
    /// Length of the whole message.
    pub length_bytes: u64,
}
