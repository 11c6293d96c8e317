// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an RTS says, and who said it.

use weft_contract::RemoteId;

use crate::protocol::cell::Rts;

/// A message that lies in its sender's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteOffer {
    pub(crate) remote: RemoteId,
    pub(crate) send_id: u64,
    /// Where it lies in the sender's memory, if in one stretch that may be read there.
    pub(crate) address: Option<u64>,
    /// Its whole pages lie in what its sender shares, and its ends in the place of that send id.
    pub(crate) is_shared: bool,
    pub(crate) length_bytes: u64,
    pub(crate) wants_receipt: bool,
}

impl RemoteOffer {
    pub(crate) fn of(remote: RemoteId, rts: &Rts) -> Self {
        Self {
            remote,
            send_id: rts.send_id,
            address: rts.address,
            is_shared: rts.is_shared,
            length_bytes: rts.length_bytes,
            wants_receipt: rts.wants_receipt,
        }
    }

    /// How much of it fits a buffer of so many bytes.
    pub(crate) fn wanted_bytes(&self, buffer_bytes: usize) -> usize {
        usize::try_from(self.length_bytes)
            .unwrap_or(usize::MAX)
            .min(buffer_bytes)
    }
}
