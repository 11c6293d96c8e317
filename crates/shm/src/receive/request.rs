// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What came of a cell.

use crate::protocol::cell::{Cts, Malformed};

/// What a cell asks of the transport, once the lane is let go.
#[derive(Debug)]
pub(crate) enum Request {
    /// Nothing more.
    None,
    /// Send a FIN for this id.
    Finish(u64),
    /// This send of ours is over.
    Finished(usize),
    /// Send what this CTS asks for.
    Transfer(Cts),
    /// A message with early data has come further: this stream.
    GoOn(usize),
    /// The lane is at its end.
    Bye,
    /// The remote broke the protocol.
    Corrupt,
    /// The same, by a cell that says what cannot be.
    Malformed(Malformed),
}

/// How much payload was taken, and what the transport must do.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) bytes: u32,
    pub(super) request: Request,
}

impl Taken {
    /// The remote broke the protocol.
    pub(super) const CORRUPT: Self = Self {
        bytes: 0,
        request: Request::Corrupt,
    };
}
