// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Greeting (srd-protocol 5, kind 11; 14.6): the answer to a stranger, who is to come again with the cookie. Called by packet.

use crate::bytes::{Head, Reader};
use crate::malformed::Malformed;

/// What a stranger must say to be taken for somebody who lives now, at the address it writes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// `sent_ns` of the packet that is answered.
    pub echo_sent_ns: u64,
    /// To be repeated in the hello.
    pub cookie: u64,
    /// The first port of who answers.
    pub port: u16,
}

impl Greeting {
    pub(crate) fn write(&self, head: &mut Head) {
        head.put_u64(self.echo_sent_ns);
        head.put_u64(self.cookie);
        head.put_u16(self.port);
        head.put(&[0; 6]);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let greeting = Self {
            echo_sent_ns: reader.u64("echo_sent_ns of the greeting")?,
            cookie: reader.u64("cookie of the greeting")?,
            port: reader.u16("port of the greeting")?,
        };
        reader.zeros::<6>("reserved bytes of the greeting")?;
        Ok(greeting)
    }
}
