// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Endpoints as the provider opens, binds, enables, asks and closes them. What an endpoint is:
//! endpoint.rs.

use std::net::SocketAddr;

use weft_contract::{Place, Route};

use crate::completion::Reporter;
use crate::core::Core;
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::ids::{CounterId, EndpointId, QueueId, VectorId};
use crate::settings::{EndpointSettings, QueueBinding};
use crate::statistics::Statistics;

impl<P: Route> Domain<P> {
    /// Opens an endpoint. Setup.
    pub fn open_endpoint(&mut self, settings: EndpointSettings) -> EndpointId {
        let core = Core::new(Reporter::new(settings.source));
        EndpointId(self.endpoints.insert(Endpoint {
            settings,
            vector: None,
            local: None,
            core,
            foreign: None,
            sleepers_count: 0,
            watched: Vec::new(),
            idle_rounds_count: 0,
            process: std::process::id(),
        }))
    }

    /// Binds an address vector, before the endpoint is enabled. Setup.
    ///
    /// # Errors
    /// [`Error::BadState`] if the endpoint is enabled, [`Error::Busy`] if it has a vector.
    pub fn bind_vector(&mut self, endpoint: EndpointId, vector: VectorId) -> Result<(), Error> {
        self.vectors.get(vector.0).ok_or(Error::NoSuch)?;
        let endpoint = self.closed_endpoint(endpoint)?;
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
        &mut self,
        endpoint: EndpointId,
        queue: QueueId,
        binding: QueueBinding,
    ) -> Result<(), Error> {
        self.sinks.queues.get(queue.0).ok_or(Error::NoSuch)?;
        self.closed_endpoint(endpoint)?
            .core
            .report
            .bind_queue(queue, binding)?;
        let bound = &mut self
            .sinks
            .queues
            .get_mut(queue.0)
            .ok_or(Error::NoSuch)?
            .bound;
        if !bound.contains(&endpoint) {
            bound.push(endpoint);
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
        &mut self,
        endpoint: EndpointId,
        counter: CounterId,
        events: u64,
    ) -> Result<(), Error> {
        self.sinks.counters.get(counter.0).ok_or(Error::NoSuch)?;
        self.closed_endpoint(endpoint)?
            .core
            .report
            .bind_counter(counter, events)?;
        let bound = &mut self
            .sinks
            .counters
            .get_mut(counter.0)
            .ok_or(Error::NoSuch)?
            .bound;
        if !bound.contains(&endpoint) {
            bound.push(endpoint);
        }
        Ok(())
    }

    /// Opens the endpoint's transport; data may flow. Setup.
    ///
    /// # Errors
    /// [`Error::BadState`] if it is enabled, [`Error::NotBound`] if it has no address vector, else
    /// what the transport met; [`Domain::last_failure`] then says it in words.
    pub fn enable(&mut self, endpoint: EndpointId) -> Result<(), Error> {
        let opening = self.closed_endpoint(endpoint)?;
        let vector = opening.vector.ok_or(Error::NotBound)?;
        let EndpointSettings {
            address,
            everywhere,
            ..
        } = opening.settings;
        let place = Place {
            address,
            everywhere,
            is_held: false,
        };
        let mut local = match P::open(&self.local_settings, place) {
            Ok(local) => local,
            Err(error) => {
                self.last_failure = Some(error.words);
                return Err(error.kind.into());
            }
        };
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let vector = self.vectors.get(vector.0).ok_or(Error::NoSuch)?;
        if !endpoint.core.report.hears_accesses() {
            self.sinks.regions.publish_all(&mut local);
        }
        endpoint.local = Some(local);
        for (name, address) in vector.iter() {
            endpoint.learn(name, address, vector.reported(&address));
        }
        Ok(())
    }

    /// The address under which others reach the endpoint.
    ///
    /// # Errors
    /// [`Error::BadState`] before the endpoint is enabled.
    pub fn local_address(&self, endpoint: EndpointId) -> Result<SocketAddr, Error> {
        let endpoint = self.endpoints.get(endpoint.0).ok_or(Error::NoSuch)?;
        Ok(endpoint
            .local
            .as_ref()
            .ok_or(Error::BadState)?
            .local_address())
    }

    /// Sets the address wanted, before the endpoint is enabled (fi_setname). Setup.
    ///
    /// # Errors
    /// [`Error::BadState`] if the endpoint is enabled.
    pub fn set_address(&mut self, endpoint: EndpointId, address: SocketAddr) -> Result<(), Error> {
        let settings = &mut self.closed_endpoint(endpoint)?.settings;
        settings.address = Some(address);
        settings.everywhere = false;
        Ok(())
    }

    /// The flags of sends and of receives that give none.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn operation_flags(&self, endpoint: EndpointId) -> Result<(u64, u64), Error> {
        let settings = &self
            .endpoints
            .get(endpoint.0)
            .ok_or(Error::NoSuch)?
            .settings;
        Ok((settings.transmit_flags, settings.receive_flags))
    }

    /// Sets them; counts from the next call on.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn set_operation_flags(
        &mut self,
        endpoint: EndpointId,
        transmit: u64,
        receive: u64,
    ) -> Result<(), Error> {
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        endpoint.settings.transmit_flags = transmit;
        endpoint.settings.receive_flags = receive;
        Ok(())
    }

    /// Room below which a multi-receive buffer is released (FI_OPT_MIN_MULTI_RECV).
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn min_multi_receive_bytes(&self, endpoint: EndpointId) -> Result<usize, Error> {
        Ok(self
            .endpoints
            .get(endpoint.0)
            .ok_or(Error::NoSuch)?
            .core
            .multis
            .minimum_bytes)
    }

    /// Sets that room; counts from the next message on.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn set_min_multi_receive_bytes(
        &mut self,
        endpoint: EndpointId,
        bytes: usize,
    ) -> Result<(), Error> {
        self.endpoints
            .get_mut(endpoint.0)
            .ok_or(Error::NoSuch)?
            .core
            .multis
            .minimum_bytes = bytes;
        Ok(())
    }

    /// What the endpoint counted so far.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn statistics(&self, endpoint: EndpointId) -> Result<Statistics<P::Statistics>, Error> {
        let endpoint = self.endpoints.get(endpoint.0).ok_or(Error::NoSuch)?;
        let local = endpoint.local.as_ref().map(Route::statistics);
        Ok(Statistics {
            counts: endpoint.core.report.counts,
            waiting: endpoint.core.matching.waiting(),
            local,
        })
    }

    /// Closes an endpoint with all that is under way on it; no completions are written for that.
    /// Sends that wait for room are posted first, for two seconds at most. Setup.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn close_endpoint(&mut self, endpoint: EndpointId) -> Result<(), Error> {
        let closing = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        closing.linger(&mut self.sinks);
        self.endpoints.remove(endpoint.0).ok_or(Error::NoSuch)?;
        self.sinks
            .queues
            .iter_mut()
            .for_each(|queue| queue.bound.retain(|&bound| bound != endpoint));
        self.sinks
            .counters
            .iter_mut()
            .for_each(|counter| counter.bound.retain(|&bound| bound != endpoint));
        Ok(())
    }

    pub(crate) fn closed_endpoint(
        &mut self,
        endpoint: EndpointId,
    ) -> Result<&mut Endpoint<P>, Error> {
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        if endpoint.local.is_some() {
            Err(Error::BadState)
        } else {
            Ok(endpoint)
        }
    }
}
