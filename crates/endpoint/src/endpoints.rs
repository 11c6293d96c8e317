// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The endpoints of a domain, and progress on several of them: those whose queue or counter is
//! read, and now and then all.
//!
//! Called by `calls`, for every read of a queue or counter.

use weft_contract::Route;

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::ids::{CounterId, EndpointId, QueueId, Table};
use crate::shared_objects::SharedObjects;

/// Idle reads of queues before the domain's other endpoints have a round. Chosen: a read that waits
/// hardly notices.
const IDLE_READS_PER_ROUND: u32 = 16;

/// The endpoints.
pub(crate) struct Endpoints<P> {
    table: Table<Endpoint<P>>,
    /// Reads of queues in a row whose own endpoints had nothing to do, while there were others.
    idle_reads_count: u32,
}

impl<P: Route> Endpoints<P> {
    pub(crate) const fn new() -> Self {
        Self {
            table: Table::new(),
            idle_reads_count: 0,
        }
    }

    /// Setup.
    pub(crate) fn insert(&mut self, endpoint: Endpoint<P>) -> EndpointId {
        EndpointId(self.table.insert(endpoint))
    }

    /// Setup.
    pub(crate) fn remove(&mut self, endpoint: EndpointId) {
        self.table.remove(endpoint.0);
    }

    /// Fast path.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, endpoint: EndpointId) -> Result<&mut Endpoint<P>, Error> {
        self.table.get_mut(endpoint.0).ok_or(Error::NoSuch)
    }

    /// An endpoint that is not enabled yet.
    ///
    /// # Errors
    /// [`Error::BadState`] if it is.
    pub(crate) fn closed(&mut self, endpoint: EndpointId) -> Result<&mut Endpoint<P>, Error> {
        let endpoint = self.get_mut(endpoint)?;
        if endpoint.route.is_some() {
            return Err(Error::BadState);
        }
        Ok(endpoint)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Endpoint<P>> {
        self.table.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Endpoint<P>> {
        self.table.iter_mut()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = EndpointId> {
        self.table.numbers().map(EndpointId)
    }

    /// Whether it is time for a round of the endpoints besides `count` that had nothing to do. An
    /// endpoint owes answers also when its own queue is not read: its remotes may wait for them,
    /// while this process waits on another endpoint for just those remotes.
    #[inline(always)]
    pub(crate) fn others_are_due(&mut self, count: usize) -> bool {
        if self.table.count() <= count {
            return false;
        }
        self.idle_reads_count = self.idle_reads_count.wrapping_add(1);
        self.idle_reads_count.is_multiple_of(IDLE_READS_PER_ROUND)
    }

    /// Moves all that can move on every endpoint; answers how many events there were.
    pub(crate) fn progress_all(&mut self, objects: &mut SharedObjects) -> usize {
        let each = self.table.iter_mut();
        each.map(|endpoint| endpoint.progress(objects)).sum()
    }

    /// Drives all endpoints bound to a queue, most often one. False if nothing can have been
    /// reported. Fast path.
    #[inline(always)]
    pub(crate) fn progress_queue(&mut self, objects: &mut SharedObjects, queue: QueueId) -> bool {
        let Some(known) = objects.completions.queues.get(queue.0) else {
            return false;
        };
        let [endpoint] = known.bound[..] else {
            self.progress_queue_of_many(objects, queue);
            return true;
        };
        let Ok(endpoint) = self.get_mut(endpoint) else {
            return false;
        };
        let passed = endpoint.pass();
        let was_idle = passed || endpoint.make_progress(objects) == 0;
        if was_idle && self.others_are_due(1) {
            self.progress_all(objects);
            return true;
        }
        !passed
    }

    #[inline(never)]
    fn progress_queue_of_many(&mut self, objects: &mut SharedObjects, queue: QueueId) {
        let mut index = 0;
        let mut event_count = 0;
        while let Ok(known) = objects.completions.queue(queue)
            && let Some(&endpoint) = known.bound.get(index)
        {
            if let Ok(endpoint) = self.get_mut(endpoint) {
                event_count += endpoint.progress(objects);
            }
            index += 1;
        }
        if event_count == 0 && self.others_are_due(index) {
            self.progress_all(objects);
        }
    }

    /// Drives all endpoints bound to a counter.
    pub(crate) fn progress_counter(&mut self, objects: &mut SharedObjects, counter: CounterId) {
        let mut index = 0;
        while let Ok(known) = objects.completions.counter(counter) {
            if known.bound.is_empty() {
                // It may count what comes to a region, by any endpoint.
                self.progress_all(objects);
                return;
            }
            let Some(&endpoint) = known.bound.get(index) else {
                return;
            };
            if let Ok(endpoint) = self.get_mut(endpoint) {
                endpoint.progress(objects);
            }
            index += 1;
        }
    }
}
