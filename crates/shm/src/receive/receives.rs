// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that have arrived, or been announced, and are not over yet.

use weft_contract::{Landing, Owner, RemoteId};
use weft_memory::BytesView;
use weft_os::crash_point;

use crate::contact::lane::Piece;
use crate::copy::offer::RemoteOffer;
use crate::protocol::cell::{Carrier, Eager, Rts};
use crate::receive::offers::{Offer, Offers};
use crate::receive::receipts::Receipts;
use crate::receive::request::{Request, Taken};
use crate::receive::stream::Beginning;
use crate::receive::streams::{LostLane, Streams};

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Receives {
    pub(crate) offers: Offers,
    pub(crate) streams: Streams,
    pub(crate) receipts: Receipts,
}

impl Receives {
    /// A cell with payload, by kind.
    #[inline(always)]
    pub(super) fn take<O: Owner>(
        &mut self,
        piece: &mut Piece<'_>,
        carrier: Carrier,
        owner: &mut O,
    ) -> Taken {
        match carrier {
            Carrier::Eager(eager) => self.take_eager(piece, eager, owner),
            Carrier::Stream(eager) => {
                let beginning = Beginning::of_eager(eager);
                self.streams
                    .begin(&mut self.offers, piece, beginning, owner)
            }
            Carrier::EarlyRts(rts, early_bytes) => {
                let beginning = Beginning::of_rts(piece.remote, &rts, early_bytes);
                self.streams
                    .begin(&mut self.offers, piece, beginning, owner)
            }
            Carrier::Piece(_) => self.streams.take_piece(piece, owner),
            Carrier::Data(number, _) => self.streams.take_data(piece, number),
        }
    }

    #[inline(always)]
    fn take_eager<O: Owner>(&mut self, piece: &Piece<'_>, eager: Eager, owner: &mut O) -> Taken {
        let bytes = eager.length_bytes;
        let whole = |payload: &BytesView<'_>| payload.length_bytes() == bytes as usize;
        let Some(payload) = piece.payload.filter(whole) else {
            return Taken::CORRUPT;
        };
        let envelope = eager.header.envelope(piece.remote, u64::from(bytes));
        let mut request = Request::None;
        if let Some(send_id) = eager.receipt {
            let ack = self.receipts.expect(piece.remote, send_id);
            if owner.on_message(&envelope, payload, Some(ack)) {
                self.receipts.take(ack);
                request = Request::Finish(send_id);
            }
        } else {
            owner.on_message(&envelope, payload, None);
        }
        Taken { bytes, request }
    }

    /// An RTS came in.
    pub(super) fn take_rts<O: Owner>(&mut self, remote: RemoteId, rts: &Rts, owner: &mut O) {
        let offer = Offer::Remote(RemoteOffer::of(remote, rts));
        crash_point!(29, "rts: taken");
        let envelope = rts.header.envelope(remote, rts.length_bytes);
        if let Some(landing) = self.offers.announce(&envelope, offer, owner) {
            self.offers.land(offer, landing);
        }
    }

    /// Whether something of a remote was taken that still needs an answer.
    pub(crate) fn owe_answers(&self, remote: RemoteId) -> bool {
        self.streams.owe_answers(remote) || self.offers.owe_answers(remote)
    }

    /// Gives the owner the messages of a remote that are here as a whole and have no receive.
    #[cold]
    pub(crate) fn hand_over<O: Owner>(&mut self, remote: RemoteId, owner: &mut O) {
        let streams = &mut self.streams;
        let whole = self
            .offers
            .take_whole(|index| streams.take_whole(index, remote));
        for (offer, bytes) in whole {
            owner.on_arrived(remote, offer, BytesView::from_slice(&bytes));
        }
    }

    /// Ends what comes from a remote; answers the receives that it was to fill.
    pub(crate) fn lose(&mut self, remote: RemoteId, lane: LostLane) -> Vec<Landing> {
        let streams = &self.streams;
        let mut landings = self.offers.lose(|offer| match offer {
            Offer::Remote(offer) => offer.remote == remote,
            Offer::Stream(index) => streams.is_of(*index, remote),
        });
        landings.extend(self.streams.lose(remote, lane));
        landings
    }
}
