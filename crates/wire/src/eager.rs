// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Eager (srd-protocol 5, kind 1): a whole message in one packet. Called by packet.

use crate::bytes::Reader;
use crate::malformed::{Malformed, require};
use crate::message::Message;

#[inline(always)]
pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Message, Malformed> {
    let message = Message::read(reader)?;
    require(
        message.length_bytes == reader.rest().len() as u64,
        "length_bytes of an eager message",
        message.length_bytes,
        "the payload has another length",
    )?;
    Ok(message)
}
