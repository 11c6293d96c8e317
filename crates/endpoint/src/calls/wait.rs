// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls of those who wait: sleeping until something arrives, and progress without a queue.
//!
//! Called by the provider for blocking reads, wait objects and automatic progress; asks the
//! transports concerned. Several threads may sleep on one transport at once: it is told of the
//! first sleeper and of the end of the last.

use std::os::fd::RawFd;

use weft_contract::Route;

use crate::completion::alarm::Alarm;
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::ids::{CounterId, EndpointId, QueueId};
use crate::shared_objects::SharedObjects;

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

/// What may be waited for, for one call.
pub struct WaitCalls<'a, P> {
    pub(crate) endpoints: &'a mut Endpoints<P>,
    pub(crate) objects: &'a mut SharedObjects,
    pub(crate) on: Waitable,
}

impl<P: Route> WaitCalls<'_, P> {
    /// Calls `visit` with each descriptor to sleep on: one for each enabled endpoint concerned.
    /// After [`Self::before_sleep`] returned true, a descriptor becomes readable when there may be
    /// progress to make. It stays the same until its endpoint is closed. Setup.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if a transport has no descriptor.
    pub fn fds(mut self, mut visit: impl FnMut(RawFd)) -> Result<(), Error> {
        for endpoint in self.concerned()? {
            if let Ok(endpoint) = self.endpoints.get_mut(endpoint)
                && let Some(route) = &endpoint.route
            {
                visit(route.wait_fd().ok_or(Error::Unsupported)?);
            }
        }
        Ok(())
    }

    /// The descriptor of what has only one.
    ///
    /// # Errors
    /// [`Error::Unsupported`] unless exactly one enabled endpoint is concerned and its transport
    /// has a descriptor.
    pub fn fd(self) -> Result<RawFd, Error> {
        let (mut only, mut count) = (None, 0);
        self.fds(|descriptor| {
            only = Some(descriptor);
            count += 1;
        })?;
        only.filter(|_| count == 1).ok_or(Error::Unsupported)
    }

    /// Sets what is called when another thread's call brings something for a sleeping thread. It is
    /// called under the domain's lock, at most once for each sleep. Setup.
    ///
    /// # Errors
    /// [`Error::NoSuch`], also for [`Waitable::Everything`], which has no alarm.
    pub fn set_alarm(mut self, bell: Box<dyn Fn() + Send>) -> Result<(), Error> {
        self.alarm().ok_or(Error::NoSuch)?.set(bell);
        Ok(())
    }

    /// Announces that the caller is about to sleep until a descriptor is readable or the alarm
    /// sounds. True: nothing is pending. Whatever arrives from now on makes a descriptor readable
    /// or sounds the alarm; [`Self::after_sleep`] must follow. False: first there is something to
    /// read, or progress to make. If another thread sleeps on the same transport, this call
    /// receives what has arrived so far. Slow path.
    pub fn before_sleep(mut self) -> bool {
        let Ok(concerned) = self.concerned() else {
            return false;
        };
        self.progress_shared(&concerned);
        if !self.is_quiet() {
            return false;
        }
        for (index, &endpoint) in concerned.iter().enumerate() {
            let endpoint = self.endpoints.get_mut(endpoint);
            if endpoint.is_ok_and(|endpoint| !endpoint.fall_asleep()) {
                self.wake(&concerned[..index]);
                return false;
            }
        }
        if let Some(alarm) = self.alarm() {
            alarm.arm();
        }
        true
    }

    /// Ends the sleep that [`Self::before_sleep`] announced; true if no other thread sleeps on the
    /// same object.
    pub fn after_sleep(mut self) -> bool {
        if let Ok(concerned) = self.concerned() {
            self.wake(&concerned);
        }
        self.alarm().is_none_or(Alarm::disarm)
    }

    /// Whether a queue has an entry, or a counter differs from what was read last. Makes progress
    /// first, as fi_poll(3) wants it.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn has_event(mut self) -> Result<bool, Error> {
        for endpoint in self.concerned()? {
            if let Ok(endpoint) = self.endpoints.get_mut(endpoint) {
                endpoint.progress(self.objects);
            }
        }
        Ok(!self.is_quiet())
    }

    /// Whether there is nothing to read.
    fn is_quiet(&mut self) -> bool {
        let completions = &mut self.objects.completions;
        match self.on {
            Waitable::Queue(queue) => {
                let queue = completions.queue(queue);
                queue.is_ok_and(|queue| queue.is_empty())
            }
            Waitable::Counter(counter) => {
                let counter = completions.counter(counter);
                counter.is_ok_and(|counter| !counter.is_changed())
            }
            Waitable::Everything => true,
        }
    }

    fn alarm(&mut self) -> Option<&mut Alarm> {
        let completions = &mut self.objects.completions;
        match self.on {
            Waitable::Queue(queue) => Some(&mut completions.queue(queue).ok()?.alarm),
            Waitable::Counter(counter) => Some(&mut completions.counter(counter).ok()?.alarm),
            Waitable::Everything => None,
        }
    }

    /// The endpoints whose transports must be asked.
    fn concerned(&mut self) -> Result<Vec<EndpointId>, Error> {
        let completions = &mut self.objects.completions;
        let bound = match self.on {
            Waitable::Queue(queue) => return Ok(completions.queue(queue)?.bound.clone()),
            Waitable::Counter(counter) => &completions.counter(counter)?.bound,
            Waitable::Everything => &Vec::new(),
        };
        if bound.is_empty() {
            // A counter may count what comes to a region, by any endpoint.
            return Ok(self.endpoints.ids().collect());
        }
        Ok(bound.clone())
    }

    /// Drives the transports that were told of a sleep already: they ring for what comes from now
    /// on, but may have rung for another sleeper before.
    fn progress_shared(&mut self, concerned: &[EndpointId]) {
        for &endpoint in concerned {
            if let Ok(endpoint) = self.endpoints.get_mut(endpoint)
                && endpoint.sleepers_count > 0
            {
                endpoint.progress(self.objects);
            }
        }
    }

    fn wake(&mut self, asleep: &[EndpointId]) {
        for &endpoint in asleep {
            if let Ok(endpoint) = self.endpoints.get_mut(endpoint) {
                endpoint.wake_up();
            }
        }
    }
}
