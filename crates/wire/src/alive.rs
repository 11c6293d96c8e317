// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Alive (srd-protocol 5, kind 12; 13.6): the answer to a heartbeat, while the program computes.
//! Called by packet.

use std::net::SocketAddr;

use crate::bytes::{Head, Reader};
use crate::malformed::{Malformed, require};
use crate::time::Instant;

/// Who lives, and since when that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alive {
    /// The incarnation that lives.
    pub incarnation: u64,
    /// `sent_ns` of the probe that is answered.
    pub echo_sent_ns: Instant,
    /// The address and the first port of the endpoint that lives.
    pub home: SocketAddr,
}

impl Alive {
    pub(crate) fn write(&self, head: &mut Head) {
        head.put_u64(self.incarnation);
        head.put_u64(self.echo_sent_ns.0);
        head.put_home(self.home);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let incarnation = reader.u64("incarnation that lives")?;
        require(
            incarnation != 0,
            "incarnation that lives",
            0,
            "an incarnation is never 0",
        )?;
        Ok(Self {
            incarnation,
            echo_sent_ns: Instant(reader.u64("echo_sent_ns of a heartbeat")?),
            home: reader.home("address of who lives")?,
        })
    }
}
