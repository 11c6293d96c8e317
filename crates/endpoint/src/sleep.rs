// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sleeping until something arrives: the seam between a queue or counter that is waited on and its transports.
//!
//! Called by the provider for blocking reads, wait objects and automatic progress; asks the transports concerned. Several
//! threads may sleep on one transport at once: it is told of the first sleeper and of the end of the last.

use std::os::fd::RawFd;

use weft_contract::Route;

use crate::alarm::Alarm;
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::ids::{CounterId, EndpointId, QueueId};

/// What one may sleep on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waitable {
    /// A completion queue: until there is an entry.
    Queue(QueueId),
    /// A counter: until it differs from what was read last.
    Counter(CounterId),
    /// All endpoints: until there is progress to make.
    Everything,
}

impl From<QueueId> for Waitable {
    fn from(queue: QueueId) -> Self {
        Self::Queue(queue)
    }
}

impl From<CounterId> for Waitable {
    fn from(counter: CounterId) -> Self {
        Self::Counter(counter)
    }
}

impl<P: Route> Endpoint<P> {
    /// Counts one more sleeper; false, and none is counted, if the transport has something to do first.
    fn fall_asleep(&mut self) -> bool {
        let Some(local) = &mut self.local else {
            return true;
        };
        let one_sided = self.core.one_sided.as_ref();
        if one_sided.is_some_and(|one_sided| one_sided.has_parcels()) {
            return false;
        }
        let mut waiting = self.core.backlog.active().iter();
        if !waiting.all(|&remote| local.wakes_for_room(remote)) {
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

impl<P: Route> Domain<P> {
    /// Names the descriptors that become readable when there may be progress to make for `on`, after
    /// [`Domain::before_sleep`] answered true: one for each enabled endpoint concerned. A descriptor stays
    /// the same until its endpoint is closed. Setup.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if a transport has no descriptor.
    pub fn wait_fds(
        &self,
        on: impl Into<Waitable>,
        mut visit: impl FnMut(RawFd),
    ) -> Result<(), Error> {
        for endpoint in self.concerned(on.into())? {
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

    /// Says what to call, under the domain's lock, when another thread's call brings something for those who
    /// sleep on a queue or counter: at most once for each sleep. Setup.
    ///
    /// # Errors
    /// [`Error::NoSuch`], also for [`Waitable::Everything`], which has no alarm.
    pub fn set_alarm(
        &mut self,
        on: impl Into<Waitable>,
        bell: Box<dyn Fn() + Send>,
    ) -> Result<(), Error> {
        self.alarm(on.into()).ok_or(Error::NoSuch)?.set(bell);
        Ok(())
    }

    /// Announces that the caller is about to sleep on the descriptors and until the alarm. True: nothing is
    /// pending and whatever arrives from now on makes one of them readable or sounds the alarm;
    /// [`Domain::after_sleep`] must follow. False: there is something to read or to progress first. While
    /// another sleeps on the same transport, what arrived so far is received here. Slow path.
    pub fn before_sleep(&mut self, on: impl Into<Waitable>) -> bool {
        let on = on.into();
        let Ok(concerned) = self.concerned(on) else {
            return false;
        };
        self.progress_shared(&concerned);
        if !self.is_quiet(on) {
            return false;
        }
        for (index, endpoint) in concerned.iter().enumerate() {
            let endpoint = self.endpoints.get_mut(endpoint.0);
            if endpoint.is_some_and(|endpoint| !endpoint.fall_asleep()) {
                self.wake(&concerned[..index]);
                return false;
            }
        }
        if let Some(alarm) = self.alarm(on) {
            alarm.arm();
        }
        true
    }

    /// Ends what [`Domain::before_sleep`] announced; true if nobody else sleeps on the same.
    pub fn after_sleep(&mut self, on: impl Into<Waitable>) -> bool {
        let on = on.into();
        if let Ok(concerned) = self.concerned(on) {
            self.wake(&concerned);
        }
        self.alarm(on).is_none_or(Alarm::disarm)
    }

    /// Moves all that can move on every endpoint; answers how many events there were.
    pub fn progress_all(&mut self) -> usize {
        let sinks = &mut self.sinks;
        let each = self.endpoints.iter_mut();
        each.map(|endpoint| endpoint.progress(sinks)).sum()
    }

    /// Whether an endpoint has transfers under way that move only while somebody makes progress.
    pub fn is_busy(&self) -> bool {
        self.endpoints.iter().any(|endpoint| {
            endpoint.local.as_ref().is_some_and(|local| {
                let mut waiting = endpoint.core.backlog.active().iter();
                local.is_busy() || !waiting.all(|&remote| local.wakes_for_room(remote))
            })
        })
    }

    /// Whether a queue has an entry, or a counter differs from what was read last. Makes progress first, as
    /// fi_poll(3) wants it.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn has_event(&mut self, on: impl Into<Waitable>) -> Result<bool, Error> {
        let on = on.into();
        for endpoint in self.concerned(on)? {
            if let Some(endpoint) = self.endpoints.get_mut(endpoint.0) {
                endpoint.progress(&mut self.sinks);
            }
        }
        Ok(!self.is_quiet(on))
    }

    /// Whether there is nothing to read.
    fn is_quiet(&self, on: Waitable) -> bool {
        match on {
            Waitable::Queue(queue) => {
                let entries = self.sinks.queues.get(queue.0);
                entries.is_some_and(|entries| entries.is_empty())
            }
            Waitable::Counter(counter) => {
                let counter = self.sinks.counters.get(counter.0);
                counter.is_some_and(|counter| !counter.is_changed())
            }
            Waitable::Everything => true,
        }
    }

    fn alarm(&mut self, on: Waitable) -> Option<&mut Alarm> {
        match on {
            Waitable::Queue(queue) => Some(&mut self.sinks.queues.get_mut(queue.0)?.alarm),
            Waitable::Counter(counter) => Some(&mut self.sinks.counters.get_mut(counter.0)?.alarm),
            Waitable::Everything => None,
        }
    }

    /// The endpoints whose transports must be asked.
    fn concerned(&self, on: Waitable) -> Result<Vec<EndpointId>, Error> {
        match on {
            Waitable::Queue(queue) => {
                let queue = self.sinks.queues.get(queue.0).ok_or(Error::NoSuch)?;
                Ok(queue.bound.clone())
            }
            Waitable::Counter(counter) => {
                let counter = self.sinks.counters.get(counter.0).ok_or(Error::NoSuch)?;
                if counter.bound.is_empty() {
                    // It may count what comes to a region, by any endpoint.
                    return self.concerned(Waitable::Everything);
                }
                Ok(counter.bound.clone())
            }
            Waitable::Everything => Ok(self.endpoints.numbers().map(EndpointId).collect()),
        }
    }

    /// Drives the transports that were told of a sleep already: they ring for what comes from now on, but may
    /// have rung for another sleeper before.
    fn progress_shared(&mut self, concerned: &[EndpointId]) {
        for endpoint in concerned {
            if let Some(endpoint) = self.endpoints.get_mut(endpoint.0)
                && endpoint.sleepers_count > 0
            {
                endpoint.progress(&mut self.sinks);
            }
        }
    }

    fn wake(&mut self, asleep: &[EndpointId]) {
        for endpoint in asleep {
            if let Some(endpoint) = self.endpoints.get_mut(endpoint.0) {
                endpoint.wake_up();
            }
        }
    }
}
