// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the tests of this crate open transports, what they send to their first remotes, and an owner
//! that only listens.
#![allow(dead_code, unused_imports, reason = "each test takes what it needs")]

#[path = "../../../../tests/own_address.rs"]
mod own_address;

use std::net::{Ipv4Addr, SocketAddr};

pub use own_address::own_address;
use weft_contract::*;
use weft_memory::{BytesView, UserBuffer};
use weft_shm::{Settings, Transport};

/// Takes what comes whole and leaves offers alone; notes how much came and who was lost. Whoever
/// makes contact is its first remote.
#[derive(Default)]
pub struct Ear {
    pub message_count: usize,
    pub lost: Vec<TransferError>,
}

impl Owner for Ear {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.message_count += 1;
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        None
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {}
    fn on_remote_lost(&mut self, _: RemoteId, why: TransferError) {
        self.lost.push(why);
    }
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}

/// A transport at a free port of 127.0.0.1, or where the settings say.
pub fn open(settings: Settings) -> Transport {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Transport::open(Settings {
        address: settings.address.or(Some(anywhere)),
        ..settings
    })
    .expect("transport")
}

/// Two transports with the same settings, each the first remote of the other.
pub fn open_pair(settings: &Settings) -> [Transport; 2] {
    let [mut a, mut b] = [(), ()].map(|()| open(settings.clone()));
    a.add_remote(RemoteId(0), b.local_address());
    b.add_remote(RemoteId(0), a.local_address());
    [a, b]
}

/// A tagged send to the first remote, named like its tag.
pub fn tagged(tag: u64, level: CompletionLevel) -> SendOp {
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

/// A message of 8 bytes that is injected.
pub fn word() -> SendOp {
    SendOp {
        class: Class::Message,
        inject: true,
        ..tagged(0, CompletionLevel::Inject)
    }
}

/// Sends the first remote such a message.
pub fn send_word(transport: &mut Transport) -> Result<Posted, PostError> {
    transport.post_send(&word(), &UserBuffer::leaked(&[8]))
}

/// The region of an endpoint of this process, unless it lies in a folder.
pub fn region_of(transport: &Transport) -> Option<std::fs::File> {
    let name = format!("weft {}", transport.local_address());
    let file = weft_os::process::open_memfd_of(std::process::id(), &name, -1);
    file.ok().map(Into::into)
}
