// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The shared-memory transport as a route of the endpoint. Turns weft-shm's errors into the endpoint's.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use weft_contract::{DirectOp, Range, Registration, RemoteId};
use weft_shm::{OpenError, Settings, Statistics, Transport};

use crate::error::Error;
use crate::route::{LocalRoute, Place};

impl LocalRoute for Transport {
    type Settings = Settings;
    type Statistics = Statistics;

    fn open(settings: &Settings, place: Place) -> Result<Self, (Error, String)> {
        let settings = Settings {
            address: place.address(),
            port_is_held: matches!(place, Place::Held(_)),
            has_other_way: matches!(place, Place::Held(_)),
            ..settings.clone()
        };
        Self::open(settings).map_err(|error| (class_of(&error), error.to_string()))
    }

    fn listen_everywhere(&mut self) {
        self.listen_everywhere();
    }

    fn add_remote(&mut self, remote: RemoteId, address: SocketAddr) {
        self.add_remote(remote, address);
    }

    fn name_again(&mut self, remote: RemoteId) {
        self.name_again(remote);
    }

    fn local_address(&self) -> SocketAddr {
        self.local_address()
    }

    fn watch(&mut self, remote: RemoteId, on: bool) {
        self.watch(remote, on);
    }

    fn wait_fd(&self) -> Option<RawFd> {
        Some(self.wait_fd())
    }

    fn before_sleep(&mut self) -> bool {
        self.before_sleep()
    }

    fn after_sleep(&mut self) {
        self.after_sleep();
    }

    fn is_busy(&self) -> bool {
        self.is_busy()
    }

    fn publish_registration(&mut self, registration: &Registration) {
        self.publish_registration(registration);
    }

    fn withdraw_registration(&mut self, key: u64) -> bool {
        self.withdraw_registration(key)
    }

    #[inline]
    fn access_directly(&mut self, remote: RemoteId, range: &Range, op: &mut DirectOp<'_>) -> bool {
        self.access_directly(remote, range, op)
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
        OpenError::Directory(..) => Error::Invalid,
        OpenError::Region(_) | OpenError::Sockets(_) => Error::NoResources,
    }
}
