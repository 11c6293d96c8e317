// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stale (srd-protocol 5, kind 10; 6.5): the incarnation a packet was for is gone. Called by
//! packet.

use std::net::SocketAddr;

use crate::bytes::{Head, Reader};
use crate::header::HEADER_BYTES;
use crate::malformed::{Malformed, require};
use crate::time::Instant;

/// A whole stale packet without sections: what is shorter is not answered with one (srd-protocol
/// 14.3).
pub const STALE_BYTES: usize = HEADER_BYTES + 40;

/// Which incarnation is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stale {
    /// As the packet that is answered named it.
    pub incarnation: u64,
    /// `sent_ns` of the packet that is answered; 0 where none is.
    pub echo_sent_ns: Instant,
    /// The address and the first port of who answers.
    pub home: SocketAddr,
}

impl Stale {
    pub(crate) fn write(&self, head: &mut Head) {
        head.put_u64(self.incarnation);
        head.put_u64(self.echo_sent_ns.0);
        head.put_home(self.home);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let incarnation = reader.u64("stale incarnation")?;
        require(
            incarnation != 0,
            "stale incarnation",
            0,
            "an incarnation is never 0",
        )?;
        Ok(Self {
            incarnation,
            echo_sent_ns: Instant(reader.u64("echo_sent_ns of the stale packet")?),
            home: reader.home("address of the stale packet")?,
        })
    }
}
