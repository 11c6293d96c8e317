// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rest of messages that left with early data, where their receivers asked for it through the
//! lane: DATA cells, as room comes (docs/shm-layout.md, clause 5).

use weft_contract::{Owner, RemoteId};
use weft_os::crash_point;

use crate::contact::contacts::Contacts;
use crate::protocol::PIECE_BYTES;
use crate::protocol::cell::{Carrier, Cts};
use crate::send::sends::{Asked, Sends};
use crate::statistics::Protocol;

/// One message.
#[derive(Debug)]
struct Rest {
    asked: Asked,
    /// The receiver's number for it.
    number: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct DataSends {
    rests: Vec<Rest>,
}

impl DataSends {
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.rests.len()
    }

    /// A CTS asked for these bytes of a message, and named the receiver's number for it. The
    /// request was checked against the send.
    pub(crate) fn start(&mut self, sends: &mut Sends, cts: &Cts, number: u64) {
        if let Some(asked) = sends.start(cts, Protocol::Streamed) {
            self.rests.push(Rest { asked, number });
        }
    }

    /// Sends data as long as there is room; answers how many messages moved.
    pub(crate) fn advance<O: Owner>(
        &mut self,
        contacts: &mut Contacts,
        sends: &mut Sends,
        owner: &mut O,
    ) -> usize {
        let mut events = 0;
        self.rests.retain_mut(|rest| {
            if rest.push(contacts) {
                events += 1;
                contacts.ring(rest.asked.remote);
            }
            let is_over = rest.asked.bytes.is_empty();
            if is_over {
                sends.complete(&rest.asked, owner);
            }
            !is_over
        });
        events
    }

    /// Ends what goes to a remote.
    pub(crate) fn lose(&mut self, remote: RemoteId) {
        self.rests.retain(|rest| rest.asked.remote != remote);
    }
}

impl Rest {
    /// Pushes data until the lane is full; true if any went.
    fn push(&mut self, contacts: &mut Contacts) -> bool {
        let Some((attached, mut back)) = contacts.lane_to(self.asked.remote) else {
            return false;
        };
        let (payload, bytes) = (&self.asked.payload, &mut self.asked.bytes);
        let mut pushed = false;
        while bytes.start < bytes.end {
            let piece = bytes.start..bytes.end.min(bytes.start + PIECE_BYTES);
            let carrier = Carrier::Data(self.number, piece.len() as u32);
            let end = piece.end;
            if attached
                .lane_mut()
                .push(back.as_deref_mut(), carrier, payload, piece)
                .is_err()
            {
                break;
            }
            bytes.start = end;
            pushed = true;
            crash_point!(52, "data: one is sent");
        }
        pushed
    }
}
