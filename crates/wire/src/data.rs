// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Data (srd-protocol 5, kind 5): a piece of an accepted message, for its final address. Called by
//! packet.

use crate::bytes::{Head, Reader};
use crate::malformed::{Malformed, require};

/// Size of the body (srd-protocol 5).
pub const DATA_BYTES: usize = 16;

/// Where the payload goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// The receiver's name, from its accept.
    pub landing: u32,
    /// Of the payload's first byte in the landing.
    pub offset_bytes: u64,
}

impl Data {
    pub(crate) fn write(&self, head: &mut Head) {
        head.put_u32(self.landing);
        head.put_u32(0);
        head.put_u64(self.offset_bytes);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let landing = reader.u32("landing")?;
        reader.zeros::<4>("reserved bytes of data")?;
        let offset_bytes = reader.u64("offset of data")?;
        let length = reader.rest().len() as u64;
        require(
            length > 0,
            "payload length of data",
            0,
            "data has at least 1 byte",
        )?;
        require(
            offset_bytes.checked_add(length).is_some(),
            "offset of data",
            offset_bytes,
            "with the payload it ends beyond 64 bits",
        )?;
        Ok(Self {
            landing,
            offset_bytes,
        })
    }
}
