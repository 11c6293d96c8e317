// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What tests in this crate share: a transport, a send, and owners: one that wants nothing, and one
//! that takes what is offered.

use std::net::SocketAddr;

use weft_contract::*;
use weft_memory::{BytesView, UserBuffer};

use crate::{Settings, Transport};

/// A transport at some port of 127.0.0.1.
pub(crate) fn open_with(settings: Settings) -> Transport {
    let address = Some(([127, 0, 0, 1], 0).into());
    Transport::open(Settings {
        address,
        ..settings
    })
    .expect("transport")
}

/// A tagged send to the first remote, named like its tag.
pub(crate) fn tagged(tag: u64, level: CompletionLevel) -> SendOp {
    SendOp {
        remote: RemoteId(0),
        class: Class::Tagged,
        tag,
        cq_data: None,
        level,
        token: SendToken(tag),
        inject: false,
    }
}

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

/// Takes everything that is offered into one buffer, and counts.
pub(crate) struct Basin {
    pub(crate) landing: UserBuffer,
    pub(crate) landed: usize,
    pub(crate) sent: usize,
}

impl Basin {
    pub(crate) fn new(length_bytes: usize) -> Self {
        Self {
            landing: UserBuffer::leaked(&[length_bytes]),
            landed: 0,
            sent: 0,
        }
    }
}

impl Owner for Basin {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        Some(Landing {
            token: LandingToken(0),
            buffer: self.landing.clone(),
        })
    }
    fn on_landed(&mut self, _: LandingToken, outcome: Result<(), TransferError>) {
        outcome.expect("landed");
        self.landed += 1;
    }
    fn on_sent(&mut self, _: SendToken, outcome: Result<(), TransferError>) {
        outcome.expect("sent");
        self.sent += 1;
    }
    fn on_remote_lost(&mut self, _: RemoteId, why: TransferError) {
        panic!("{why}");
    }
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}
