// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The srd transport as an endpoint's route, over sockets and over a simulated wire. Turns weft-udp's errors into the
//! endpoint's.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use weft_contract::RemoteId;
use weft_udp::{OpenError, Ports, Settings, Statistics, Transport};

use crate::error::Error;
use crate::route::{LocalRoute, Place};

impl<P: Ports> LocalRoute for Transport<P> {
    type Settings = Settings;
    type Statistics = Statistics;

    fn open(settings: &Settings, place: Place) -> Result<Self, (Error, String)> {
        let settings = Settings {
            address: place.address(),
            ..settings.clone()
        };
        Self::open(&settings).map_err(|error| (class_of(&error), error.to_string()))
    }

    fn add_remote(&mut self, remote: RemoteId, address: SocketAddr) {
        self.add_remote(remote, address);
    }

    fn name_again(&mut self, remote: RemoteId) {
        self.name_again(remote);
    }

    fn expect_remotes(&mut self) {
        self.expect_remotes();
    }

    fn local_address(&self) -> SocketAddr {
        self.local_address()
    }

    fn watch(&mut self, remote: RemoteId, on: bool) {
        self.watch(remote, on);
    }

    fn wait_fd(&self) -> Option<RawFd> {
        self.wait_fd()
    }

    fn before_sleep(&mut self) -> bool {
        self.before_sleep()
    }

    fn after_sleep(&mut self) {
        self.after_sleep();
    }

    #[inline]
    fn set_undisturbed(&mut self, undisturbed: bool) {
        self.set_undisturbed(undisturbed);
    }

    /// Room comes with datagrams, or when one is taken for lost.
    fn wakes_for_room(&self, _: RemoteId) -> bool {
        true
    }

    fn statistics(&self) -> Statistics {
        self.statistics()
    }
}

fn class_of(error: &OpenError) -> Error {
    match error {
        OpenError::Address(_, source) if source.kind() == ErrorKind::AddrInUse => {
            Error::AddressInUse
        }
        OpenError::Address(..) => Error::AddressNotAvailable,
        OpenError::Setting(_) => Error::Invalid,
        OpenError::Sockets(_) => Error::NoResources,
    }
}
