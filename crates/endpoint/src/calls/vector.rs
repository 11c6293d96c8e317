// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls on address vectors; every endpoint bound to one hears of its changes. fi_av(3).

use std::net::SocketAddr;

use weft_contract::Route;

use crate::address_vector::AddressVector;
use crate::endpoint::Endpoint;
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::ids::{FiAddr, Table, VectorId};
use crate::settings::VectorKind;

/// The address vectors of a domain, for one call.
///
/// Every method answers [`Error::NoSuch`] for an id that names nothing.
pub struct VectorCalls<'a, P> {
    pub(crate) vectors: &'a mut Table<AddressVector>,
    pub(crate) endpoints: &'a mut Endpoints<P>,
}

impl<P: Route> VectorCalls<'_, P> {
    /// Opens an address vector. Setup.
    pub fn open(self, kind: VectorKind) -> VectorId {
        VectorId(self.vectors.insert(AddressVector::new(kind)))
    }

    fn vector(&mut self, vector: VectorId) -> Result<&mut AddressVector, Error> {
        self.vectors.get_mut(vector.0).ok_or(Error::NoSuch)
    }

    /// The endpoints bound to a vector.
    fn bound(&mut self, vector: VectorId) -> impl Iterator<Item = &mut Endpoint<P>> {
        let endpoints = self.endpoints.iter_mut();
        endpoints.filter(move |endpoint| endpoint.vector == Some(vector))
    }

    /// Which kind a vector is.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn kind(mut self, vector: VectorId) -> Result<VectorKind, Error> {
        Ok(self.vector(vector)?.kind())
    }

    /// Gives `address` a name: the lowest free number. An address may have several names. Slow
    /// path.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn insert(self, vector: VectorId, address: SocketAddr) -> Result<FiAddr, Error> {
        self.insert_as(vector, address, None)
    }

    /// As [`Self::insert`]; messages from there are reported as coming from `source`
    /// (FI_AV_USER_ID). Slow path.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn insert_as(
        mut self,
        vector: VectorId,
        address: SocketAddr,
        source: Option<FiAddr>,
    ) -> Result<FiAddr, Error> {
        let table = self.vector(vector)?;
        let name = table.insert(address);
        if let Some(source) = source {
            table.set_source(address, source);
        }
        let first = table.reported(&address);
        for endpoint in self.bound(vector) {
            endpoint.learn(name, address, first);
        }
        Ok(name)
    }

    /// Removes a name. From now on sends to it fail with [`Error::Invalid`]. Slow path.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if the name leads to no address.
    pub fn remove(mut self, vector: VectorId, name: FiAddr) -> Result<(), Error> {
        let table = self.vector(vector)?;
        let address = table.remove(name).ok_or(Error::NoSuch)?;
        let first = table.reported(&address);
        for endpoint in self.bound(vector) {
            endpoint.core.remotes.clear_name(name, first);
        }
        Ok(())
    }

    /// The address of a name. Slow path.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if the name leads to no address.
    pub fn lookup(mut self, vector: VectorId, name: FiAddr) -> Result<SocketAddr, Error> {
        self.vector(vector)?.lookup(name).ok_or(Error::NoSuch)
    }

    /// Closes an address vector. Setup.
    ///
    /// # Errors
    /// [`Error::Busy`] while an endpoint is bound to it.
    pub fn close(mut self, vector: VectorId) -> Result<(), Error> {
        if self.bound(vector).next().is_some() {
            return Err(Error::Busy);
        }
        self.vectors.remove(vector.0).map(drop).ok_or(Error::NoSuch)
    }
}
