// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a transport gives back when it cannot reach a remote though another one might. Made by shm,
//! sent another way by the endpoint's join of two transports.

use weft_memory::{Scratch, UserBuffer};

use crate::{RemoteId, SendOp, TransferError};

/// A send that a transport had taken and its remote has not received.
#[derive(Debug)]
pub struct Returned {
    /// As it was posted. The token is [`crate::SendToken::NOBODY`] if it was told to be complete.
    pub op: SendOp,
    /// What it carries.
    pub payload: UserBuffer,
    /// Holds the payload, if that is a copy of what the user's buffer held.
    pub copy: Option<Scratch>,
}

/// A remote that a transport cannot reach, now or later, though it may live.
#[derive(Debug)]
pub struct TurnedAway {
    /// Who.
    pub remote: RemoteId,
    /// Why.
    pub why: TransferError,
    /// What it has not received, in the order in which it was posted.
    pub sends: Vec<Returned>,
    /// The owner had asked to be told of its death.
    pub was_watched: bool,
}
