// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accept (srd-protocol 5, kind 4): the receiver names a landing for an offered message. Called by
//! packet.

use crate::bytes::{Head, Reader};
use crate::malformed::Malformed;

/// A landing for an offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accept {
    /// The offered message.
    pub message_id: u64,
    /// The receiver's name for where it goes.
    pub landing: u32,
    /// How much of it to send; 0 completes it without any (srd-protocol 12.3).
    pub length_bytes: u64,
}

impl Accept {
    pub(crate) fn write(&self, head: &mut Head) {
        head.put_u64(self.message_id);
        head.put_u32(self.landing);
        head.put_u32(0);
        head.put_u64(self.length_bytes);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let message_id = reader.u64("message id of an accept")?;
        let landing = reader.u32("landing of an accept")?;
        reader.zeros::<4>("reserved bytes of an accept")?;
        let length_bytes = reader.u64("length_bytes of an accept")?;
        Ok(Self {
            message_id,
            landing,
            length_bytes,
        })
    }
}
