// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sleeping until something arrives: the seam between a queue that is waited on and its transports.
//!
//! Called by the provider for blocking reads and wait objects; asks the transports bound to the queue.

use std::os::fd::RawFd;

use crate::domain::Domain;
use crate::error::Error;
use crate::ids::QueueId;
use crate::route::LocalRoute;

impl<P: LocalRoute> Domain<P> {
    /// A descriptor that becomes readable when there may be something to read on the queue, after
    /// [`Domain::before_sleep`] answered true. Setup.
    ///
    /// # Errors
    /// [`Error::Unsupported`] unless exactly one enabled endpoint is bound to the queue and its transport has
    /// a descriptor.
    pub fn wait_fd(&self, queue: QueueId) -> Result<RawFd, Error> {
        let bound = &self.sinks.queues.get(queue.0).ok_or(Error::NoSuch)?.bound;
        let mut enabled = bound
            .iter()
            .filter_map(|endpoint| self.endpoints.get(endpoint.0)?.local.as_ref());
        match (enabled.next(), enabled.next()) {
            (Some(only), None) => only.wait_fd().ok_or(Error::Unsupported),
            _ => Err(Error::Unsupported),
        }
    }

    /// Announces that the caller is about to sleep on the descriptor. True: nothing is pending and whatever
    /// arrives from now on makes the descriptor readable; [`Domain::after_sleep`] must follow. False: there is
    /// something to read or to progress first.
    pub fn before_sleep(&mut self, queue: QueueId) -> bool {
        let Some(entries) = self
            .sinks
            .queues
            .get(queue.0)
            .filter(|entries| entries.is_empty())
        else {
            return false;
        };
        for (index, endpoint) in entries.bound.iter().enumerate() {
            let local = self
                .endpoints
                .get_mut(endpoint.0)
                .and_then(|endpoint| endpoint.local.as_mut());
            if local.is_some_and(|local| !local.before_sleep()) {
                self.wake(queue, index);
                return false;
            }
        }
        true
    }

    /// Ends what [`Domain::before_sleep`] announced.
    pub fn after_sleep(&mut self, queue: QueueId) {
        self.wake(queue, usize::MAX);
    }

    /// Wakes the first `count` transports of a queue.
    fn wake(&mut self, queue: QueueId, count: usize) {
        let Some(entries) = self.sinks.queues.get(queue.0) else {
            return;
        };
        for endpoint in entries.bound.iter().take(count) {
            if let Some(local) = self
                .endpoints
                .get_mut(endpoint.0)
                .and_then(|endpoint| endpoint.local.as_mut())
            {
                local.after_sleep();
            }
        }
    }
}
