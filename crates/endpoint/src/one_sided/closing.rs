// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Taking registered memory back while messages use it: what was announced and has not begun is
//! refused, what moves at this moment is waited for (docs/one-sided.md, clause 8). fi_mr(3).
//!
//! Called by region.rs when a region is closed, and by parcel.rs for the long results that may have
//! to be refused.

use weft_contract::{Peer, PostError, Posted, RemoteId};

use super::outbox::Parcel;
use super::parcel::{refuse, service};
use super::request::{Kind, Tag};
use super::target::reason;
use super::{NAMELESS, OURS, OneSided, RESULT};
use crate::error::Error;

impl OneSided {
    /// Refuses whatever was announced for a region and has not begun to move. Whether nothing moves
    /// there now, so that nothing will. Setup.
    pub(super) fn leave(&mut self, key: u64) -> bool {
        let mut is_left = true;
        let announced = |incoming: &super::Incoming| incoming.keys.contains(&key);
        for number in self.incoming.numbers_where(announced) {
            let Some(incoming) = self.incoming.get_mut(number) else {
                continue;
            };
            if incoming.lands {
                is_left = false;
                continue;
            }
            // Its payload finds no operation of that name when it comes, and is dropped.
            let (remote, id) = (incoming.remote, incoming.id);
            self.incoming.remove(number);
            self.incoming_by_id.remove(&(remote, id));
            let refused = Parcel::Refused(id, reason(Error::KeyRejected));
            self.outbox.push(remote, refused);
        }
        self.outgoing.for_each_mut(|outgoing| {
            if !outgoing.keys.contains(&key) {
                return;
            }
            if outgoing.is_sent {
                is_left = false;
            } else {
                outgoing.buffer = None;
            }
        });
        is_left
    }

    /// Sends what a remote's read asked for, from where it lies; or a refusal, if the region was
    /// closed meanwhile.
    pub(super) fn send_long_result<P: Peer>(
        &mut self,
        local: &mut P,
        remote: RemoteId,
        number: u32,
    ) -> Result<(), PostError> {
        let token = self.nameless_token();
        let Some(outgoing) = self.outgoing.get_mut(number) else {
            return Ok(());
        };
        let Some(buffer) = &outgoing.buffer else {
            let reason = reason(Error::KeyRejected);
            refuse(local, remote, outgoing.id, reason, token)?;
            self.outgoing.remove(number);
            return Ok(());
        };
        let tag = Tag::new(Kind::Result, outgoing.id);
        let token = OURS | NAMELESS | RESULT | u64::from(number);
        match local.post_send(&service(remote, tag, token, false), buffer)? {
            Posted::Complete => drop(self.outgoing.remove(number)),
            Posted::Pending => outgoing.is_sent = true,
        }
        Ok(())
    }
}
