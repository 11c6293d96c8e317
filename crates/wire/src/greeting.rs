// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Greeting (srd-protocol 5, kind 11; 14.6): the answer to a stranger, who is to come again with
//! the cookie. Called by packet.

use std::net::SocketAddr;

use crate::bytes::{Head, Reader};
use crate::malformed::Malformed;
use crate::time::Instant;

/// What a stranger must say to be taken for somebody who lives now, at the address it writes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// `sent_ns` of the packet that is answered.
    pub echo_sent_ns: Instant,
    /// To be repeated in the hello.
    pub cookie: u64,
    /// The address and the first port of who answers.
    pub home: SocketAddr,
}

impl Greeting {
    pub(crate) fn write(&self, head: &mut Head) {
        head.put_u64(self.echo_sent_ns.0);
        head.put_u64(self.cookie);
        head.put_home(self.home);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            echo_sent_ns: Instant(reader.u64("echo_sent_ns of the greeting")?),
            cookie: reader.u64("cookie of the greeting")?,
            home: reader.home("address of the greeting")?,
        })
    }
}
