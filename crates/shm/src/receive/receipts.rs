// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receipts that senders wait for, of messages that the owner keeps until a receive matches.

use slab::Slab;
use weft_contract::{AckToken, RemoteId};

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Receipt {
    remote: RemoteId,
    send_id: u64,
    /// The process that waited for it is gone. Another process at the same address may use the same
    /// number for a send of its own.
    is_void: bool,
}

/// Who waits for a receipt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Due {
    pub(crate) remote: RemoteId,
    pub(crate) send_id: u64,
}

/// By number, which is the owner's [`AckToken`].
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    receipts: Slab<Receipt>,
}

impl Receipts {
    /// A sender waits for one.
    pub(super) fn expect(&mut self, remote: RemoteId, send_id: u64) -> AckToken {
        let receipt = Receipt {
            remote,
            send_id,
            is_void: false,
        };
        AckToken(self.receipts.insert(receipt) as u64)
    }

    /// The message is delivered: whom to tell, if somebody still waits.
    pub(crate) fn take(&mut self, ack: AckToken) -> Option<Due> {
        let Receipt {
            remote,
            send_id,
            is_void,
        } = self.receipts.remove(ack.0 as usize);
        (!is_void).then_some(Due { remote, send_id })
    }

    /// Nobody waits at a remote any more.
    pub(crate) fn lose(&mut self, remote: RemoteId) {
        for (_, receipt) in &mut self.receipts {
            receipt.is_void |= receipt.remote == remote;
        }
    }
}
