// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What machine keeps of a message that has come.

use weft_srd::{Message, Offer, Remote};

/// A message as its receiver names it.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    pub(crate) offer: Offer,
    pub(crate) tag: u64,
    pub(crate) wants_receipt: bool,
}

impl Named {
    pub(crate) fn new(remote: Remote, life: u32, message: &Message) -> Self {
        Self {
            offer: Offer {
                remote,
                life,
                message_id: message.id,
            },
            tag: message.tag.unwrap_or(0),
            wants_receipt: message.wants_receipt,
        }
    }
}
