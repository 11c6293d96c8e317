// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A transport between endpoints of one process: what the conformance suite measures other transports by.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use weft_contract::{
    AckToken, Landing, OfferId, Owner, Peer, PostError, Posted, RemoteId, SendOp, TransferError,
};
use weft_memory::UserBuffer;

use crate::error::Error;
use crate::route::{LocalRoute, RouteSettings};

/// The transport of one endpoint.
#[derive(Debug)]
pub struct InProcess {
    address: SocketAddr,
}

impl Peer for InProcess {
    fn post_send(&mut self, _op: &SendOp, _payload: &UserBuffer) -> Result<Posted, PostError> {
        Err(PostError::Failed(TransferError::Unreachable))
    }

    fn accept(&mut self, _offer: OfferId, _landing: Landing) {}

    fn discard(&mut self, _offer: OfferId) {}

    fn acknowledge(&mut self, _ack: AckToken) {}

    fn progress<O: Owner>(&mut self, _owner: &mut O) -> usize {
        0
    }
}

impl LocalRoute for InProcess {
    type Statistics = ();

    fn open(settings: RouteSettings) -> Result<Self, (Error, String)> {
        let address = settings
            .address
            .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 1)));
        Ok(Self { address })
    }

    fn add_remote(&mut self, _remote: RemoteId, _address: SocketAddr) {}

    fn local_address(&self) -> SocketAddr {
        self.address
    }

    fn watch(&mut self, _remote: RemoteId, _on: bool) {}

    fn wait_fd(&self) -> Option<RawFd> {
        None
    }

    fn before_sleep(&mut self) -> bool {
        false
    }

    fn after_sleep(&mut self) {}

    fn statistics(&self) {}
}
