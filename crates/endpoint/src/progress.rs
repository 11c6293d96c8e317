// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Progress: drives transports. Who they call back: arrivals.rs.
//!
//! Called when a queue or counter is read, and by the provider; calls
//! [`weft_contract::Peer::progress`].

use weft_contract::Route;

use crate::arrivals::Arrivals;
use crate::completion::Sinks;
use crate::core::Core;
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::foreign::Foreign;
use crate::foreign_arrivals::ForeignArrivals;
use crate::ids::{CounterId, EndpointId, QueueId};

/// Idle reads of queues before the domain's other endpoints have a round. Chosen: a read that waits
/// hardly notices.
const IDLE_READS_PER_ROUND: u32 = 16;

impl<P: Route> Domain<P> {
    /// Moves all that can move on one endpoint without waiting; answers how many events there were.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    #[inline]
    pub fn progress(&mut self, endpoint: EndpointId) -> Result<usize, Error> {
        Ok(self
            .endpoints
            .get_mut(endpoint.0)
            .ok_or(Error::NoSuch)?
            .progress(&mut self.sinks))
    }

    /// Drives all endpoints bound to a queue, most often one. False if nothing can have been
    /// reported. Fast path.
    #[inline(always)]
    pub(crate) fn progress_queue(&mut self, queue: QueueId) -> bool {
        let Some(known) = self.sinks.queues.get(queue.0) else {
            return false;
        };
        let [endpoint] = known.bound[..] else {
            self.progress_queue_of_many(queue);
            return true;
        };
        let Some(endpoint) = self.endpoints.get_mut(endpoint.0) else {
            return false;
        };
        let passed = endpoint.pass();
        let was_idle = passed || endpoint.make_progress(&mut self.sinks) == 0;
        if was_idle && self.endpoints.count() > 1 && self.others_are_due() {
            self.progress_all();
            return true;
        }
        !passed
    }

    #[inline(never)]
    fn progress_queue_of_many(&mut self, queue: QueueId) {
        let mut index = 0;
        let mut event_count = 0;
        while let Some(&endpoint) = self
            .sinks
            .queues
            .get(queue.0)
            .and_then(|queue| queue.bound.get(index))
        {
            if let Some(endpoint) = self.endpoints.get_mut(endpoint.0) {
                event_count += endpoint.progress(&mut self.sinks);
            }
            index += 1;
        }
        if event_count == 0 && index < self.endpoints.count() && self.others_are_due() {
            self.progress_all();
        }
    }

    /// An endpoint owes answers also when its own queue is not read: its remotes may wait for them,
    /// while this process waits on another endpoint for just those remotes.
    #[inline(always)]
    pub(crate) fn others_are_due(&mut self) -> bool {
        self.idle_reads_count = self.idle_reads_count.wrapping_add(1);
        self.idle_reads_count % IDLE_READS_PER_ROUND == 0
    }

    /// Drives all endpoints bound to a counter.
    pub(crate) fn progress_counter(&mut self, counter: CounterId) {
        let Some(known) = self.sinks.counters.get(counter.0) else {
            return;
        };
        if known.bound.is_empty() {
            // It may count what comes to a region, by any endpoint.
            self.progress_all();
            return;
        }
        let mut index = 0;
        while let Some(&endpoint) = self
            .sinks
            .counters
            .get(counter.0)
            .and_then(|counter| counter.bound.get(index))
        {
            if let Some(endpoint) = self.endpoints.get_mut(endpoint.0) {
                endpoint.progress(&mut self.sinks);
            }
            index += 1;
        }
    }
}

impl<P: Route> Endpoint<P> {
    /// Lets a round of progress pass, if there is nothing to do in it; else says false. Fast path.
    #[inline(always)]
    pub(crate) fn pass(&mut self) -> bool {
        let Some(local) = &mut self.local else {
            return true;
        };
        if self.core.has_chores || !local.pass() {
            return false;
        }
        self.count_idle_round();
        true
    }

    #[inline(always)]
    pub(crate) fn progress(&mut self, sinks: &mut Sinks) -> usize {
        if self.pass() {
            return 0;
        }
        self.make_progress(sinks)
    }

    #[inline(never)]
    pub(crate) fn make_progress(&mut self, sinks: &mut Sinks) -> usize {
        let Some(local) = &mut self.local else {
            return 0;
        };
        let core = &mut self.core;
        let own = Arrivals { core, sinks };
        let mut count = match &mut self.foreign {
            None => local.progress(&mut { own }),
            Some(foreign) => progress_foreign(local, own, foreign),
        };
        if self.core.has_chores {
            count += do_chores(local, &mut self.core, sinks);
        }
        if count == 0 {
            self.count_idle_round();
        }
        count
    }
}

/// Posts sends that waited for room, and what one-sided operations have gathered.
#[inline(never)]
fn do_chores<P: Route>(local: &mut P, core: &mut Core, sinks: &mut Sinks) -> usize {
    let mut count = 0;
    // Answers first: who queues sends without end must not keep its remotes from theirs.
    if let Some(one_sided) = &mut core.one_sided
        && one_sided.has_parcels()
    {
        count += one_sided.send_parcels(local, &mut core.report, sinks);
    }
    if !core.backlog.is_empty() {
        count += core.send_queued(local, sinks);
    }
    core.has_chores = core.one_sided.is_some() || !core.backlog.is_empty();
    count
}

/// Progress of an endpoint whose messages somebody else matches.
#[inline(never)]
fn progress_foreign<P: Route>(local: &mut P, own: Arrivals<'_>, foreign: &mut Foreign) -> usize {
    local.progress(&mut ForeignArrivals { own, foreign })
}
