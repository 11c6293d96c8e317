// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Looking for messages without receiving them, and claiming them: FI_PEEK, FI_CLAIM, FI_DISCARD.
//!
//! Called by the endpoint. Specified in fi_tagged(3): a peek makes progress and answers on the
//! completion queue, with an error entry if there is no message; a claimed message is found by no
//! other receive, and belongs to the receive with FI_CLAIM and the same context.

use weft_contract::Peer;
use weft_memory::UserBuffer;

use super::delivery::{Destination, PostedReceive};
use super::receiving::{Asked, Claimed, Match, Receiving};
use crate::completion::completions::Completions;
use crate::completion::receive::ReceiveEnd;
use crate::error::Error;
use crate::flags;
use crate::remotes::Remotes;

impl Receiving {
    /// Looks for a message, after progress was made; the flags say what to do with it: leave it,
    /// FI_CLAIM or FI_DISCARD.
    ///
    /// # Errors
    /// [`Error::NotBound`] without a receive queue to answer on.
    pub(crate) fn peek<P: Peer>(
        &mut self,
        route: &mut P,
        remotes: &Remotes,
        completions: &mut Completions,
        asked: &Asked,
    ) -> Result<(), Error> {
        let &Asked {
            class,
            want,
            context,
            flags,
        } = asked;
        if !self.delivery.reports.queue.is_bound() {
            return Err(Error::NotBound);
        }
        let found = self.find(class, want).and_then(|id| {
            let message = self.matcher(class).unexpected(id)?;
            Some((Match { class, id }, message.kept.envelope()))
        });
        let reports = &self.delivery.reports;
        let Some((found, envelope)) = found else {
            reports.nothing_peeked(completions, class, context, want.tag);
            return Ok(());
        };
        let end = ReceiveEnd {
            context,
            flags: 0,
            capacity_bytes: 0,
            address: 0,
            release: false,
        };
        let source = reports.source(remotes, envelope.remote);
        reports.peeked(completions, reports.entry(&envelope, source, &end));
        if flags & (flags::CLAIM | flags::DISCARD) != 0
            && let Some(message) = self.take(found)
        {
            if flags & flags::CLAIM != 0 {
                self.claimed.push(Claimed { context, message });
            } else {
                self.delivery.drop_message(route, message);
            }
        }
        Ok(())
    }

    /// Receives, or with FI_DISCARD drops, the message claimed under the same context.
    ///
    /// # Errors
    /// [`Error::Invalid`] if none was.
    pub(crate) fn receive_claimed<P: Peer>(
        &mut self,
        route: &mut P,
        remotes: &Remotes,
        completions: &mut Completions,
        asked: &Asked,
        buffer: UserBuffer,
    ) -> Result<(), Error> {
        let is_it = |claim: &Claimed| {
            claim.context == asked.context && claim.message.kept.class == asked.class
        };
        let place = self.claimed.iter().position(is_it).ok_or(Error::Invalid)?;
        let message = self.claimed.remove(place).message;
        let posted = PostedReceive::whole(buffer, asked.context, asked.flags);
        let delivery = &mut self.delivery;
        if asked.flags & flags::DISCARD == 0 {
            let destination = Destination::whole(posted);
            delivery.deliver(route, remotes, completions, message, destination);
            return Ok(());
        }
        let envelope = message.kept.envelope();
        let end = ReceiveEnd {
            capacity_bytes: usize::MAX,
            ..posted.end()
        };
        delivery.drop_message(route, message);
        let reports = &delivery.reports;
        let source = reports.source(remotes, envelope.remote);
        let entry = reports.entry(&envelope, source, &end);
        reports.discarded(completions, entry, asked.flags);
        Ok(())
    }
}
