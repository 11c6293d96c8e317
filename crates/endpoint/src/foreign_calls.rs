// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a foreign owner of receives is set, and what it calls when it has a receive for a message
//! that was kept for it. Called by the provider's peer module. fi_peer(3).

use weft_contract::Route;

use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::foreign::{Foreign, ForeignReceive, ForeignReceives, end_of};
use crate::ids::{EndpointId, FiAddr};
use crate::receive::Target;
use crate::slots::Slots;
use crate::unexpected::Unexpected;

impl<P: Route> Domain<P> {
    /// Has `receives` match the endpoint's messages, before it is enabled. Setup.
    ///
    /// # Errors
    /// [`Error::BadState`] if the endpoint is enabled, [`Error::Busy`] if it has such an owner.
    pub fn set_foreign_receives(
        &mut self,
        endpoint: EndpointId,
        receives: Box<dyn ForeignReceives>,
    ) -> Result<(), Error> {
        let endpoint = self.closed_endpoint(endpoint)?;
        if endpoint.foreign.is_some() {
            return Err(Error::Busy);
        }
        let kept = Slots::new();
        endpoint.foreign = Some(Box::new(Foreign { receives, kept }));
        Ok(())
    }

    /// Receives the message that is kept under `number`.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub fn start_foreign(
        &mut self,
        endpoint: EndpointId,
        number: u32,
        receive: ForeignReceive,
    ) -> Result<(), Error> {
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let message = endpoint.take_kept(number)?;
        let end = end_of(&receive);
        let target = Target {
            buffer: receive.buffer,
            end,
            multi: None,
        };
        endpoint.deliver(&mut self.sinks, message, target);
        Ok(())
    }

    /// Drops the message that is kept under `number`.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub fn discard_foreign(&mut self, endpoint: EndpointId, number: u32) -> Result<(), Error> {
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let message = endpoint.take_kept(number)?;
        endpoint.drop_message(message);
        Ok(())
    }

    /// Who sent the message that is kept under `number`, as the user calls it now.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub fn foreign_source(&mut self, endpoint: EndpointId, number: u32) -> Result<FiAddr, Error> {
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let foreign = endpoint.foreign.as_mut().ok_or(Error::NoSuch)?;
        let message = foreign.kept.get_mut(number).ok_or(Error::NoSuch)?;
        Ok(endpoint.core.remotes.name_of(message.kept.remote))
    }
}

impl<P: Route> Endpoint<P> {
    fn take_kept(&mut self, number: u32) -> Result<Unexpected, Error> {
        let foreign = self.foreign.as_mut().ok_or(Error::NoSuch)?;
        foreign.kept.remove(number).ok_or(Error::NoSuch)
    }
}
