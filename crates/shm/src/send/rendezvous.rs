// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rendezvous: the sender first sends only a description of a long message (RTS). When a receive is
//! matched, the receiver says how it wants the payload (docs/shm-layout.md, clause 5). The first
//! bytes may come along with the RTS as early data. Called by post; sends.rs has the rest.
//!
//! Only one message at a time brings early data. With more messages under way the sender need not
//! wait for a CTS anyway, and pipes keep long messages out of the way of short ones.

use weft_contract::{CompletionLevel, RemoteId};
use weft_os::crash_point;

use crate::contact::contacts::Contacts;
use crate::contact::remote::Waiting;
use crate::protocol::cell::{Carrier, Control, MatchHeader, Rts};
use crate::protocol::send_protocol::{Facts, SendProtocol};
use crate::protocol::{EARLY_BYTES, EARLY_CELLS, EARLY_LIMIT_BYTES, STREAM_BYTES};
use crate::send::post::{Sender, push_pieces};
use crate::send::sends::Sends;
use crate::settings::SingleCopy;

impl Sender {
    /// Announces a long message by an RTS: with early data if the protocol chosen says so, else
    /// alone. Returns true if the RTS was sent.
    pub(super) fn announce(
        &mut self,
        contacts: &mut Contacts,
        sends: &mut Sends,
        waiting: &mut Waiting,
    ) -> bool {
        let length_bytes = waiting.payload.length_bytes();
        if length_bytes > STREAM_BYTES {
            let may_bring_early_data = length_bytes <= EARLY_LIMIT_BYTES
                && self.may_begin(contacts, sends, waiting.op.remote);
            waiting.protocol = self.protocol_by(&Facts {
                length_bytes,
                is_shared: waiting.is_shown,
                may_bring_early_data,
                shares_cores: contacts.own.node().shares_cores,
                ..Facts::default()
            });
        }
        if waiting.protocol == SendProtocol::EarlyRendezvous {
            self.begin_early(contacts, sends, waiting)
        } else {
            self.describe(contacts, sends, waiting)
        }
    }

    fn may_begin(&self, contacts: &mut Contacts, sends: &Sends, remote: RemoteId) -> bool {
        let is_own = |remote| contacts.own.is_at(contacts.remote(remote).address());
        let mut others = sends.iter();
        let is_alone = !is_own(remote) && others.all(|other| is_own(other.remote()));
        let asks_for_copies =
            contacts.own.node().shares_cores || self.single_copy == SingleCopy::Always;
        let attached = contacts.remote_mut(remote).attached_mut();
        attached.is_some_and(|attached| {
            is_alone
                && !asks_for_copies
                && attached.lane().is_full_width()
                && attached
                    .lane_mut()
                    .producer_mut()
                    .has_room(EARLY_CELLS, EARLY_BYTES)
        })
    }

    fn begin_early(
        &mut self,
        contacts: &mut Contacts,
        sends: &mut Sends,
        waiting: &mut Waiting,
    ) -> bool {
        let send_id = sends.describe(&waiting.op, &waiting.payload);
        let rts = self.rts_of(waiting, send_id);
        let first = Carrier::EarlyRts(rts, EARLY_BYTES as u32);
        if !push_pieces(contacts, waiting, first) {
            sends.end(send_id);
            return false;
        }
        debug_assert_eq!(waiting.sent_bytes, EARLY_BYTES, "there was room for it");
        contacts.ring(waiting.op.remote);
        waiting.outgoing = Some(send_id);
        waiting.sent_bytes = waiting.payload.length_bytes();
        true
    }

    /// Describes a message by an RTS; returns true if its cell was sent.
    fn describe(
        &mut self,
        contacts: &mut Contacts,
        sends: &mut Sends,
        waiting: &mut Waiting,
    ) -> bool {
        let remote = waiting.op.remote;
        let send_id = sends.describe(&waiting.op, &waiting.payload);
        let (head, words) = Control::Rts(self.rts_of(waiting, send_id)).encode();
        let attached = contacts.remote_mut(remote).attached_mut();
        if attached.is_none_or(|attached| {
            attached
                .lane_mut()
                .producer_mut()
                .push_words(head, words)
                .is_err()
        }) {
            sends.end(send_id);
            return false;
        }
        crash_point!(28, "rts: sent, the bell not rung");
        contacts.ring(remote);
        let length_bytes = waiting.payload.length_bytes();
        self.note_long(contacts, remote, length_bytes);
        waiting.sent_bytes = length_bytes;
        true
    }

    /// The description of a message. If the message lies in memory that we share, this also copies
    /// its ends, outside of the whole pages, to where the receiver finds them.
    fn rts_of(&self, waiting: &Waiting, send_id: usize) -> Rts {
        let address = waiting.address();
        let heap = self.heap.as_ref().filter(|_| waiting.is_shown);
        let puts_edges = || heap.is_some_and(|heap| heap.put_edges(&waiting.payload, send_id));
        Rts {
            header: MatchHeader::of(&waiting.op),
            send_id: send_id as u64,
            length_bytes: waiting.payload.length_bytes() as u64,
            address,
            is_shared: address.is_some() && puts_edges(),
            wants_receipt: waiting.op.level == CompletionLevel::Delivery,
        }
    }
}
