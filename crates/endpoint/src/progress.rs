// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Progress: drives transports, and is the owner that they call back.
//!
//! Called when a queue or counter is read, and by the provider; calls [`weft_contract::Peer::progress`].

use std::os::fd::RawFd;

use crate::domain::Domain;
use crate::error::Error;
use crate::ids::{CounterId, EndpointId, QueueId};
use crate::route::LocalRoute;

impl<P: LocalRoute> Domain<P> {
    /// Moves all that can move on one endpoint without waiting; answers how many events there were.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn progress(&mut self, endpoint: EndpointId) -> Result<usize, Error> {
        let _ = endpoint;
        Ok(0)
    }

    pub(crate) fn progress_queue(&mut self, queue: QueueId) {
        let _ = queue;
    }

    pub(crate) fn progress_counter(&mut self, counter: CounterId) {
        let _ = counter;
    }

    /// A descriptor that becomes readable when there may be something to read on the queue, after
    /// [`Domain::before_sleep`] answered true. Setup.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the transports bound to the queue have none, or none in common.
    pub fn wait_fd(&mut self, queue: QueueId) -> Result<RawFd, Error> {
        self.sinks.queues.get(queue.0).ok_or(Error::NoSuch)?;
        Err(Error::Unsupported)
    }

    /// Announces that the caller is about to sleep on the descriptor. True: nothing is pending and whatever
    /// arrives from now on makes the descriptor readable; [`Domain::after_sleep`] must follow. False: there is
    /// something to read or to progress first.
    pub fn before_sleep(&mut self, queue: QueueId) -> bool {
        let _ = queue;
        false
    }

    /// Ends what [`Domain::before_sleep`] announced.
    pub fn after_sleep(&mut self, queue: QueueId) {
        let _ = queue;
    }
}
