// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sends that a transport gives back because it cannot reach a remote that another transport might
//! reach. Made by shm; the endpoint's list of routes posts them to the next route.

use weft_memory::{Scratch, UserBuffer};

use crate::{RemoteId, SendOp, TransferError};

/// A send that a transport took and the remote has not received.
#[derive(Debug)]
pub struct Returned {
    /// As it was posted. The token is [`crate::SendToken::NOBODY`] if the owner was told that the
    /// send is complete.
    pub op: SendOp,
    /// Its payload.
    pub payload: UserBuffer,
    /// Holds the payload, if that is a copy of what the user's buffer held.
    pub copy: Option<Scratch>,
}

/// A remote that a transport cannot reach, now or later, though it may live.
#[derive(Debug)]
pub struct TurnedAway {
    /// The remote.
    pub remote: RemoteId,
    /// Why it cannot be reached.
    pub why: TransferError,
    /// The sends that it has not received, in the order in which they were posted.
    pub sends: Vec<Returned>,
    /// The owner had asked to be told of its death.
    pub was_watched: bool,
}
