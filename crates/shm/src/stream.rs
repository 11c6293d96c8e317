// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streamed messages on their way in: pieces go straight to the matched receive, or to the heap
//! until there is one. At most one streams through a lane at a time. Called by receive and by
//! rendezvous (accept, discard).

use weft_contract::{Landing, LandingToken, Owner, RemoteId};
use weft_memory::BytesView;
use weft_os::crash_point;

use crate::parted::Rest;
use crate::protocol::cell::{Eager, MatchHeader, Rts};
use crate::receive::{Piece, Request, offer_id};
use crate::rendezvous::Offer;
use crate::transport::Transfers;

/// Where the pieces go.
#[derive(Debug)]
pub(crate) enum Target {
    /// To the receive that was matched.
    Landing(Landing),
    /// To the heap; the owner knows the message as this offer.
    Heap(Vec<u8>),
    /// Nowhere: the owner discarded it.
    Nowhere,
}

/// What the first cell of a message in pieces says.
#[derive(Debug)]
pub(crate) struct Beginning {
    header: MatchHeader,
    /// Of the whole message.
    length_bytes: u64,
    /// What comes unasked.
    unasked_bytes: usize,
    rest: Option<Rest>,
    receipt: Option<u64>,
}

impl Beginning {
    /// All of it comes unasked.
    pub(crate) fn of_eager(eager: Eager) -> Self {
        Self {
            header: eager.header,
            length_bytes: u64::from(eager.length_bytes),
            unasked_bytes: eager.length_bytes as usize,
            rest: None,
            receipt: eager.receipt,
        }
    }

    /// So much of it does.
    pub(crate) fn of_rts(remote: RemoteId, rts: &Rts, early_bytes: u32) -> Self {
        Self {
            header: rts.header,
            length_bytes: rts.length_bytes,
            unasked_bytes: early_bytes as usize,
            rest: Some(Rest::of(remote, rts)),
            receipt: None,
        }
    }
}

/// One streamed message.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) remote: RemoteId,
    pub(crate) target: Target,
    /// What comes unasked: all of the message, or its beginning.
    pub(crate) unasked_bytes: usize,
    /// The same, and what was asked for besides.
    pub(crate) expected_bytes: usize,
    pub(crate) received_bytes: usize,
    /// What there is besides, if this is only a beginning.
    pub(crate) rest: Option<Rest>,
    /// The id for the FIN that its sender waits for, if it does.
    receipt: Option<u64>,
}

impl Stream {
    /// Takes a piece; false if it is more than may come, up to `end_bytes`.
    pub(crate) fn take(&mut self, piece: BytesView<'_>, end_bytes: usize) -> bool {
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

    /// Whether all is here that comes unasked.
    pub(crate) fn has_begun(&self) -> bool {
        self.received_bytes >= self.unasked_bytes
    }

    /// Whether its sender waits for an answer.
    pub(crate) fn needs_answer(&self) -> bool {
        self.rest.is_some() || self.receipt.is_some()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.received_bytes == self.expected_bytes
    }
}

/// What the end of a stream means: a landing to report, a FIN to send.
#[derive(Debug, Default)]
pub(crate) struct StreamEnd {
    pub(crate) landed: Option<LandingToken>,
    pub(crate) finish: Option<(RemoteId, u64)>,
}

impl Transfers {
    /// The first piece. A matched receive gets it at once.
    pub(crate) fn begin_stream<O: Owner>(
        &mut self,
        piece: &Piece<'_>,
        beginning: Beginning,
        lane_stream: &mut Option<usize>,
        owner: &mut O,
    ) -> (u32, Request) {
        let remote = piece.remote;
        let unasked_bytes = beginning.unasked_bytes;
        let fits = |payload: &BytesView<'_>| (1..=unasked_bytes).contains(&payload.length_bytes());
        if !piece.payload.as_ref().is_some_and(fits) {
            return (0, Request::Corrupt);
        }
        let entry = self.streams.vacant_entry();
        let index = entry.key();
        let offer = self.offers.insert(Offer::Stream(index));
        let envelope = beginning.header.envelope(remote, beginning.length_bytes);
        let target = match owner.on_offer(&envelope, offer_id(offer)) {
            Some(landing) => {
                self.offers.remove(offer);
                Target::Landing(landing)
            }
            None => Target::Heap(Vec::with_capacity(unasked_bytes)),
        };
        let goes_on = beginning.rest.is_some();
        entry.insert(Stream {
            remote,
            target,
            unasked_bytes,
            expected_bytes: unasked_bytes,
            received_bytes: 0,
            rest: beginning.rest,
            receipt: beginning.receipt,
        });
        *lane_stream = Some(index);
        crash_point!(25, "stream: begun at the receiver");
        match self.continue_stream(piece, lane_stream, owner) {
            (bytes, Request::None) if goes_on => (bytes, Request::GoOn(index)),
            taken => taken,
        }
    }

    /// A further piece.
    pub(crate) fn continue_stream<O: Owner>(
        &mut self,
        piece: &Piece<'_>,
        lane_stream: &mut Option<usize>,
        owner: &mut O,
    ) -> (u32, Request) {
        let (Some(index), Some(payload)) = (*lane_stream, piece.payload) else {
            return (0, Request::Corrupt);
        };
        let Some(stream) = self.streams.get_mut(index) else {
            return (0, Request::Corrupt);
        };
        let data_bytes = payload.length_bytes() as u32;
        if !stream.take(payload, stream.unasked_bytes) {
            return (0, Request::Corrupt);
        }
        if !stream.has_begun() {
            crash_point!(26, "stream: a piece is taken, others are to come");
            return (data_bytes, Request::None);
        }
        *lane_stream = None;
        crash_point!(27, "stream: the last piece is taken");
        if stream.rest.is_some() {
            return (data_bytes, Request::GoOn(index));
        }
        let end = self.end_if_complete(index);
        if let Some(token) = end.landed {
            owner.on_landed(token, Ok(()));
        }
        (
            data_bytes,
            end.finish
                .map_or(Request::None, |(_, send_id)| Request::Finish(send_id)),
        )
    }

    /// The owner has a receive for it: what is on the heap goes there, and the rest will.
    pub(crate) fn land_stream(&mut self, index: usize, landing: Landing) -> StreamEnd {
        let stream = &mut self.streams[index];
        if let Target::Heap(bytes) = &stream.target {
            landing.buffer.fill(0, BytesView::from_slice(bytes));
        }
        stream.target = Target::Landing(landing);
        self.end_if_complete(index)
    }

    /// The owner does not want it.
    pub(crate) fn drop_stream(&mut self, index: usize) -> StreamEnd {
        self.streams[index].target = Target::Nowhere;
        self.end_if_complete(index)
    }

    fn end_if_complete(&mut self, index: usize) -> StreamEnd {
        let stream = &self.streams[index];
        if !stream.is_complete()
            || stream.rest.is_some()
            || matches!(stream.target, Target::Heap(_))
        {
            return StreamEnd::default();
        }
        let stream = self.streams.remove(index);
        StreamEnd {
            landed: match stream.target {
                Target::Landing(landing) => Some(landing.token),
                _ => None,
            },
            finish: stream.receipt.map(|send_id| (stream.remote, send_id)),
        }
    }
}
