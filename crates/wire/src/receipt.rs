// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receipt (srd-protocol 5, kind 6): a message is in the buffer of the receive it matched. Called
//! by packet.

use crate::bytes::{Head, Reader};
use crate::malformed::Malformed;

/// Which message was delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// As its sender numbered it.
    pub message_id: u64,
}

impl Receipt {
    pub(crate) fn write(&self, head: &mut Head) {
        head.put_u64(self.message_id);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            message_id: reader.u64("message id of a receipt")?,
        })
    }
}
