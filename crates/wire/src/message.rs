// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What eager, segment and offer packets say about a user's message (srd-protocol 5).

use crate::bytes::{Head, Reader, write_at};
use crate::malformed::{Malformed, require};

/// Size of the body (srd-protocol 5).
pub const MESSAGE_BYTES: usize = 36;

mod flag {
    pub(super) const TAGGED: u8 = 1;
    pub(super) const CQ_DATA: u8 = 2;
    pub(super) const RECEIPT: u8 = 4;
    pub(super) const SERVICE: u8 = 8;
    pub(super) const ALL: u8 = 15;
}

/// A message, without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Its place in the sender's order, from 0.
    pub id: u64,
    /// Its tag; `None` for a message that is matched without one.
    pub tag: Option<u64>,
    /// Remote completion data, if any.
    pub cq_data: Option<u64>,
    /// Length of the whole message.
    pub length_bytes: u64,
    /// The sender waits for a receipt.
    pub wants_receipt: bool,
    /// Between the endpoints themselves; has a tag.
    pub is_service: bool,
}

impl Message {
    #[inline]
    pub(crate) fn write(&self, head: &mut Head) {
        let mut flags = 0;
        if self.tag.is_some() {
            flags |= flag::TAGGED;
        }
        if self.cq_data.is_some() {
            flags |= flag::CQ_DATA;
        }
        if self.wants_receipt {
            flags |= flag::RECEIPT;
        }
        if self.is_service {
            flags |= flag::SERVICE;
        }
        let place = head.next::<MESSAGE_BYTES>();
        write_at(place, 0, self.id.to_le_bytes());
        write_at(place, 8, self.tag.unwrap_or(0).to_le_bytes());
        write_at(place, 16, self.cq_data.unwrap_or(0).to_le_bytes());
        write_at(place, 24, self.length_bytes.to_le_bytes());
        write_at(place, 32, [flags, 0, 0, 0]);
    }

    #[inline(always)]
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.stretch::<MESSAGE_BYTES, _>(Self::fields)
    }

    #[inline(always)]
    fn fields(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let id = reader.u64("message id")?;
        let tag = reader.u64("tag")?;
        let cq_data = reader.u64("cq_data")?;
        let length_bytes = reader.u64("length_bytes")?;
        let flags = reader.u8("message flags")?;
        require(
            flags & !flag::ALL == 0,
            "message flags",
            u64::from(flags),
            "flags above 8 are not defined",
        )?;
        let tagged = flags & flag::TAGGED != 0;
        require(
            tagged || tag == 0,
            "tag",
            tag,
            "the message is not flagged as tagged",
        )?;
        let is_service = flags & flag::SERVICE != 0;
        require(
            tagged || !is_service,
            "message flags",
            u64::from(flags),
            "a service message has a tag",
        )?;
        let has_data = flags & flag::CQ_DATA != 0;
        require(
            has_data || cq_data == 0,
            "cq_data",
            cq_data,
            "the message is not flagged to have any",
        )?;
        reader.zeros::<3>("reserved bytes of the message")?;
        Ok(Self {
            id,
            tag: tagged.then_some(tag),
            cq_data: has_data.then_some(cq_data),
            length_bytes,
            wants_receipt: flags & flag::RECEIPT != 0,
            is_service,
        })
    }
}
