// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The owner of transports in tests that look at what a transport does, and not at what it delivers.

use std::net::SocketAddr;

use weft_contract::*;
use weft_memory::BytesView;

/// Takes everything that comes whole, and leaves offers alone.
pub(crate) struct Sink;

impl Owner for Sink {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        None
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {}
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {}
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}
