// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The domain: every object of one libfabric domain in one structure, so that one lock, or none,
//! guards it.
//!
//! Called by the provider; hands the calls on each kind of object (`calls`) the parts that they
//! need. fi_domain(3).

use weft_contract::Route;

use crate::address_vector::AddressVector;
use crate::calls::counter::CounterCalls;
use crate::calls::endpoint::EndpointCalls;
use crate::calls::open::OpenCalls;
use crate::calls::queue::QueueCalls;
use crate::calls::region::RegionCalls;
use crate::calls::vector::VectorCalls;
use crate::calls::wait::{WaitCalls, Waitable};
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::ids::{EndpointId, Table};
use crate::settings::DomainSettings;
use crate::shared_objects::SharedObjects;

/// One libfabric domain. Not synchronised: either the provider locks it, or the user has promised
/// not to share it.
pub struct Domain<P: Route> {
    settings: DomainSettings,
    route_settings: P::Settings,
    endpoints: Endpoints<P>,
    objects: SharedObjects,
    vectors: Table<AddressVector>,
    last_failure: Option<String>,
}

impl<P: Route> Domain<P> {
    /// A domain with nothing in it, whose transports are opened with their default settings. Setup.
    pub fn new(settings: DomainSettings) -> Self {
        Self::with_local_settings(settings, P::Settings::default())
    }

    /// A domain with nothing in it, whose transports are opened with `route_settings`. Setup.
    pub fn with_local_settings(settings: DomainSettings, route_settings: P::Settings) -> Self {
        Self {
            settings,
            route_settings,
            endpoints: Endpoints::new(),
            objects: SharedObjects::new(),
            vectors: Table::new(),
            last_failure: None,
        }
    }

    /// The settings it was opened with.
    pub fn settings(&self) -> &DomainSettings {
        &self.settings
    }

    /// Why the last call failed that the system refused, as text for the log.
    pub fn last_failure(&self) -> Option<&str> {
        self.last_failure.as_deref()
    }

    /// Whether nothing is open in the domain, so that it may be closed.
    pub fn is_empty(&self) -> bool {
        self.endpoints.iter().next().is_none()
            && self.vectors.iter().next().is_none()
            && self.objects.is_empty()
    }

    /// Opening, binding, enabling and closing endpoints.
    pub fn endpoints(&mut self) -> OpenCalls<'_, P> {
        OpenCalls {
            endpoints: &mut self.endpoints,
            vectors: &self.vectors,
            objects: &mut self.objects,
            route_settings: &self.route_settings,
            last_failure: &mut self.last_failure,
        }
    }

    /// One endpoint. Fast path.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is no such endpoint.
    #[inline(always)]
    pub fn endpoint(&mut self, endpoint: EndpointId) -> Result<EndpointCalls<'_, P>, Error> {
        Ok(EndpointCalls {
            endpoint: self.endpoints.get_mut(endpoint)?,
            objects: &mut self.objects,
            settings: &self.settings,
        })
    }

    /// Address vectors.
    pub fn vectors(&mut self) -> VectorCalls<'_, P> {
        VectorCalls {
            vectors: &mut self.vectors,
            endpoints: &mut self.endpoints,
        }
    }

    /// Completion queues. Fast path.
    #[inline(always)]
    pub fn queues(&mut self) -> QueueCalls<'_, P> {
        QueueCalls {
            endpoints: &mut self.endpoints,
            objects: &mut self.objects,
        }
    }

    /// Counters.
    pub fn counters(&mut self) -> CounterCalls<'_, P> {
        CounterCalls {
            endpoints: &mut self.endpoints,
            objects: &mut self.objects,
        }
    }

    /// Registered memory.
    pub fn regions(&mut self) -> RegionCalls<'_, P> {
        RegionCalls {
            endpoints: &mut self.endpoints,
            objects: &mut self.objects,
        }
    }

    /// Waiting for a queue, a counter, or anything at all.
    pub fn waiting(&mut self, on: impl Into<Waitable>) -> WaitCalls<'_, P> {
        WaitCalls {
            endpoints: &mut self.endpoints,
            objects: &mut self.objects,
            on: on.into(),
        }
    }

    /// Makes progress on every endpoint; returns how many events there were.
    pub fn progress_all(&mut self) -> usize {
        self.endpoints.progress_all(&mut self.objects)
    }

    /// Whether an endpoint has transfers under way that move only while somebody makes progress.
    pub fn is_busy(&self) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.is_busy())
    }
}
