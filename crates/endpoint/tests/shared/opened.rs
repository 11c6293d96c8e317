// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the tests beside this folder open an endpoint over shared memory.

use std::net::SocketAddr;

use weft_endpoint::{
    Domain, DomainSettings, EndpointId, EndpointSettings, QueueBinding, QueueId, QueueSettings,
    VectorId, VectorKind,
};
use weft_shm::{Settings, Transport};

/// A queue of sends and receives alike.
pub const BOTH: QueueBinding = QueueBinding {
    transmit: true,
    receive: true,
    selective: false,
};

/// A domain with one endpoint that is enabled.
pub struct Opened<const N: usize> {
    pub domain: Domain<Transport>,
    pub endpoint: EndpointId,
    pub vector: VectorId,
    pub queues: [QueueId; N],
}

impl<const N: usize> Opened<N> {
    /// At a free port of 127.0.0.1, with a queue for each of these bindings.
    pub fn new(settings: Settings, bindings: [QueueBinding; N]) -> Self {
        let mut domain = Domain::with_local_settings(DomainSettings::default(), settings);
        let vector = domain.vectors().open(VectorKind::Map);
        let endpoint = domain.endpoints().open(EndpointSettings {
            address: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            ..EndpointSettings::default()
        });
        domain.endpoints().bind_vector(endpoint, vector).unwrap();
        let queues = bindings.map(|binding| {
            let queue = domain.queues().open(QueueSettings::default());
            let bound = domain.endpoints().bind_queue(endpoint, queue, binding);
            bound.unwrap();
            queue
        });
        domain.endpoints().enable(endpoint).unwrap();
        Self {
            domain,
            endpoint,
            vector,
            queues,
        }
    }

    /// The address under which it is reached.
    pub fn address(&mut self) -> SocketAddr {
        let endpoints = self.domain.endpoints();
        endpoints.local_address(self.endpoint).unwrap()
    }
}
