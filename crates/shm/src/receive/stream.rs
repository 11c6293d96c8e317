// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One message that comes in pieces: straight into the matched receive, or into memory until there
//! is one. All of it comes unasked, or its first bytes (early data), and its receiver asks for the
//! rest while they are copied (docs/shm-layout.md, clause 5).

use std::time::Instant;

use weft_contract::{Landing, LandingToken, RemoteId};
use weft_memory::BytesView;

use crate::copy::offer::RemoteOffer;
use crate::protocol::cell::{Eager, MatchHeader, Rts};
use crate::protocol::copy_method::CopyMethod;
use crate::receive::receipts::Due;
use crate::tuner::copies::Lesson;

/// Where the pieces go.
#[derive(Debug)]
pub(super) enum Target {
    /// To the receive that was matched.
    Landing(Landing),
    /// To the heap; the owner knows the message as an offer.
    Heap(Vec<u8>),
    /// Nowhere: the owner discarded it.
    Nowhere,
}

/// How the rest of a message is to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    pub(super) method: CopyMethod,
    pub(super) lesson: Lesson,
    /// When that was decided.
    pub(super) started: Instant,
}

/// What there is of a message beyond its early data.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) offer: RemoteOffer,
    /// How it is to come, once that is decided.
    pub(super) decision: Option<Decision>,
}

/// What the first cell of a message in pieces says.
#[derive(Debug)]
pub(super) struct Beginning {
    pub(super) header: MatchHeader,
    /// Of the whole message.
    pub(super) length_bytes: u64,
    /// What comes unasked.
    pub(super) unasked_bytes: usize,
    rest: Option<Rest>,
    receipt: Option<u64>,
}

impl Beginning {
    /// All of it comes unasked.
    pub(super) fn of_eager(eager: Eager) -> Self {
        Self {
            header: eager.header,
            length_bytes: u64::from(eager.length_bytes),
            unasked_bytes: eager.length_bytes as usize,
            rest: None,
            receipt: eager.receipt,
        }
    }

    /// So much of it does.
    pub(super) fn of_rts(remote: RemoteId, rts: &Rts, early_bytes: u32) -> Self {
        let offer = RemoteOffer::of(remote, rts);
        Self {
            header: rts.header,
            length_bytes: rts.length_bytes,
            unasked_bytes: early_bytes as usize,
            rest: Some(Rest {
                offer,
                decision: None,
            }),
            receipt: None,
        }
    }
}

/// One message in pieces.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) remote: RemoteId,
    pub(super) target: Target,
    /// What comes unasked: all of the message, or its early data.
    pub(super) unasked_bytes: usize,
    /// The same, and what was asked for besides.
    pub(super) expected_bytes: usize,
    received_bytes: usize,
    /// What there is besides, if this is only early data.
    pub(super) rest: Option<Rest>,
    /// The id for the FIN that its sender waits for, if it does.
    receipt: Option<u64>,
}

impl Stream {
    pub(super) fn new(remote: RemoteId, beginning: Beginning, target: Target) -> Self {
        Self {
            remote,
            target,
            unasked_bytes: beginning.unasked_bytes,
            expected_bytes: beginning.unasked_bytes,
            received_bytes: 0,
            rest: beginning.rest,
            receipt: beginning.receipt,
        }
    }

    /// Takes a piece; false if it is more than may come, up to `end_bytes`.
    pub(super) fn take(&mut self, piece: BytesView<'_>, end_bytes: usize) -> bool {
        if self.received_bytes + piece.length_bytes() > end_bytes {
            return false;
        }
        match &mut self.target {
            Target::Landing(landing) => {
                landing.buffer.fill(self.received_bytes, piece);
            }
            Target::Heap(bytes) => {
                let start = bytes.len();
                bytes.resize(start + piece.length_bytes(), 0);
                piece.copy_to_slice(&mut bytes[start..]);
            }
            Target::Nowhere => {}
        }
        self.received_bytes += piece.length_bytes();
        true
    }

    /// Whether DATA of so many bytes may come: it was asked for, and comes after the early data.
    pub(super) fn expects_data(&self, length_bytes: usize) -> bool {
        self.expected_bytes > self.unasked_bytes && self.has_begun() && length_bytes > 0
    }

    /// Whether all is here that comes unasked.
    pub(super) fn has_begun(&self) -> bool {
        self.received_bytes >= self.unasked_bytes
    }

    /// Whether its sender waits for an answer.
    pub(super) fn needs_answer(&self) -> bool {
        self.rest.is_some() || self.receipt.is_some()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.received_bytes == self.expected_bytes
    }

    /// Whether it is over, all of it having come unasked.
    pub(super) fn is_over(&self) -> bool {
        self.is_complete() && self.rest.is_none() && !matches!(self.target, Target::Heap(_))
    }

    /// What a message of this remote brought that is whole and has no receive.
    pub(super) fn bring(&mut self, remote: RemoteId) -> Option<Vec<u8>> {
        let is_whole = self.is_complete() && self.rest.is_none();
        match &mut self.target {
            Target::Heap(bytes) if is_whole && self.remote == remote => Some(std::mem::take(bytes)),
            _ => None,
        }
    }

    /// It is over; its sender is told if it waits for that.
    pub(super) fn into_end(self) -> StreamEnd {
        let receipt = self.receipt;
        self.end_with(receipt)
    }

    /// It is over, and its sender is told that this send is.
    pub(super) fn end_with(self, send_id: Option<u64>) -> StreamEnd {
        let remote = self.remote;
        StreamEnd {
            landed: match self.target {
                Target::Landing(landing) => Some(landing.token),
                _ => None,
            },
            finish: send_id.map(|send_id| Due { remote, send_id }),
        }
    }
}

/// What the end of a stream means: a landing to report, a FIN to send.
#[derive(Debug, Default)]
pub(crate) struct StreamEnd {
    pub(crate) landed: Option<LandingToken>,
    pub(crate) finish: Option<Due>,
}
