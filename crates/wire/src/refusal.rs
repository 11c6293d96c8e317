// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Refusal (srd-protocol 5, kind 7): an offered message will never be taken. Called by packet.

use crate::bytes::{Head, Reader};
use crate::malformed::{Malformed, require};

/// Why a message is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Reason {
    /// The receiver has no memory for it.
    NoMemory = 1,
    /// The receive it matched was canceled while it was under way.
    Canceled = 2,
}

/// Which message, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// As its sender numbered it.
    pub message_id: u64,
    /// Told to the sender's user.
    pub reason: Reason,
}

impl Refusal {
    pub(crate) fn write(&self, head: &mut Head) {
        head.put_u64(self.message_id);
        head.put_u8(self.reason as u8);
        head.put(&[0; 7]);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let message_id = reader.u64("message id of a refusal")?;
        let number = reader.u8("reason")?;
        require(
            number == 1 || number == 2,
            "reason",
            u64::from(number),
            "reasons are 1 and 2",
        )?;
        reader.zeros::<7>("reserved bytes of a refusal")?;
        let reason = if number == 1 {
            Reason::NoMemory
        } else {
            Reason::Canceled
        };
        Ok(Self { message_id, reason })
    }
}
