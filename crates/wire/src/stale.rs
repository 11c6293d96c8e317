// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stale (srd-protocol 5, kind 10; 6.5): the incarnation a packet was for is gone. Called by packet.

use crate::bytes::{Head, Reader};
use crate::malformed::{Malformed, require};

/// Which incarnation is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stale {
    /// As the packet that is answered named it.
    pub incarnation: u64,
    /// The first port of who answers.
    pub port: u16,
}

impl Stale {
    pub(crate) fn write(&self, head: &mut Head) {
        head.put_u64(self.incarnation);
        head.put_u16(self.port);
        head.put(&[0; 6]);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let incarnation = reader.u64("stale incarnation")?;
        require(
            incarnation != 0,
            "stale incarnation",
            0,
            "an incarnation is never 0",
        )?;
        let port = reader.u16("port of the stale packet")?;
        reader.zeros::<6>("reserved bytes of the stale packet")?;
        Ok(Self { incarnation, port })
    }
}
