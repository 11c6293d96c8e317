// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sleeping until something arrives: the seam between a queue that is waited on and its transports.
//!
//! Called by the provider for blocking reads and wait objects; asks the transports bound to the queue. Several
//! queues, and several threads, may sleep on one transport at once: it is told of the first sleeper and of the
//! end of the last.

use std::os::fd::RawFd;

use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::ids::QueueId;
use crate::route::LocalRoute;

impl<P: LocalRoute> Endpoint<P> {
    /// Counts one more sleeper; false, and none is counted, if the transport has something to do first.
    fn fall_asleep(&mut self) -> bool {
        let Some(local) = &mut self.local else {
            return true;
        };
        let one_sided = self.core.one_sided.as_ref();
        if one_sided.is_some_and(|one_sided| one_sided.has_parcels()) {
            return false;
        }
        if self.sleepers_count == 0 && !local.before_sleep() {
            return false;
        }
        self.sleepers_count += 1;
        true
    }

    /// Counts one sleeper less.
    fn wake_up(&mut self) {
        if self.sleepers_count == 0 {
            return;
        }
        self.sleepers_count -= 1;
        if let (0, Some(local)) = (self.sleepers_count, &mut self.local) {
            local.after_sleep();
        }
    }
}

impl<P: LocalRoute> Domain<P> {
    /// Names the descriptors that become readable when there may be something to read on the queue, after
    /// [`Domain::before_sleep`] answered true: one for each enabled endpoint bound to it. A descriptor stays
    /// the same until its endpoint is closed. Setup.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if a transport has no descriptor.
    pub fn wait_fds(&self, queue: QueueId, mut visit: impl FnMut(RawFd)) -> Result<(), Error> {
        let bound = &self.sinks.queues.get(queue.0).ok_or(Error::NoSuch)?.bound;
        for endpoint in bound {
            if let Some(local) = self
                .endpoints
                .get(endpoint.0)
                .and_then(|endpoint| endpoint.local.as_ref())
            {
                visit(local.wait_fd().ok_or(Error::Unsupported)?);
            }
        }
        Ok(())
    }

    /// The descriptor of a queue that has only one.
    ///
    /// # Errors
    /// [`Error::Unsupported`] unless exactly one enabled endpoint is bound to the queue and its transport has
    /// a descriptor.
    pub fn wait_fd(&self, queue: QueueId) -> Result<RawFd, Error> {
        let (mut only, mut count) = (None, 0);
        self.wait_fds(queue, |descriptor| {
            only = Some(descriptor);
            count += 1;
        })?;
        only.filter(|_| count == 1).ok_or(Error::Unsupported)
    }

    /// Announces that the caller is about to sleep on the descriptors. True: nothing is pending and whatever
    /// arrives from now on makes one of them readable; [`Domain::after_sleep`] must follow. False: there is
    /// something to read or to progress first. While another sleeps on the same transport, what arrived so far
    /// is received here.
    pub fn before_sleep(&mut self, queue: QueueId) -> bool {
        self.progress_shared(queue);
        let Some(entries) = self
            .sinks
            .queues
            .get(queue.0)
            .filter(|entries| entries.is_empty())
        else {
            return false;
        };
        for (index, endpoint) in entries.bound.iter().enumerate() {
            let endpoint = self.endpoints.get_mut(endpoint.0);
            if endpoint.is_some_and(|endpoint| !endpoint.fall_asleep()) {
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

    /// Drives the transports of a queue that were told of a sleep already: they ring for what comes from now on,
    /// but may have rung for another sleeper before.
    fn progress_shared(&mut self, queue: QueueId) {
        let Some(entries) = self.sinks.queues.get(queue.0) else {
            return;
        };
        let asleep = |endpoint: &Endpoint<P>| endpoint.sleepers_count > 0;
        if entries
            .bound
            .iter()
            .any(|endpoint| self.endpoints.get(endpoint.0).is_some_and(asleep))
        {
            self.progress_queue(queue);
        }
    }

    /// Wakes the first `count` transports of a queue.
    fn wake(&mut self, queue: QueueId, count: usize) {
        let Some(entries) = self.sinks.queues.get(queue.0) else {
            return;
        };
        for endpoint in entries.bound.iter().take(count) {
            if let Some(endpoint) = self.endpoints.get_mut(endpoint.0) {
                endpoint.wake_up();
            }
        }
    }
}
