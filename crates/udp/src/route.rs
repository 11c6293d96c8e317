// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reliable datagrams as a route of an endpoint: what the endpoint asks, in words of the transport.

use std::io::ErrorKind;
use std::net::SocketAddr;

use weft_contract::{Closing, Place, RemoteId, Route, RouteError, RouteErrorKind};

use crate::ports::Ports;
use crate::settings::{OpenError, Settings};
use crate::statistics::Statistics;
use crate::transport::Transport;

impl<P: Ports> Route for Transport<P> {
    type Settings = Settings;
    type Statistics = Statistics;

    fn open(settings: &Settings, place: Place) -> Result<Self, RouteError> {
        let settings = Settings {
            address: place.address,
            ..settings.clone()
        };
        Self::open(&settings).map_err(|error| RouteError {
            kind: kind_of(&error),
            words: error.to_string(),
        })
    }

    fn local_address(&self) -> SocketAddr {
        self.local_address()
    }

    fn add_remote(&mut self, remote: RemoteId, address: SocketAddr) {
        self.add_remote(remote, address);
    }

    fn name_again(&mut self, remote: RemoteId) {
        self.name_again(remote);
    }

    /// Has others get an answer when they ask whether this process lives, while its program
    /// computes.
    fn begin_use(&mut self, _: RemoteId) {
        self.expect_remotes();
    }

    fn watch(&mut self, remote: RemoteId, on: bool) {
        self.watch(remote, on);
    }

    fn statistics(&self) -> Statistics {
        self.statistics()
    }
}

impl<P: Ports> Closing for Transport<P> {
    /// Who lacks messages or answers that are not acknowledged. What has left and did not ask for
    /// its acknowledgement asks for it from the first call on.
    fn owed(&mut self) -> Vec<SocketAddr> {
        self.owed()
    }
}

fn kind_of(error: &OpenError) -> RouteErrorKind {
    match error {
        OpenError::Address(_, source) if source.kind() == ErrorKind::AddrInUse => {
            RouteErrorKind::AddressInUse
        }
        OpenError::Address(..) => RouteErrorKind::AddressNotAvailable,
        OpenError::Setting(_) => RouteErrorKind::Invalid,
        OpenError::Sockets(_) => RouteErrorKind::NoResources,
    }
}
