// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Offer (srd-protocol 5, kind 3): announces a message whose payload waits for a landing. Called by
//! packet.

use crate::bytes::Reader;
use crate::malformed::Malformed;
use crate::message::Message;

pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Message, Malformed> {
    Message::read(reader)
}
