// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Segment (srd-protocol 5, kind 2): a piece of a message that the receiver puts together. Called
//! by packet.

use crate::bytes::{Head, Reader};
use crate::malformed::{Malformed, require};
use crate::message::Message;

/// Where the payload lies in which message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The whole message; every one of its segments says the same.
    pub message: Message,
    /// Of the payload's first byte in the message.
    pub offset_bytes: u64,
}

impl Segment {
    pub(crate) fn write(&self, head: &mut Head) {
        self.message.write(head);
        head.put_u64(self.offset_bytes);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let message = Message::read(reader)?;
        let offset_bytes = reader.u64("offset of a segment")?;
        let length = reader.rest().len() as u64;
        require(
            length > 0,
            "payload length of a segment",
            0,
            "a segment has at least 1 byte",
        )?;
        let fits = offset_bytes
            .checked_add(length)
            .is_some_and(|end| end <= message.length_bytes);
        require(
            fits,
            "offset of a segment",
            offset_bytes,
            "with the payload it ends beyond the message",
        )?;
        Ok(Self {
            message,
            offset_bytes,
        })
    }
}
