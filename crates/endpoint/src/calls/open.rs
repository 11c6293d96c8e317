// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls that open, bind, enable, ask and close endpoints. fi_endpoint(3).

use std::net::SocketAddr;

use weft_contract::{Place, Route};

use crate::address_vector::AddressVector;
use crate::endpoint::own_addresses::OwnAddress;
use crate::endpoint::{Endpoint, closing};
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::ids::{CounterId, EndpointId, QueueId, Table, VectorId};
use crate::receive::shared::{SharedContext, SharedReceives};
use crate::settings::{EndpointSettings, QueueBinding};
use crate::shared_objects::SharedObjects;
use crate::statistics::Statistics;

/// The endpoints of a domain, for one call.
///
/// Every method answers [`Error::NoSuch`] for an id that names nothing.
pub struct OpenCalls<'a, P: Route> {
    pub(crate) endpoints: &'a mut Endpoints<P>,
    pub(crate) vectors: &'a Table<AddressVector>,
    pub(crate) objects: &'a mut SharedObjects,
    /// How transports are opened.
    pub(crate) route_settings: &'a P::Settings,
    pub(crate) last_failure: &'a mut Option<String>,
}

impl<P: Route> OpenCalls<'_, P> {
    /// Opens an endpoint. Setup.
    pub fn open(self, settings: EndpointSettings) -> EndpointId {
        self.endpoints.insert(Endpoint::new(settings))
    }

    /// Binds an address vector, before the endpoint is enabled. Setup.
    ///
    /// # Errors
    /// [`Error::BadState`] if the endpoint is enabled, [`Error::Busy`] if it has a vector.
    pub fn bind_vector(self, endpoint: EndpointId, vector: VectorId) -> Result<(), Error> {
        self.vectors.get(vector.0).ok_or(Error::NoSuch)?;
        let endpoint = self.endpoints.closed(endpoint)?;
        if endpoint.vector.is_some_and(|bound| bound != vector) {
            return Err(Error::Busy);
        }
        endpoint.vector = Some(vector);
        Ok(())
    }

    /// Binds a completion queue, before the endpoint is enabled. Setup.
    ///
    /// # Errors
    /// [`Error::BadState`] if the endpoint is enabled, [`Error::Busy`] if it has such a queue,
    /// [`Error::Invalid`] if the binding names neither direction.
    pub fn bind_queue(
        self,
        endpoint: EndpointId,
        queue: QueueId,
        binding: QueueBinding,
    ) -> Result<(), Error> {
        let known = self.objects.completions.queue(queue)?;
        let core = &mut self.endpoints.closed(endpoint)?.core;
        core.bind_queue(queue, binding)?;
        if !known.bound.contains(&endpoint) {
            known.bound.push(endpoint);
        }
        Ok(())
    }

    /// Binds a counter to the events in `events` (FI_SEND, FI_RECV, FI_READ ...), before the
    /// endpoint is enabled. Setup.
    ///
    /// # Errors
    /// [`Error::BadState`] if the endpoint is enabled, [`Error::Busy`] if an event has a counter,
    /// [`Error::Invalid`] if there is none in `events`, or an unknown one.
    pub fn bind_counter(
        self,
        endpoint: EndpointId,
        counter: CounterId,
        events: u64,
    ) -> Result<(), Error> {
        let known = self.objects.completions.counter(counter)?;
        let core = &mut self.endpoints.closed(endpoint)?.core;
        core.bind_counter(counter, events)?;
        if !known.bound.contains(&endpoint) {
            known.bound.push(endpoint);
        }
        Ok(())
    }

    /// Lets a shared receive context match the endpoint's messages (fi_peer(3)). To be called
    /// before the endpoint is enabled. Setup.
    ///
    /// # Errors
    /// [`Error::BadState`] if the endpoint is enabled, [`Error::Busy`] if it has such a context.
    pub fn bind_shared_context(
        self,
        endpoint: EndpointId,
        context: Box<dyn SharedContext>,
    ) -> Result<(), Error> {
        let endpoint = self.endpoints.closed(endpoint)?;
        if endpoint.shared.is_some() {
            return Err(Error::Busy);
        }
        endpoint.shared = Some(Box::new(SharedReceives::new(context)));
        Ok(())
    }

    /// Opens the endpoint's transport; data may flow. Setup.
    ///
    /// # Errors
    /// [`Error::BadState`] if it is enabled, [`Error::NotBound`] if it has no address vector, else
    /// what the transport met; [`crate::Domain::last_failure`] then says it in words.
    pub fn enable(self, endpoint: EndpointId) -> Result<(), Error> {
        let endpoint = self.endpoints.closed(endpoint)?;
        let vector = endpoint.vector.ok_or(Error::NotBound)?;
        let vector = self.vectors.get(vector.0).ok_or(Error::NoSuch)?;
        let EndpointSettings {
            address,
            everywhere,
            ..
        } = endpoint.settings;
        let place = Place {
            address,
            everywhere,
            is_held: false,
        };
        let mut route = match P::open(self.route_settings, place) {
            Ok(route) => route,
            Err(error) => {
                *self.last_failure = Some(error.words);
                return Err(error.kind.into());
            }
        };
        if !endpoint.core.receiving.delivery.reports.counts_accesses() {
            self.objects.regions.publish_all(&mut route);
        }
        endpoint.own_address = Some(OwnAddress::enter(route.local_address()));
        endpoint.route = Some(route);
        for (name, address) in vector.iter() {
            endpoint.learn(name, address, vector.reported(&address));
        }
        Ok(())
    }

    /// The address under which others reach the endpoint.
    ///
    /// # Errors
    /// [`Error::BadState`] before the endpoint is enabled.
    pub fn local_address(self, endpoint: EndpointId) -> Result<SocketAddr, Error> {
        let route = &self.endpoints.get_mut(endpoint)?.route;
        Ok(route.as_ref().ok_or(Error::BadState)?.local_address())
    }

    /// Sets the address that the endpoint shall get (fi_setname). To be called before the endpoint
    /// is enabled. Setup.
    ///
    /// # Errors
    /// [`Error::BadState`] if the endpoint is enabled.
    pub fn set_address(self, endpoint: EndpointId, address: SocketAddr) -> Result<(), Error> {
        let settings = &mut self.endpoints.closed(endpoint)?.settings;
        settings.address = Some(address);
        settings.everywhere = false;
        Ok(())
    }

    /// The flags of sends and of receives that give none.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn operation_flags(self, endpoint: EndpointId) -> Result<(u64, u64), Error> {
        let settings = &self.endpoints.get_mut(endpoint)?.settings;
        Ok((settings.transmit_flags, settings.receive_flags))
    }

    /// Sets them; counts from the next call on.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn set_operation_flags(
        self,
        endpoint: EndpointId,
        transmit: u64,
        receive: u64,
    ) -> Result<(), Error> {
        let settings = &mut self.endpoints.get_mut(endpoint)?.settings;
        settings.transmit_flags = transmit;
        settings.receive_flags = receive;
        Ok(())
    }

    /// Room below which a multi-receive buffer is released (FI_OPT_MIN_MULTI_RECV).
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn min_multi_receive_bytes(self, endpoint: EndpointId) -> Result<usize, Error> {
        let receiving = &self.endpoints.get_mut(endpoint)?.core.receiving;
        Ok(receiving.delivery.multis.minimum_bytes)
    }

    /// Sets that room; counts from the next message on.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn set_min_multi_receive_bytes(
        self,
        endpoint: EndpointId,
        bytes: usize,
    ) -> Result<(), Error> {
        let receiving = &mut self.endpoints.get_mut(endpoint)?.core.receiving;
        receiving.delivery.multis.minimum_bytes = bytes;
        Ok(())
    }

    /// What the endpoint counted so far.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn statistics(self, endpoint: EndpointId) -> Result<Statistics<P::Statistics>, Error> {
        let endpoint = self.endpoints.get_mut(endpoint)?;
        Ok(Statistics {
            counts: endpoint.core.counts(),
            waiting: endpoint.core.receiving.waiting(),
            local: endpoint.route.as_ref().map(Route::statistics),
        })
    }

    /// Closes an endpoint and drops all operations under way on it; they get no completions. Sends
    /// that were reported as complete arrive: the call waits for remotes that live and have not
    /// taken them, 10 minutes at most while nothing moves. Setup.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn close(self, endpoint: EndpointId) -> Result<(), Error> {
        closing::linger(self.endpoints.get_mut(endpoint)?, self.objects);
        self.endpoints.remove(endpoint);
        self.objects.completions.unbind(endpoint);
        Ok(())
    }
}
