// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that are announced to the owner before their payload is here, until a receive matches.

use slab::Slab;
use weft_contract::{Envelope, Landing, OfferId, Owner, RemoteId};

use crate::copy::offer::RemoteOffer;

/// A message that the owner has not accepted yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offer {
    /// It lies in its sender's memory.
    Remote(RemoteOffer),
    /// It is streaming in, or has; index of the stream.
    Stream(usize),
}

/// A message that the owner has a receive for.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) offer: Offer,
    pub(crate) landing: Landing,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    /// By index, which is the owner's [`OfferId`].
    offers: Slab<Offer>,
    /// Accepted since the last progress.
    accepted: Vec<Accepted>,
}

impl Offers {
    /// How many the owner has not accepted.
    pub(crate) fn count(&self) -> usize {
        self.offers.len()
    }

    #[inline(always)]
    pub(crate) fn accepted_count(&self) -> usize {
        self.accepted.len()
    }

    /// Announces a message; answers where it goes if that is known at once.
    pub(super) fn announce<O: Owner>(
        &mut self,
        envelope: &Envelope,
        offer: Offer,
        owner: &mut O,
    ) -> Option<Landing> {
        let index = self.offers.insert(offer);
        let landing = owner.on_offer(envelope, OfferId(index as u64))?;
        self.offers.remove(index);
        Some(landing)
    }

    /// The owner has a receive for a message that was announced.
    pub(crate) fn accept(&mut self, offer: OfferId, landing: Landing) {
        let offer = self.offers.remove(offer.0 as usize);
        self.land(offer, landing);
    }

    /// A message has a receive.
    pub(super) fn land(&mut self, offer: Offer, landing: Landing) {
        self.accepted.push(Accepted { offer, landing });
    }

    /// The owner does not want a message that was announced.
    pub(crate) fn discard(&mut self, offer: OfferId) -> Offer {
        self.offers.remove(offer.0 as usize)
    }

    /// What was accepted since this was asked last.
    pub(crate) fn take_accepted(&mut self) -> Vec<Accepted> {
        std::mem::take(&mut self.accepted)
    }

    /// Whether a remote waits for an answer to what it has described.
    pub(super) fn owe_answers(&self, remote: RemoteId) -> bool {
        let is_its =
            |offer: &Offer| matches!(offer, Offer::Remote(offer) if offer.remote == remote);
        self.offers.iter().any(|(_, offer)| is_its(offer))
            || self.accepted.iter().any(|accepted| is_its(&accepted.offer))
    }

    /// Takes out the streams for which `bring` has the whole message; answers each with its name.
    pub(super) fn take_whole(
        &mut self,
        mut bring: impl FnMut(usize) -> Option<Vec<u8>>,
    ) -> Vec<(OfferId, Vec<u8>)> {
        let mut whole = Vec::new();
        self.offers.retain(|number, offer| {
            let Offer::Stream(index) = *offer else {
                return true;
            };
            let brought = bring(index);
            let stays = brought.is_none();
            whole.extend(brought.map(|bytes| (OfferId(number as u64), bytes)));
            stays
        });
        whole
    }

    /// Forgets the messages that `is_its` names; answers the receives of those that were accepted.
    pub(super) fn lose(&mut self, is_its: impl Fn(&Offer) -> bool) -> Vec<Landing> {
        self.offers.retain(|_, offer| !is_its(offer));
        let accepted = std::mem::take(&mut self.accepted).into_iter();
        let (lost, kept) = accepted.partition(|accepted| is_its(&accepted.offer));
        self.accepted = kept;
        let lost: Vec<Accepted> = lost;
        lost.into_iter().map(|accepted| accepted.landing).collect()
    }
}
